# The embedded model: how it was made, what it computes, what it says. Debian's own python3, for its torch.
find_program(PANTHEON_PYTHON NAMES python3 PATHS /usr/bin NO_DEFAULT_PATH REQUIRED)

# pantheon_embedded_test(NAME SCRIPT LABEL ARGS… ): one script on the shipped model and the programs of this build.
function(pantheon_embedded_test name script label)
  add_test(NAME embedded.${name}
    COMMAND ${PANTHEON_PYTHON} ${CMAKE_SOURCE_DIR}/tests/embedded/${script} --build ${CMAKE_BINARY_DIR} ${ARGN})
  set_tests_properties(embedded.${name} PROPERTIES LABELS ${label} TIMEOUT 600 ENVIRONMENT PYTHONDONTWRITEBYTECODE=1)
endfunction()

pantheon_embedded_test(forward forward_test.py fast)
pantheon_embedded_test(toy_run toy_run_test.py fast)
pantheon_embedded_test(abilities abilities_test.py fast)
pantheon_embedded_test(answers answers_test.py fast)
pantheon_embedded_test(damage damage_test.py fast)
pantheon_embedded_test(kv_formats kv_formats_test.py fast)
pantheon_embedded_test(llama llama_test.py oracle --questions ${CMAKE_CURRENT_LIST_DIR}/questions.jsonl)
set_tests_properties(embedded.llama PROPERTIES FIXTURES_REQUIRED oracle)
