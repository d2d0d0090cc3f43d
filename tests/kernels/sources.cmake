pantheon_test(kernels_quant_test
  SOURCES ${CMAKE_CURRENT_LIST_DIR}/quant/dequantize_test.cpp ${CMAKE_CURRENT_LIST_DIR}/quant/half_test.cpp
          ${CMAKE_CURRENT_LIST_DIR}/quant/iq_grids_test.cpp ${CMAKE_CURRENT_LIST_DIR}/quant/weight_type_test.cpp
  LIBS pantheon_kernels)
