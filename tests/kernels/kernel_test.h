// What op tests share: seeded data, output buffers with guards, a comparison that no NaN passes, and
// tolerances.
#pragma once

#include <gtest/gtest.h>

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <string>
#include <vector>

#include "kernels/exec/exec.h"
#include "kernels/exec/thread_team.h"

namespace pantheon::kernels::test {

namespace tol {
/// One f32 rounding of a value computed in f64, relative to the largest value of the result.
constexpr double rounded_once = 1.2e-7;
/// A few f32 roundings in a row, or f32 state carried over a few hundred tokens.
constexpr double few_roundings = 2e-6;
}  // namespace tol

/// An implementation under test.
template <class Op>
struct Impl {
    std::string name;
    Op* op;
    CpuIsa isa;       // the inner loops it runs with
    double rounding;  // tolerance for one op on plain values
    bool is_exact;    // weights and inputs as they are, sums in f64
};

/// The instruction sets of the cpu backend that this host can run.
inline std::vector<CpuIsa> cpu_isas() {
    std::vector<CpuIsa> isas;
    for (const CpuIsa isa : {CpuIsa::scalar, CpuIsa::avx2, CpuIsa::avx512})
        if (host_has(isa)) isas.push_back(isa);
    return isas;
}

/// Every implementation of an op that runs on this host.
template <class Op>
std::vector<Impl<Op>> host_impls(Op* ref, Op* cpu) {
    std::vector<Impl<Op>> impls = {{"ref", ref, CpuIsa::scalar, tol::rounded_once, true}};
    for (const CpuIsa isa : cpu_isas())
        impls.push_back({std::string("cpu ") + cpu_isa_name(isa), cpu, isa, tol::few_roundings, false});
    return impls;
}
/// For an op of which there is one for all host backends.
template <class Op>
std::vector<Impl<Op>> host_impls(Op* shared) {
    return {{"ref", shared, CpuIsa::scalar, tol::rounded_once, true}};
}

/// Uniform in [low, high), the same on every machine.
inline std::vector<float> random_values(std::size_t n, std::uint64_t seed, double low = -1, double high = 1) {
    std::vector<float> values(n);
    std::uint64_t state = seed * 0x9E3779B97F4A7C15u + 1;
    for (float& value : values) {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        value =
            static_cast<float>(low + (high - low) * static_cast<double>(state >> 11) / 9007199254740992.0);
    }
    return values;
}

/// An output of n values with guards on both sides, filled with NaN so that what is not written shows.
template <class T = float>
class Guarded {
  public:
    explicit Guarded(std::size_t n) : n_(n), values_(n + 2 * kGuard, std::numeric_limits<T>::quiet_NaN()) {
        for (std::size_t i = 0; i < kGuard; ++i) values_[i] = values_[kGuard + n + i] = static_cast<T>(12345);
    }
    explicit Guarded(const std::vector<T>& content) : Guarded(content.size()) {
        std::copy(content.begin(), content.end(), data());
    }
    ~Guarded() {
        for (std::size_t i = 0; i < kGuard; ++i) {
            EXPECT_EQ(values_[i], static_cast<T>(12345)) << "written before the start";
            EXPECT_EQ(values_[kGuard + n_ + i], static_cast<T>(12345)) << "written past the end";
        }
    }
    T* data() { return values_.data() + kGuard; }
    T& operator[](std::size_t i) { return values_[kGuard + i]; }
    std::vector<T> vector() const {
        return {values_.begin() + kGuard, values_.end() - static_cast<std::ptrdiff_t>(kGuard)};
    }

  private:
    static constexpr std::size_t kGuard = 32;
    std::size_t n_;
    std::vector<T> values_;
};

/// Every element within tolerance · max(|want|, the floor); NaN never is.
template <class Have, class Want>
void expect_close(const Have& have, const Want& want, double tolerance, double floor = 1e-30) {
    ASSERT_EQ(have.size(), want.size());
    double scale = floor;
    for (const auto value : want) scale = std::max(scale, std::fabs(static_cast<double>(value)));
    for (std::size_t i = 0; i < want.size(); ++i)
        ASSERT_LE(std::fabs(static_cast<double>(have[i]) - static_cast<double>(want[i])), tolerance * scale)
            << "element " << i << ": " << have[i] << ", want " << want[i];
}

/// Runs a body with each of several team sizes; scratch for everything these tests do.
template <class Op, class Body>
void with_teams(const Impl<Op>& impl, Body&& body) {
    SCOPED_TRACE(impl.name);
    for (const int n_threads : {1, 2, 3}) {
        SCOPED_TRACE("threads " + std::to_string(n_threads));
        ThreadTeam team(n_threads);
        Exec exec(team, impl.isa);
        exec.reserve_scratch(1 << 16);
        body(exec);
    }
}

inline double sigmoid(double x) {
    return 1 / (1 + std::exp(-x));
}
inline double silu(double x) {
    return x / (1 + std::exp(-x));
}

}  // namespace pantheon::kernels::test
