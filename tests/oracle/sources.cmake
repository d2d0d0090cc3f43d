# Comparison with llama.cpp. It comes from npm, at a pinned version; without it these tests fail, they never skip.
# Debian's own python3: the interpreter that Debian's python3-zmq and python3-msgpack belong to.
find_program(PANTHEON_PYTHON NAMES python3 PATHS /usr/bin NO_DEFAULT_PATH REQUIRED)

add_test(NAME oracle.install COMMAND ${CMAKE_CURRENT_LIST_DIR}/install_oracle.sh)
set_tests_properties(oracle.install PROPERTIES FIXTURES_SETUP oracle LABELS oracle TIMEOUT 300)

# pantheon_oracle_test(NAME SCRIPT ARGS… ): one run of a script against llama.cpp.
function(pantheon_oracle_test name script)
  add_test(NAME oracle.${name}
    COMMAND ${PANTHEON_PYTHON} ${CMAKE_SOURCE_DIR}/tests/oracle/${script} --build ${CMAKE_BINARY_DIR} ${ARGN})
  set_tests_properties(oracle.${name} PROPERTIES FIXTURES_REQUIRED oracle LABELS oracle TIMEOUT 600)
endfunction()

add_executable(dequantize_stdin ${CMAKE_CURRENT_LIST_DIR}/dequantize_stdin.cpp)
set_target_properties(dequantize_stdin PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/tests)
target_link_libraries(dequantize_stdin PRIVATE pantheon_kernels)
pantheon_oracle_test(weight_types dequantize_test.py)

add_executable(tokenize_stdin ${CMAKE_CURRENT_LIST_DIR}/tokenize_stdin.cpp)
set_target_properties(tokenize_stdin PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/tests)
target_link_libraries(tokenize_stdin PRIVATE pantheon_model)
pantheon_oracle_test(tokenizer tokenizer_test.py)

foreach(group shapes mixes plain_types k_types iq_types)
  pantheon_oracle_test(logits.${group} logits_test.py --group ${group})
endforeach()

# Enough to notice a wrong kernel; all types at full length are for the hand (label soak).
pantheon_oracle_test(kl kl_test.py --types Q4_K Q8_0 IQ2_S F16 --seeds 4 --positions 150)
pantheon_oracle_test(kl_all kl_test.py)
set_tests_properties(oracle.kl_all PROPERTIES LABELS soak TIMEOUT 3600)

pantheon_oracle_test(perplexity perplexity_test.py)
pantheon_oracle_test(perplexity_of_mixes perplexity_test.py --quantised)
set_tests_properties(oracle.perplexity_of_mixes PROPERTIES LABELS soak)

add_test(NAME oracle.yardstick COMMAND ${PANTHEON_PYTHON} ${CMAKE_CURRENT_LIST_DIR}/compare_test.py)
set_tests_properties(oracle.yardstick PROPERTIES LABELS fast TIMEOUT 60)
