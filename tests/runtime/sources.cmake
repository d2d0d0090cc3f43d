pantheon_test(config_test
  SOURCES
    ${CMAKE_CURRENT_LIST_DIR}/config/config_load_test.cpp
    ${CMAKE_CURRENT_LIST_DIR}/config/config_schema_test.cpp
    ${CMAKE_CURRENT_LIST_DIR}/config/host_defaults_test.cpp
  LIBS pantheon_config)

pantheon_test(memory_readings_test
  SOURCES ${CMAKE_CURRENT_LIST_DIR}/memory/memory_readings_test.cpp
  LIBS pantheon_memory
  LABELS fast tsan)

pantheon_test(cli_test
  SOURCES
    ${CMAKE_CURRENT_LIST_DIR}/cli/parser_test.cpp
    ${CMAKE_CURRENT_LIST_DIR}/cli/top_text_test.cpp
    ${CMAKE_CURRENT_LIST_DIR}/cli/text_test.cpp
  LIBS pantheon_cli)

# Debian's own python3, which python3-zmq and python3-msgpack belong to.
add_test(NAME cli_process
  COMMAND /usr/bin/python3 ${CMAKE_CURRENT_LIST_DIR}/cli/cli_process_test.py --pantheon $<TARGET_FILE:pantheon>)
set_tests_properties(cli_process PROPERTIES LABELS fast TIMEOUT 600)
add_test(NAME chat_process
  COMMAND /usr/bin/python3 ${CMAKE_CURRENT_LIST_DIR}/cli/chat_process_test.py --pantheon $<TARGET_FILE:pantheon>)
set_tests_properties(chat_process PROPERTIES LABELS fast TIMEOUT 300)
add_test(NAME check_config
  COMMAND /usr/bin/python3 ${CMAKE_CURRENT_LIST_DIR}/config/check_config_test.py
          --pantheond ${CMAKE_BINARY_DIR}/bin/pantheond)
set_tests_properties(check_config PROPERTIES LABELS fast TIMEOUT 120)
