# Bytes from clients: the plain test always, the fuzzer with PANTHEON_FUZZ=ON (clang). Both use message_corpus/,
# which message_corpus.py writes.
set(_fuzz ${CMAKE_CURRENT_LIST_DIR})
add_library(message_mutator STATIC ${_fuzz}/message_mutator.cpp)
target_compile_definitions(message_mutator PRIVATE PANTHEON_SOURCE_DIR="${CMAKE_SOURCE_DIR}")
target_link_libraries(message_mutator PUBLIC pantheon_base)
pantheon_test(ipc_message_corpus_test
  SOURCES ${_fuzz}/message_corpus_test.cpp
  LIBS pantheon_ipc message_mutator)
if(PANTHEON_FUZZ)
  add_executable(message_fuzzer ${_fuzz}/message_fuzzer.cpp)
  target_link_libraries(message_fuzzer PRIVATE pantheon_ipc)
  target_link_options(message_fuzzer PRIVATE -fsanitize=fuzzer)
endif()
