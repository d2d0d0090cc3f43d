# Compiler settings that every target shares.
set(CMAKE_CXX_STANDARD 20)
set(CMAKE_CXX_STANDARD_REQUIRED ON)
set(CMAKE_CXX_EXTENSIONS OFF)
set(CMAKE_POSITION_INDEPENDENT_CODE ON)

if(NOT CMAKE_BUILD_TYPE)
  set(CMAKE_BUILD_TYPE Release)
endif()

find_program(CCACHE_PROGRAM ccache)
if(CCACHE_PROGRAM AND NOT CMAKE_CXX_COMPILER_LAUNCHER)
  set(CMAKE_CXX_COMPILER_LAUNCHER ${CCACHE_PROGRAM})
endif()

set(PANTHEON_SANITIZE "" CACHE STRING "Sanitizers for the whole build, for example address,undefined")

add_library(pantheon_options INTERFACE)
target_include_directories(pantheon_options INTERFACE ${CMAKE_SOURCE_DIR})
# -ffp-contract=off: a fused multiply-add is written where it is meant, never chosen by the optimiser,
# so that the same sum has the same bits in every build of one instruction set.
target_compile_options(pantheon_options INTERFACE -Wall -Wextra -Wpedantic -Wshadow -Wnon-virtual-dtor -ffp-contract=off)
if(PANTHEON_SANITIZE)
  target_compile_options(pantheon_options INTERFACE -fsanitize=${PANTHEON_SANITIZE} -fno-omit-frame-pointer
                                                    -fno-sanitize-recover=all)
  target_link_options(pantheon_options INTERFACE -fsanitize=${PANTHEON_SANITIZE})
  if(PANTHEON_SANITIZE MATCHES "address")
    # Assertions stay on, but the arithmetic must not take minutes under ASan.
    set(CMAKE_CXX_FLAGS_DEBUG "-O1 -g")
  endif()
endif()
if(PANTHEON_FUZZ)
  target_compile_options(pantheon_options INTERFACE -fsanitize=fuzzer-no-link,address,undefined)
  target_link_options(pantheon_options INTERFACE -fsanitize=address,undefined)
endif()
