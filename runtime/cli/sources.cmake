# Everything but main, so that tests can link it.
add_library(pantheon_cli STATIC
  cli/bench.cpp
  cli/chat.cpp
  cli/console.cpp
  cli/conversation.cpp
  cli/daemon_call.cpp
  cli/daemon_commands.cpp
  cli/generate.cpp
  cli/help_text.cpp
  cli/info.cpp
  cli/line_editor.cpp
  cli/local_model.cpp
  cli/local_run.cpp
  cli/numbers.cpp
  cli/output_file.cpp
  cli/parser.cpp
  cli/perplexity.cpp
  cli/read_bandwidth.cpp
  cli/run_command.cpp
  cli/score.cpp
  cli/status_text.cpp
  cli/stream_printer.cpp
  cli/text_commands.cpp
  cli/top.cpp
  cli/top_text.cpp
  cli/utf8_repair.cpp)
target_link_libraries(pantheon_cli
  PUBLIC pantheon_base pantheon_config pantheon_model pantheon_ipc nlohmann_json::nlohmann_json
  PRIVATE CLI11::CLI11 PkgConfig::EDIT spdlog::spdlog)
set_source_files_properties(cli/parser.cpp PROPERTIES COMPILE_DEFINITIONS "PANTHEON_VERSION=\"${PROJECT_VERSION}\"")

add_executable(pantheon cli/main.cpp)
target_link_libraries(pantheon PRIVATE pantheon_cli)
install(TARGETS pantheon RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR})
