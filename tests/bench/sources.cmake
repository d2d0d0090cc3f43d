# Measured by hand; they assert no speed.
add_executable(step_bench ${CMAKE_CURRENT_LIST_DIR}/step_bench.cpp)
set_target_properties(step_bench PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/tests)
target_link_libraries(step_bench PRIVATE pantheon_model)
add_executable(kernel_bench ${CMAKE_CURRENT_LIST_DIR}/kernel_bench.cpp)
set_target_properties(kernel_bench PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/tests)
target_link_libraries(kernel_bench PRIVATE pantheon_kernels GTest::gtest fmt::fmt)
