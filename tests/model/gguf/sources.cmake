pantheon_test(model_gguf_test
  SOURCES ${CMAKE_CURRENT_LIST_DIR}/gguf_damage_test.cpp ${CMAKE_CURRENT_LIST_DIR}/gguf_file_test.cpp
          ${CMAKE_CURRENT_LIST_DIR}/gguf_metadata_test.cpp ${CMAKE_CURRENT_LIST_DIR}/gguf_split_test.cpp
  LIBS pantheon_model pantheon_test_support)
pantheon_test(file_warmer_test
  SOURCES ${CMAKE_CURRENT_LIST_DIR}/file_warmer_test.cpp
  LIBS pantheon_model pantheon_test_support
  LABELS fast tsan)
include(${CMAKE_CURRENT_LIST_DIR}/../../fuzz/gguf_sources.cmake)
pantheon_test(model_gguf_mutation_test
  SOURCES ${CMAKE_CURRENT_LIST_DIR}/gguf_mutation_test.cpp
  LIBS gguf_mutator)
