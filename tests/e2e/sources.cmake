# The programs of the build from outside, in Python; and the two tests that read the source tree itself.
# Debian's own python3: the interpreter that Debian's python3-zmq and python3-msgpack belong to.
find_program(PANTHEON_PYTHON NAMES python3 PATHS /usr/bin NO_DEFAULT_PATH REQUIRED)

# pantheon_e2e_test(NAME SCRIPT ARGS… ): one script against the daemon of this build.
function(pantheon_e2e_test name script)
  set(options --build ${CMAKE_BINARY_DIR} ${ARGN})
  if(PANTHEON_SANITIZE)
    list(APPEND options --sanitized)
  endif()
  add_test(NAME e2e.${name} COMMAND ${PANTHEON_PYTHON} ${CMAKE_SOURCE_DIR}/tests/e2e/${script} ${options})
  set_tests_properties(e2e.${name} PROPERTIES LABELS fast TIMEOUT 600)
endfunction()

pantheon_e2e_test(serving serving_test.py)
pantheon_e2e_test(cache cache_test.py)
pantheon_e2e_test(long_chat long_chat_test.py)
pantheon_e2e_test(long_chat_whole long_chat_test.py)
set_tests_properties(e2e.long_chat_whole PROPERTIES
  LABELS soak TIMEOUT 3600 ENVIRONMENT PANTHEON_CHAT_TOKENS=8000)
pantheon_e2e_test(stopping stopping_test.py)
pantheon_e2e_test(commands commands_test.py)
pantheon_e2e_test(clients clients_test.py)
pantheon_e2e_test(reload reload_test.py)
pantheon_e2e_test(kv_pool kv_pool_test.py)
pantheon_e2e_test(memory memory_test.py)
pantheon_e2e_test(python_client python_client_test.py)
pantheon_e2e_test(notify notify_test.py)
pantheon_e2e_test(unit unit_test.py)
pantheon_e2e_test(mutated_messages mutated_messages_test.py)
pantheon_e2e_test(parking parking_test.py)
pantheon_e2e_test(codeword codeword_test.py)
pantheon_e2e_test(killed_clients killed_clients_test.py)

# The long versions, by hand.
pantheon_e2e_test(codeword_soak codeword_test.py --soak)
pantheon_e2e_test(killed_clients_soak killed_clients_test.py --soak)
set_tests_properties(e2e.codeword_soak e2e.killed_clients_soak PROPERTIES LABELS soak TIMEOUT 3600)

add_test(NAME source.include_arrows
  COMMAND ${PANTHEON_PYTHON} ${CMAKE_SOURCE_DIR}/tests/tools/include_arrows.py ${CMAKE_SOURCE_DIR})
add_test(NAME source.include_arrows_reports_each_rule
  COMMAND ${PANTHEON_PYTHON} ${CMAKE_SOURCE_DIR}/tests/tools/include_arrows_test.py)
add_test(NAME source.traps_apply
  COMMAND ${PANTHEON_PYTHON} ${CMAKE_SOURCE_DIR}/tests/tools/check_traps.py --only-apply)
set_tests_properties(source.traps_apply source.include_arrows source.include_arrows_reports_each_rule PROPERTIES LABELS fast TIMEOUT 60)
if(NOT PANTHEON_SANITIZE)  # reading headers needs no second run under sanitizers
  add_test(NAME source.headers_alone
    COMMAND ${PANTHEON_PYTHON} ${CMAKE_SOURCE_DIR}/tests/tools/headers_alone.py ${CMAKE_SOURCE_DIR}
            --compiler ${CMAKE_CXX_COMPILER} --flag=-DMSGPACK_NO_BOOST=1)
  set_tests_properties(source.headers_alone PROPERTIES LABELS fast TIMEOUT 600)
endif()
