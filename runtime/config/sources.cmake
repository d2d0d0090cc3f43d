add_library(pantheon_config STATIC
  config/cgroups.cpp
  config/diff.cpp
  config/free_memory.cpp
  config/host_defaults.cpp
  config/key_checks.cpp
  config/key_value.cpp
  config/load.cpp
  config/manual.cpp
  config/nearest.cpp
  config/schema.cpp
  config/toml_tree.cpp)
target_link_libraries(pantheon_config PUBLIC pantheon_base PRIVATE tomlplusplus::tomlplusplus)
file(RELATIVE_PATH data_from_bin ${CMAKE_INSTALL_FULL_BINDIR} ${CMAKE_INSTALL_FULL_DATADIR}/pantheon)
set_source_files_properties(config/host_defaults.cpp PROPERTIES COMPILE_DEFINITIONS
  "PANTHEON_DATA_DIR=\"${CMAKE_INSTALL_FULL_DATADIR}/pantheon\";PANTHEON_DATA_FROM_BIN=\"${data_from_bin}\"")

# Makes pantheond.toml(5) at build time; etc/ runs and installs its output.
add_executable(pantheon_config_manual config/manual_main.cpp)
target_link_libraries(pantheon_config_manual PRIVATE pantheon_config)
