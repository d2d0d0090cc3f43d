// Cycles per weight block of the product kernels, one thread, weights and activations in the first caches:
// the file's rows and packed panels, one to eight columns. Each kernel's result is compared with plain C++
// before it is timed.
#include <fmt/format.h>
#include <sched.h>

#include <algorithm>
#include <chrono>
#include <cstring>
#include <vector>

#include "kernels/cpu/leaves.h"
#include "kernels/linear/activation_rows.h"
#include "kernels/linear/weight_panels.h"
#include "tests/kernels/activations.h"
#include "tests/kernels/weight_bytes.h"

namespace pantheon::kernels::test {
namespace {

using Clock = std::chrono::steady_clock;

constexpr std::int64_t kIn = 512;  // 32 rows fit into the first cache with their columns
constexpr int kOut = 32;
constexpr int kSlices = 400;

double seconds_since(Clock::time_point start) {
    return std::chrono::duration<double>(Clock::now() - start).count();
}

/// The best of many short slices: others may run on this core.
template <class Body>
double best_seconds(Body&& body) {
    double best = 1e9;
    for (int i = 0; i < kSlices; ++i) {
        const auto start = Clock::now();
        body();
        best = std::min(best, seconds_since(start));
    }
    return best;
}

/// Of a chain of dependent additions, one a cycle.
double measured_ghz() {
    constexpr int kAdds = 20000;
    std::uint64_t x = 0;
    const double s = best_seconds([&] {
        for (int i = 0; i < kAdds; ++i) asm volatile("add $1, %0" : "+r"(x));
    });
    return kAdds / s / 1e9;
}

struct AlignedBytes {
    explicit AlignedBytes(std::int64_t n) : storage(static_cast<std::size_t>(n) + 64) {
        const auto at = reinterpret_cast<std::uintptr_t>(storage.data());
        data = storage.data() + (64 - at % 64) % 64;
    }
    std::vector<std::byte> storage;
    std::byte* data;
};

int run() {
    const double ghz = measured_ghz();
    fmt::print(
        "host {}, {:.2f} GHz; cycles per block of 256 weights and column (Q8_0: eight blocks of 32), GB/s of "
        "weights\n",
        cpu_isa_name(host_cpu_isa()), ghz);
    for (const WeightType type : {WeightType::q3_k, WeightType::q4_k, WeightType::q5_k, WeightType::q6_k,
                                  WeightType::q8_0, WeightType::iq4_xs, WeightType::f32}) {
        const WeightBytes weights(type, kIn, kOut, 3);
        const WeightMatrix matrix = weights.matrix();
        ThreadTeam team(1);
        Exec exec(team);
        Input in(random_values(kMaxColumns * kIn, 5), kIn);
        std::vector<Column> columns;
        for (int c = 0; c < kMaxColumns; ++c) {
            Column column{in.rows.row(c), nullptr, nullptr, nullptr};
            if (const int width = quant_width(type)) {
                const QuantisedRows& rows = in.rows.quantised(exec, width);
                column = {nullptr, rows.q(c), rows.d(c), rows.sums(c)};
            }
            columns.push_back(column);
        }
        std::vector<float> y(kMaxColumns * kOut), want(kMaxColumns * kOut);
        float *out[kMaxColumns], *out_want[kMaxColumns];
        for (int c = 0; c < kMaxColumns; ++c) {
            out[c] = y.data() + c * kOut;
            out_want[c] = want.data() + c * kOut;
        }
        cpu_leaves(CpuIsa::scalar)
            .dot_rows(type)(matrix.data, matrix.row_bytes, kOut, kIn, columns.data(), kMaxColumns, out_want);
        const auto is_right = [&](int n) {
            return std::memcmp(y.data(), want.data(), static_cast<std::size_t>(n * kOut) * sizeof(float)) ==
                   0;
        };
        const double n_blocks = kOut * kIn / 256.0;
        const double bytes = static_cast<double>(matrix.row_bytes * kOut);
        for (const CpuIsa isa : {CpuIsa::avx2, CpuIsa::avx512}) {
            if (!host_has(isa)) continue;
            const Leaves& leaves = cpu_leaves(isa);
            const auto report = [&](const char* kernel, int n, int repeats, double seconds) {
                if (!is_right(n)) fmt::print("WRONG ");
                const double per_run = seconds / repeats;
                fmt::print("{:8} {:7} {:7} columns {}: {:6.2f} cycles, {:6.1f} GB/s\n",
                           weight_type_info(type)->name, cpu_isa_name(isa), kernel, n,
                           per_run * ghz * 1e9 / n_blocks / n, bytes / per_run / 1e9);
            };
            constexpr int kRepeats = 8;
            if (isa == CpuIsa::avx2 || quant_width(type) == 0)
                for (const int n : {1, 2, 4, 8}) {
                    std::fill(y.begin(), y.end(), 0.0f);
                    report("rows", n, kRepeats, best_seconds([&] {
                               for (int i = 0; i < kRepeats; ++i)
                                   leaves.dot_rows(type)(matrix.data, matrix.row_bytes, kOut, kIn,
                                                         columns.data(), n, out);
                           }));
                }
            if (!leaves.dot_panels(type)) continue;
            const PanelLayout layout = panel_layout(type, panel_rows(isa), kIn);
            AlignedBytes panels(layout.bytes * layout.n_panels(kOut));
            const auto pack = [&] {
                for (int first = 0; first < kOut; first += layout.n_rows)
                    pack_panel(type, layout, matrix.row(first), matrix.row_bytes,
                               std::min(kOut - first, layout.n_rows),
                               panels.data + first / layout.n_rows * layout.bytes);
            };
            const double packing = best_seconds(pack);
            fmt::print("{:8} {:7} packing: {:.2f} GB/s\n", weight_type_info(type)->name, cpu_isa_name(isa),
                       bytes / packing / 1e9);
            for (int n = 1; n <= kMaxPanelColumns; ++n) {
                std::fill(y.begin(), y.end(), 0.0f);
                report("panels", n, kRepeats, best_seconds([&] {
                           for (int i = 0; i < kRepeats; ++i)
                               leaves.dot_panels(type)(panels.data, layout, kOut, columns.data(), n, out);
                       }));
            }
        }
    }
    return 0;
}

}  // namespace
}  // namespace pantheon::kernels::test

int main() {
    // One core: where the clock and the caches are steady.
    cpu_set_t core;
    CPU_ZERO(&core);
    CPU_SET(sched_getcpu(), &core);
    sched_setaffinity(0, sizeof core, &core);
    return pantheon::kernels::test::run();
}
