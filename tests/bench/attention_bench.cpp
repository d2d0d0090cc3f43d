// Time of cpu attention over long contexts: cycles per row of the cache and KV head for one query (decode)
// and per query of a prompt chunk (prefill), each format of the cache. Shapes of the published models. Each
// result is compared with the reference before it is timed.
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdlib>
#include <memory>
#include <vector>

#include "kernels/attention/attention.h"
#include "kernels/attention/kv_append.h"

namespace pantheon::kernels {
namespace {

using Clock = std::chrono::steady_clock;

constexpr int kHeads = 16, kHeadsKv = 2, kHeadDim = 256;
constexpr int kSink = 16, kWindow = 128;

double seconds_since(Clock::time_point start) {
    return std::chrono::duration<double>(Clock::now() - start).count();
}

std::vector<float> random_values(std::size_t n, std::uint64_t state) {
    std::vector<float> values(n);
    for (float& value : values) {
        state = state * 6364136223846793005U + 1442695040888963407U;
        value = static_cast<float>(state >> 40) * 1e-7F - 0.8F;
    }
    return values;
}

/// A sequence in pages of its own, one after the other in memory.
class Sequence {
  public:
    Sequence(KvRowType type, bool keeps_half, int n_rows) {
        const std::size_t n_pages =
            static_cast<std::size_t>((n_rows + kKvPageRows - 1) / kKvPageRows) * kHeadsKv;
        view.type = type;
        view.n_head_kv = kHeadsKv;
        view.head_dim = kHeadDim;
        view.pages = fill(rows_, table_, n_pages, kv_page_bytes(type, kHeadDim));
        if (keeps_half) {
            view.half_pages = fill(halves_, half_table_, n_pages, kv_page_bytes(KvRowType::f16, kHeadDim));
            view.sink = kSink;
            view.window = kWindow;
        }
        ThreadTeam team(1);
        Exec exec(team);
        constexpr int kChunk = 512;
        for (int pos = 0; pos < n_rows; pos += kChunk) {
            const int n = std::min(kChunk, n_rows - pos);
            const auto k = random_values(static_cast<std::size_t>(n) * kHeadsKv * kHeadDim, pos + 1),
                       v = random_values(k.size(), pos + 2);
            const AttentionRun run{0, n, pos, view};
            kv_append_ref(exec, &run, 1, k.data(), v.data());
        }
    }
    KvView view;

  private:
    static std::byte* const* fill(std::vector<std::byte>& rows, std::vector<std::byte*>& table, std::size_t n,
                                  std::size_t page_bytes) {
        rows.resize(n * page_bytes);
        for (std::size_t i = 0; i < n; ++i) table.push_back(rows.data() + i * page_bytes);
        return table.data();
    }
    std::vector<std::byte> rows_, halves_;
    std::vector<std::byte*> table_, half_table_;
};

/// Of a chain of dependent additions, one a cycle.
double measured_ghz() {
    constexpr int kAdds = 20000;
    std::uint64_t x = 0;
    double best = 1e9;
    for (int i = 0; i < 400; ++i) {
        const auto start = Clock::now();
        for (int add = 0; add < kAdds; ++add) asm volatile("add $1, %0" : "+r"(x));
        best = std::min(best, seconds_since(start));
    }
    return kAdds / best / 1e9;
}

void measure(const char* name, KvRowType type, bool keeps_half, int n_rows, int n_queries, int n_threads,
             double ghz) {
    const Sequence sequence(type, keeps_half, n_rows);
    ThreadTeam team(n_threads);
    Exec exec(team);
    exec.reserve_scratch(attention_scratch_bytes(n_rows, kHeadDim, kHeads / kHeadsKv));
    const auto q = random_values(static_cast<std::size_t>(n_queries) * kHeads * kHeadDim, 7);
    std::vector<float> y(q.size()), want(static_cast<std::size_t>(kHeads) * kHeadDim);
    const AttentionRun run{0, n_queries, n_rows - n_queries, sequence.view};
    const AttentionRun first{0, 1, n_rows - n_queries, sequence.view};
    attention_ref(exec, &first, 1, q.data(), want.data(), kHeads);
    // What other work leaves of the caches: the weights of the layers between pass through them.
    std::vector<char> others(n_queries == 1 ? 96U << 20 : 0);
    double best = 1e9;
    for (int i = 0; i < (n_queries == 1 ? 25 : 3); ++i) {
        for (std::size_t k = 0; k < others.size(); k += 64) others[k] = static_cast<char>(others[k] + 1);
        const auto start = Clock::now();
        attention_cpu(exec, &run, 1, q.data(), y.data(), kHeads);
        best = std::min(best, seconds_since(start));
    }
    double error = 0;
    for (std::size_t i = 0; i < want.size(); ++i)
        error = std::max(error, std::fabs(static_cast<double>(y[i]) - want[i]));
    const double n_pairs = static_cast<double>(n_queries) * (n_rows - (n_queries - 1) / 2.0) * kHeadsKv;
    fmt::print(
        "{:5} rows {:6} queries {:4} threads {}: {:8.3f} ms, {:6.1f} cycles a row, KV head and query{}\n",
        name, n_rows, n_queries, n_threads, best * 1e3, best * ghz * 1e9 * n_threads / n_pairs,
        error < 1e-4 ? "" : "  WRONG");
}

int run(int argc, char** argv) {
    const int max_threads = argc > 1 ? std::max(1, std::atoi(argv[1])) : 2;
    const double ghz = measured_ghz();
    fmt::print("{:.2f} GHz; {} query heads, {} KV heads, head dim {}\n", ghz, kHeads, kHeadsKv, kHeadDim);
    const struct {
        const char* name;
        KvRowType type;
        bool keeps_half;
    } kFormats[] = {{"f32", KvRowType::f32, false},
                    {"f16", KvRowType::f16, false},
                    {"q8_0", KvRowType::q8_0, false},
                    {"q4_0", KvRowType::q4_0, true}};
    for (const auto& format : kFormats)
        for (const int n_threads : {1, max_threads}) {
            for (const int n_rows : {4096, 16384})
                measure(format.name, format.type, format.keeps_half, n_rows, 1, n_threads, ghz);
            measure(format.name, format.type, format.keeps_half, 4096, 512, n_threads, ghz);
            if (max_threads == 1) break;
        }
    return 0;
}

}  // namespace
}  // namespace pantheon::kernels

int main(int argc, char** argv) {
    return pantheon::kernels::run(argc, argv);
}
