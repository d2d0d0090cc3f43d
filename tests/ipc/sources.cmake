# Tests of the wire protocol, the socket loop and the client library.
set(_ipc ${CMAKE_CURRENT_LIST_DIR})
include(${_ipc}/../fuzz/message_sources.cmake)

pantheon_test(ipc_codec_test
  SOURCES ${_ipc}/codec_test.cpp ${_ipc}/decode_request_test.cpp ${_ipc}/utf8_test.cpp
  LIBS pantheon_ipc)
pantheon_test(ipc_queue_test
  SOURCES ${_ipc}/outbox_test.cpp ${_ipc}/unread_queue_test.cpp ${_ipc}/socket_file_test.cpp
  LIBS pantheon_ipc
  LABELS "fast;tsan")
pantheon_test(ipc_router_loop_test
  SOURCES ${_ipc}/router_loop_test.cpp ${_ipc}/tsan_options.cpp
  LIBS pantheon_ipc message_mutator cppzmq
  LABELS "fast;tsan")
pantheon_test(ipc_client_test
  SOURCES ${_ipc}/client_test.cpp ${_ipc}/tsan_options.cpp
  LIBS pantheon_ipc cppzmq
  LABELS "fast;tsan")
