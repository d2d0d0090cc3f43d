# Everything comes from Debian 12 packages; etc/packages.txt lists them.
find_package(Threads REQUIRED)
find_package(CAF 0.17.6 REQUIRED COMPONENTS core)
find_package(cppzmq REQUIRED)
find_package(tomlplusplus REQUIRED)
find_package(nlohmann_json REQUIRED)
find_package(spdlog REQUIRED)
find_package(CLI11 REQUIRED)
find_package(PkgConfig REQUIRED)
pkg_check_modules(SYSTEMD REQUIRED IMPORTED_TARGET libsystemd)
pkg_check_modules(EDIT REQUIRED IMPORTED_TARGET libedit)

# Debian's msgpack-c CMake config has the wrong name, and the headers want Boost unless told otherwise.
find_path(MSGPACK_INCLUDE_DIR msgpack.hpp REQUIRED)
add_library(msgpack_cxx INTERFACE)
target_compile_definitions(msgpack_cxx INTERFACE MSGPACK_NO_BOOST=1)

find_path(XXHASH_INCLUDE_DIR xxhash.h REQUIRED)
