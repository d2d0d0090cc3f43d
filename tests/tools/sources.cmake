add_library(pantheon_make_model STATIC
  ${CMAKE_CURRENT_LIST_DIR}/make_model/bpe_trainer.cpp ${CMAKE_CURRENT_LIST_DIR}/make_model/expand_f32.cpp
  ${CMAKE_CURRENT_LIST_DIR}/make_model/model_shape.cpp ${CMAKE_CURRENT_LIST_DIR}/make_model/model_writer.cpp
  ${CMAKE_CURRENT_LIST_DIR}/make_model/tensor_plan.cpp ${CMAKE_CURRENT_LIST_DIR}/make_model/tokenizer_json.cpp
  ${CMAKE_CURRENT_LIST_DIR}/make_model/type_mix.cpp ${CMAKE_CURRENT_LIST_DIR}/make_model/vocabulary.cpp
  ${CMAKE_CURRENT_LIST_DIR}/make_model/weight_source.cpp ${CMAKE_CURRENT_LIST_DIR}/make_model/weight_values.cpp)
target_link_libraries(pantheon_make_model PUBLIC pantheon_test_support pantheon_kernels pantheon_model
                                          PRIVATE nlohmann_json::nlohmann_json)
add_executable(make_model ${CMAKE_CURRENT_LIST_DIR}/make_model/main.cpp)
target_link_libraries(make_model PRIVATE pantheon_make_model CLI11::CLI11)
pantheon_test(make_model_test SOURCES ${CMAKE_CURRENT_LIST_DIR}/make_model_test.cpp LIBS pantheon_make_model)
