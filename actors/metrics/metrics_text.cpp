#include "actors/metrics/metrics_text.h"

#include <fmt/format.h>

#include <initializer_list>
#include <string_view>
#include <utility>

namespace pantheon::actors {
namespace {

/// Writes one metric after the other.
class Page {
  public:
    struct Sample {
        std::string labels;  // such as state="busy"; empty: none
        double value = 0;
    };
    void gauge(std::string_view name, std::string_view help, std::initializer_list<Sample> samples) {
        metric(name, "gauge", help, samples);
    }
    void counter(std::string_view name, std::string_view help, std::initializer_list<Sample> samples) {
        metric(name, "counter", help, samples);
    }
    void head(std::string_view name, std::string_view type, std::string_view help) {
        text_ += fmt::format("# HELP {0} {1}\n# TYPE {0} {2}\n", name, help, type);
    }
    void sample(std::string_view name, const Sample& s) {
        // 15 digits: every count and size up to a petabyte exactly, and no 0.41599999999999998.
        text_ += s.labels.empty() ? fmt::format("{} {:.15g}\n", name, s.value)
                                  : fmt::format("{}{{{}}} {:.15g}\n", name, s.labels, s.value);
    }
    template <class Histogram>
    void histogram(std::string_view name, std::string_view help, const Histogram& values) {
        head(name, "histogram", help);
        const std::string bucket = std::string(name) + "_bucket";
        for (std::size_t i = 0; i < values.n_bounds(); ++i)
            sample(bucket,
                   {fmt::format("le=\"{}\"", values.bound(i)), static_cast<double>(values.at_most(i))});
        sample(bucket, {"le=\"+Inf\"", static_cast<double>(values.count())});
        sample(std::string(name) + "_sum", {"", values.sum()});
        sample(std::string(name) + "_count", {"", static_cast<double>(values.count())});
    }
    std::string take() { return std::move(text_); }

  private:
    void metric(std::string_view name, std::string_view type, std::string_view help,
                std::initializer_list<Sample> samples) {
        head(name, type, help);
        for (const Sample& s : samples) sample(name, s);
    }
    std::string text_;
};

double number(std::uint64_t n) {
    return static_cast<double>(n);
}
double seconds(std::int64_t ms) {
    return static_cast<double>(ms) / 1000;
}

/// What stands in a label's quotes.
std::string escaped(std::string_view value) {
    std::string text;
    for (const char c : value) {
        if (c == '\\' || c == '"') text += '\\';
        if (c == '\n') {
            text += "\\n";
        } else {
            text += c;
        }
    }
    return text;
}

}  // namespace

std::string metrics_text(const DaemonSettings& settings, const EngineSnapshot& engine,
                         const RequestCounters& requests, std::chrono::seconds uptime) {
    Page page;
    page.gauge(
        "pantheon_build_info", "Version and model; always 1.",
        {{fmt::format("version=\"{}\",model=\"{}\"", escaped(settings.version), escaped(settings.model.name)),
          1}});
    page.gauge("pantheon_uptime_seconds", "Since the daemon's start.",
               {{"", number(static_cast<std::uint64_t>(uptime.count()))}});

    page.head("pantheon_requests_total", "counter",
              "generate and score requests by how they finished; refused: never accepted.");
    for (const auto& [finish, n] : requests.by_finish)
        page.sample("pantheon_requests_total", {fmt::format("finish=\"{}\"", finish), number(n)});
    page.counter("pantheon_requests_ended_slow_total",
                 "Of the cancelled, those that ended because of their client: unread, or out of credit while "
                 "others waited.",
                 {{"reason=\"unread\"", number(requests.n_ended_unread)},
                  {"reason=\"credit\"", number(engine.n_ended_without_credit)}});
    page.counter("pantheon_tokens_total", "Tokens of prompts, of these taken from the cache, and of replies.",
                 {{"kind=\"prompt\"", number(engine.prompt_tokens)},
                  {"kind=\"cached\"", number(engine.cached_tokens)},
                  {"kind=\"completion\"", number(engine.completion_tokens)}});

    page.gauge("pantheon_queue_requests", "Requests that wait for a slot.", {{"", number(engine.n_waiting)}});
    page.gauge("pantheon_queue_limit", "scheduler.queue.", {{"", number(engine.queue_limit)}});
    page.gauge("pantheon_slots", "Slots that may be used now.", {{"", static_cast<double>(engine.n_slots)}});
    page.gauge("pantheon_sequences", "Requests under way, in a slot or parked.",
               {{"state=\"busy\"", static_cast<double>(engine.n_busy)},
                {"state=\"parked\"", static_cast<double>(engine.n_parked)}});

    page.histogram("pantheon_step_rows", "Rows of a step.", engine.step_rows);
    page.histogram("pantheon_step_seconds", "What a step took.", engine.step_seconds);
    page.gauge("pantheon_longest_gap_seconds",
               "Longest time between two tokens of a stream that its client was not to blame for.",
               {{"window=\"start\"", seconds(engine.longest_gap_ms)},
                {"window=\"minute\"", seconds(engine.longest_gap_last_minute_ms)}});

    page.gauge("pantheon_cache_bytes", "Kept states in memory.", {{"", number(engine.cache_bytes)}});
    page.gauge("pantheon_cache_limit_bytes", "sessions.bytes.", {{"", number(engine.cache_limit_bytes)}});
    page.gauge("pantheon_cache_disk_bytes", "Saved sessions and spilled states on disk.",
               {{"", number(engine.cache_disk_bytes)}});
    page.counter("pantheon_cache_hits_total", "Requests that resumed from a kept state.",
                 {{"", number(engine.cache_hits)}});
    page.counter("pantheon_cache_misses_total", "Requests that could have and found none.",
                 {{"", number(engine.cache_misses)}});

    page.gauge("pantheon_weights_bytes", "Of the model.", {{"", number(settings.model.weights_bytes)}});
    page.gauge("pantheon_repack_bytes", "Packed copies of weights.", {{"", number(engine.repack_bytes)}});
    page.gauge("pantheon_kv_used_bytes", "KV of the sequences in slots.",
               {{"", number(engine.kv_used_bytes)}});
    page.gauge("pantheon_kv_pool_bytes", "What it may take; 0: whatever it needs.",
               {{"", number(engine.kv_pool_bytes)}});

    page.gauge("pantheon_memory_level", "0: OK, 1: TIGHT, 2: CRITICAL.",
               {{"", static_cast<double>(engine.memory_level)}});
    page.gauge("pantheon_memory_rung", "Highest rung of the memory ladder in force.",
               {{"", static_cast<double>(engine.memory_rung)}});
    const MemoryCounters& memory = engine.memory_counters;
    page.counter("pantheon_memory_rungs_total", "Rungs put in force and undone.",
                 {{"direction=\"up\"", number(memory.n_rungs_up)},
                  {"direction=\"down\"", number(memory.n_rungs_down)}});
    page.counter("pantheon_memory_refused_total", "Requests refused because memory was short.",
                 {{"", number(memory.n_refused)}});
    page.counter("pantheon_memory_cache_dropped_bytes_total", "Of the cache, when a rung came into force.",
                 {{"", number(memory.cache_bytes_dropped)}});
    page.counter("pantheon_memory_unpacked_total", "Times that packed weights were dropped.",
                 {{"", number(memory.n_unpacked)}});
    return page.take();
}

}  // namespace pantheon::actors
