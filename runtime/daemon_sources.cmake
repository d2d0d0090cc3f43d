add_executable(pantheond
  daemon/command_line.cpp
  daemon/config_file.cpp
  daemon/live_settings.cpp
  daemon/load_model.cpp
  daemon/main.cpp
  daemon/notifier.cpp
  daemon/service.cpp)
target_link_libraries(pantheond PRIVATE pantheon_base pantheon_config pantheon_memory pantheon_model pantheon_ipc pantheon_actors
                                        CLI11::CLI11 spdlog::spdlog PkgConfig::SYSTEMD)
target_compile_definitions(pantheond PRIVATE PANTHEON_VERSION="${PROJECT_VERSION}")
install(TARGETS pantheond RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR})
