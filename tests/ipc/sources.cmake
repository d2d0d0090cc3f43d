# Tests of the wire protocol, the socket loop and the client library.
set(_ipc ${CMAKE_CURRENT_LIST_DIR})
pantheon_test(ipc_codec_test
  SOURCES ${_ipc}/codec_test.cpp ${_ipc}/decode_request_test.cpp ${_ipc}/utf8_test.cpp
  LIBS pantheon_ipc)
include(${CMAKE_CURRENT_LIST_DIR}/../fuzz/message_sources.cmake)
