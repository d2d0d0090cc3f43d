#include "kernels/cpu/leaves.h"
#include "kernels/quant/half_values.h"

namespace pantheon::kernels {
namespace {

constexpr std::int64_t kGrain = 1 << 14;  // values: tens of kilobytes, so that the team's overhead is nothing

}  // namespace

void narrow_to_half_cpu(Exec& exec, const float* x, std::uint16_t* y, std::int64_t n) {
    const Leaves& leaves = cpu_leaves(exec.isa());
    exec.team().parallel_for(n, kGrain, [&](std::int64_t begin, std::int64_t end) {
        leaves.narrow_to_half(x + begin, y + begin, end - begin);
    });
}

void widen_half_cpu(Exec& exec, const std::uint16_t* x, float* y, std::int64_t n) {
    const Leaves& leaves = cpu_leaves(exec.isa());
    exec.team().parallel_for(n, kGrain, [&](std::int64_t begin, std::int64_t end) {
        leaves.widen_half(x + begin, y + begin, end - begin);
    });
}

}  // namespace pantheon::kernels
