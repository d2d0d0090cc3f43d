add_library(pantheon_memory STATIC
  memory/host_readings.cpp
  memory/memory_files.cpp
  memory/pressure_watch.cpp)
target_link_libraries(pantheon_memory PUBLIC pantheon_base pantheon_config)
