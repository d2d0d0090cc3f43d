pantheon_test(kernels_quant_test
  SOURCES ${CMAKE_CURRENT_LIST_DIR}/quant/dequantize_test.cpp ${CMAKE_CURRENT_LIST_DIR}/quant/half_test.cpp
          ${CMAKE_CURRENT_LIST_DIR}/quant/half_values_test.cpp
          ${CMAKE_CURRENT_LIST_DIR}/quant/iq_grids_test.cpp ${CMAKE_CURRENT_LIST_DIR}/quant/weight_type_test.cpp
  LIBS pantheon_kernels)

pantheon_test(kernels_thread_team_test
  SOURCES ${CMAKE_CURRENT_LIST_DIR}/exec/thread_team_test.cpp LIBS pantheon_kernels LABELS fast tsan)
pantheon_test(kernels_ops_test
  SOURCES ${CMAKE_CURRENT_LIST_DIR}/attention/attention_test.cpp ${CMAKE_CURRENT_LIST_DIR}/cpu/leaves_test.cpp
          ${CMAKE_CURRENT_LIST_DIR}/gdn/delta_rule_limits_test.cpp
          ${CMAKE_CURRENT_LIST_DIR}/gdn/gdn_heads_test.cpp ${CMAKE_CURRENT_LIST_DIR}/gdn/gdn_test.cpp
          ${CMAKE_CURRENT_LIST_DIR}/linear/linear_test.cpp ${CMAKE_CURRENT_LIST_DIR}/moe/expert_ffn_test.cpp
          ${CMAKE_CURRENT_LIST_DIR}/moe/moe_test.cpp
          ${CMAKE_CURRENT_LIST_DIR}/norm/l2_norm_test.cpp ${CMAKE_CURRENT_LIST_DIR}/norm/rms_norm_test.cpp
          ${CMAKE_CURRENT_LIST_DIR}/sampling/tile_maxima_test.cpp
  LIBS pantheon_kernels)
