#include "actors/metrics/metrics_text.h"

#include <gtest/gtest.h>

namespace pantheon::actors {
namespace {

constexpr const char* kPage = R"(# HELP pantheon_build_info Version and model; always 1.
# TYPE pantheon_build_info gauge
pantheon_build_info{version="1.2",model="a \"quoted\\ name\nof two lines"} 1
# HELP pantheon_uptime_seconds Since the daemon's start.
# TYPE pantheon_uptime_seconds gauge
pantheon_uptime_seconds 90
# HELP pantheon_requests_total generate and score requests by how they finished; refused: never accepted.
# TYPE pantheon_requests_total counter
pantheon_requests_total{finish="cancelled"} 0
pantheon_requests_total{finish="deadline"} 0
pantheon_requests_total{finish="error"} 0
pantheon_requests_total{finish="length"} 0
pantheon_requests_total{finish="refused"} 2
pantheon_requests_total{finish="stop"} 7
# HELP pantheon_requests_ended_slow_total Of the cancelled, those that ended because of their client: unread, or out of credit while others waited.
# TYPE pantheon_requests_ended_slow_total counter
pantheon_requests_ended_slow_total{reason="unread"} 1
pantheon_requests_ended_slow_total{reason="credit"} 2
# HELP pantheon_tokens_total Tokens of prompts, of these taken from the cache, and of replies.
# TYPE pantheon_tokens_total counter
pantheon_tokens_total{kind="prompt"} 9007199254
pantheon_tokens_total{kind="cached"} 21
pantheon_tokens_total{kind="completion"} 42
# HELP pantheon_queue_requests Requests that wait for a slot.
# TYPE pantheon_queue_requests gauge
pantheon_queue_requests 5
# HELP pantheon_queue_limit scheduler.queue.
# TYPE pantheon_queue_limit gauge
pantheon_queue_limit 64
# HELP pantheon_slots Slots that may be used now.
# TYPE pantheon_slots gauge
pantheon_slots 8
# HELP pantheon_sequences Requests under way, in a slot or parked.
# TYPE pantheon_sequences gauge
pantheon_sequences{state="busy"} 3
pantheon_sequences{state="parked"} 1
# HELP pantheon_step_rows Rows of a step.
# TYPE pantheon_step_rows histogram
pantheon_step_rows_bucket{le="1"} 1
pantheon_step_rows_bucket{le="2"} 1
pantheon_step_rows_bucket{le="4"} 2
pantheon_step_rows_bucket{le="8"} 3
pantheon_step_rows_bucket{le="16"} 3
pantheon_step_rows_bucket{le="32"} 3
pantheon_step_rows_bucket{le="64"} 3
pantheon_step_rows_bucket{le="128"} 3
pantheon_step_rows_bucket{le="256"} 3
pantheon_step_rows_bucket{le="512"} 3
pantheon_step_rows_bucket{le="+Inf"} 4
pantheon_step_rows_sum 523
pantheon_step_rows_count 4
# HELP pantheon_step_seconds What a step took.
# TYPE pantheon_step_seconds histogram
pantheon_step_seconds_bucket{le="0.002"} 1
pantheon_step_seconds_bucket{le="0.005"} 1
pantheon_step_seconds_bucket{le="0.01"} 1
pantheon_step_seconds_bucket{le="0.02"} 1
pantheon_step_seconds_bucket{le="0.05"} 1
pantheon_step_seconds_bucket{le="0.1"} 1
pantheon_step_seconds_bucket{le="0.2"} 2
pantheon_step_seconds_bucket{le="0.3"} 3
pantheon_step_seconds_bucket{le="0.5"} 3
pantheon_step_seconds_bucket{le="1"} 3
pantheon_step_seconds_bucket{le="2"} 3
pantheon_step_seconds_bucket{le="10"} 3
pantheon_step_seconds_bucket{le="+Inf"} 4
pantheon_step_seconds_sum 12.4515
pantheon_step_seconds_count 4
# HELP pantheon_longest_gap_seconds Longest time between two tokens of a stream that its client was not to blame for.
# TYPE pantheon_longest_gap_seconds gauge
pantheon_longest_gap_seconds{window="start"} 0.416
pantheon_longest_gap_seconds{window="minute"} 0.205
# HELP pantheon_cache_bytes Kept states in memory.
# TYPE pantheon_cache_bytes gauge
pantheon_cache_bytes 11
# HELP pantheon_cache_limit_bytes sessions.bytes.
# TYPE pantheon_cache_limit_bytes gauge
pantheon_cache_limit_bytes 12
# HELP pantheon_cache_disk_bytes Saved sessions and spilled states on disk.
# TYPE pantheon_cache_disk_bytes gauge
pantheon_cache_disk_bytes 13
# HELP pantheon_cache_hits_total Requests that resumed from a kept state.
# TYPE pantheon_cache_hits_total counter
pantheon_cache_hits_total 14
# HELP pantheon_cache_misses_total Requests that could have and found none.
# TYPE pantheon_cache_misses_total counter
pantheon_cache_misses_total 15
# HELP pantheon_weights_bytes Of the model.
# TYPE pantheon_weights_bytes gauge
pantheon_weights_bytes 4796143552
# HELP pantheon_repack_bytes Packed copies of weights.
# TYPE pantheon_repack_bytes gauge
pantheon_repack_bytes 4400000000
# HELP pantheon_kv_used_bytes KV of the sequences in slots.
# TYPE pantheon_kv_used_bytes gauge
pantheon_kv_used_bytes 1000000007
# HELP pantheon_kv_pool_bytes What it may take; 0: whatever it needs.
# TYPE pantheon_kv_pool_bytes gauge
pantheon_kv_pool_bytes 2000000000
# HELP pantheon_memory_level 0: OK, 1: TIGHT, 2: CRITICAL.
# TYPE pantheon_memory_level gauge
pantheon_memory_level 1
# HELP pantheon_memory_rung Highest rung of the memory ladder in force.
# TYPE pantheon_memory_rung gauge
pantheon_memory_rung 3
# HELP pantheon_memory_rungs_total Rungs put in force and undone.
# TYPE pantheon_memory_rungs_total counter
pantheon_memory_rungs_total{direction="up"} 4
pantheon_memory_rungs_total{direction="down"} 1
# HELP pantheon_memory_refused_total Requests refused because memory was short.
# TYPE pantheon_memory_refused_total counter
pantheon_memory_refused_total 6
# HELP pantheon_memory_cache_dropped_bytes_total Of the cache, when a rung came into force.
# TYPE pantheon_memory_cache_dropped_bytes_total counter
pantheon_memory_cache_dropped_bytes_total 700
# HELP pantheon_memory_unpacked_total Times that packed weights were dropped.
# TYPE pantheon_memory_unpacked_total counter
pantheon_memory_unpacked_total 8
)";

TEST(MetricsTextTest, IsThePrometheusPageOfASnapshot) {
    DaemonSettings settings;
    settings.version = "1.2";
    settings.model.name = "a \"quoted\\ name\nof two lines";
    settings.model.weights_bytes = 4'796'143'552;
    RequestCounters requests;
    requests.by_finish["stop"] = 7;
    requests.by_finish["refused"] = 2;
    requests.n_ended_unread = 1;
    EngineSnapshot engine;
    engine.n_slots = 8;
    engine.n_busy = 3;
    engine.n_parked = 1;
    engine.n_waiting = 5;
    engine.queue_limit = 64;
    engine.kv_used_bytes = 1'000'000'007;
    engine.kv_pool_bytes = 2'000'000'000;
    engine.repack_bytes = 4'400'000'000;
    engine.prompt_tokens = 9'007'199'254;
    engine.cached_tokens = 21;
    engine.completion_tokens = 42;
    engine.cache_bytes = 11;
    engine.cache_limit_bytes = 12;
    engine.cache_disk_bytes = 13;
    engine.cache_hits = 14;
    engine.cache_misses = 15;
    engine.memory_level = MemoryLevel::tight;
    engine.memory_rung = 3;
    engine.memory_counters = {4, 1, 6, 700, 8};
    engine.longest_gap_ms = 416;
    engine.longest_gap_last_minute_ms = 205;
    engine.n_ended_without_credit = 2;
    for (const double rows : {1.0, 4.0, 5.0, 513.0}) engine.step_rows.add(rows);
    for (const double seconds : {0.0015, 0.2, 0.25, 12.0}) engine.step_seconds.add(seconds);
    EXPECT_EQ(metrics_text(settings, engine, requests, std::chrono::seconds(90)), kPage);
}

}  // namespace
}  // namespace pantheon::actors
