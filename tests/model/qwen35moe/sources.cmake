add_library(pantheon_tiny_model STATIC
  ${CMAKE_CURRENT_LIST_DIR}/double_model.cpp ${CMAKE_CURRENT_LIST_DIR}/tiny_model.cpp)
target_link_libraries(pantheon_tiny_model PUBLIC pantheon_model pantheon_test_support)

pantheon_test(qwen35moe_forward_test
  SOURCES ${CMAKE_CURRENT_LIST_DIR}/double_model_test.cpp ${CMAKE_CURRENT_LIST_DIR}/executor_test.cpp
          ${CMAKE_CURRENT_LIST_DIR}/golden_test.cpp ${CMAKE_CURRENT_LIST_DIR}/image_format_test.cpp
          ${CMAKE_CURRENT_LIST_DIR}/invariance_test.cpp
          ${CMAKE_CURRENT_LIST_DIR}/kv_pool_test.cpp
          ${CMAKE_CURRENT_LIST_DIR}/slide_test.cpp ${CMAKE_CURRENT_LIST_DIR}/step_bytes_test.cpp
  LIBS pantheon_tiny_model)
pantheon_test(qwen35moe_load_test
  SOURCES ${CMAKE_CURRENT_LIST_DIR}/config_test.cpp ${CMAKE_CURRENT_LIST_DIR}/weights_test.cpp
  LIBS pantheon_tiny_model)
pantheon_test(model_state_test
  SOURCES ${CMAKE_CURRENT_LIST_DIR}/../state/checkpoint_test.cpp
          ${CMAKE_CURRENT_LIST_DIR}/../state/kv_pool_test.cpp
          ${CMAKE_CURRENT_LIST_DIR}/../state/slot_store_test.cpp
          ${CMAKE_CURRENT_LIST_DIR}/../state/state_file_test.cpp
  LIBS pantheon_model)
