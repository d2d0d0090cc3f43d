pantheon_test(config_test
  SOURCES
    ${CMAKE_CURRENT_LIST_DIR}/config/config_load_test.cpp
    ${CMAKE_CURRENT_LIST_DIR}/config/config_schema_test.cpp
    ${CMAKE_CURRENT_LIST_DIR}/config/host_defaults_test.cpp
  LIBS pantheon_config)

pantheon_test(cli_test
  SOURCES
    ${CMAKE_CURRENT_LIST_DIR}/cli/parser_test.cpp
    ${CMAKE_CURRENT_LIST_DIR}/cli/text_test.cpp
  LIBS pantheon_cli)
