# Decisions of the prefix cache, without actors.
pantheon_test(prefix_cache_test
  SOURCES
    ${CMAKE_CURRENT_LIST_DIR}/cache/checkpoint_marks_test.cpp
    ${CMAKE_CURRENT_LIST_DIR}/cache/disk_index_test.cpp
    ${CMAKE_CURRENT_LIST_DIR}/cache/prefix_cache_test.cpp
  LIBS pantheon_actors
  LABELS fast)
# Decisions of the memory ladder, without actors.
pantheon_test(ladder_policy_test
  SOURCES ${CMAKE_CURRENT_LIST_DIR}/memory/ladder_policy_test.cpp
  LIBS pantheon_actors
  LABELS fast)
# What is measured, what is made of it and how it is printed, without actors.
pantheon_test(pacing_test
  SOURCES
    ${CMAKE_CURRENT_LIST_DIR}/metrics/gap_meter_test.cpp
    ${CMAKE_CURRENT_LIST_DIR}/metrics/metrics_text_test.cpp
    ${CMAKE_CURRENT_LIST_DIR}/step_pacer_test.cpp
  LIBS pantheon_actors
  LABELS fast)
# Actors on CAF's test scheduler: one thread, virtual time, a fake device and a fake socket.
pantheon_test(actors_test
  SOURCES
    ${CMAKE_CURRENT_LIST_DIR}/admission_queue_test.cpp
    ${CMAKE_CURRENT_LIST_DIR}/cache_test.cpp
    ${CMAKE_CURRENT_LIST_DIR}/cancel_test.cpp
    ${CMAKE_CURRENT_LIST_DIR}/failures_test.cpp
    ${CMAKE_CURRENT_LIST_DIR}/fake_engine.cpp
    ${CMAKE_CURRENT_LIST_DIR}/flow_test.cpp
    ${CMAKE_CURRENT_LIST_DIR}/kv_pool_test.cpp
    ${CMAKE_CURRENT_LIST_DIR}/memory_ladder_test.cpp
    ${CMAKE_CURRENT_LIST_DIR}/packing_test.cpp
    ${CMAKE_CURRENT_LIST_DIR}/parked_streams_test.cpp
    ${CMAKE_CURRENT_LIST_DIR}/parking_test.cpp
    ${CMAKE_CURRENT_LIST_DIR}/q4_0_under_pressure_test.cpp
    ${CMAKE_CURRENT_LIST_DIR}/reload_test.cpp
    ${CMAKE_CURRENT_LIST_DIR}/requests_test.cpp
    ${CMAKE_CURRENT_LIST_DIR}/runs_in_parts_test.cpp
    ${CMAKE_CURRENT_LIST_DIR}/saved_sessions_test.cpp
    ${CMAKE_CURRENT_LIST_DIR}/step_planner_test.cpp
    ${CMAKE_CURRENT_LIST_DIR}/thinking_test.cpp
    ${CMAKE_CURRENT_LIST_DIR}/token_rights_test.cpp
    ${CMAKE_CURRENT_SOURCE_DIR}/model/tokenizer/small_vocabulary.cpp
  LIBS pantheon_actors
  LABELS fast)
target_precompile_headers(actors_test PRIVATE ${CMAKE_SOURCE_DIR}/actors/caf.h)
# These tests wait for nothing and compute nothing; optimising them only costs the time to build them.
target_compile_options(actors_test PRIVATE $<$<CONFIG:Release>:-O0>)
# The same way, about what of the cache is on disk, in real files, and about what is rounded.
pantheon_test(spill_test
  SOURCES
    ${CMAKE_CURRENT_LIST_DIR}/fake_engine.cpp
    ${CMAKE_CURRENT_LIST_DIR}/rounded_states_test.cpp
    ${CMAKE_CURRENT_LIST_DIR}/spill_folder_test.cpp
    ${CMAKE_CURRENT_LIST_DIR}/spill_test.cpp
    ${CMAKE_CURRENT_SOURCE_DIR}/model/tokenizer/small_vocabulary.cpp
  LIBS pantheon_actors
  LABELS fast)
target_precompile_headers(spill_test PRIVATE ${CMAKE_SOURCE_DIR}/actors/caf.h)
target_compile_options(spill_test PRIVATE $<$<CONFIG:Release>:-O0>)
