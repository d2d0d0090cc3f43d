// Where a kernel runs: the threads it may use and the scratch memory it may write. Kernels allocate nothing;
// each op's header says how much scratch it needs and the caller reserves that before the step.
#pragma once

#include <cassert>
#include <cstddef>
#include <memory>
#include <type_traits>

#include "kernels/cpu/isa.h"
#include "kernels/exec/thread_team.h"

namespace pantheon::kernels {

class Exec {
  public:
    /// The team must outlive this object. The cpu backend's ops use the inner loops of `isa`, which this host
    /// must have.
    explicit Exec(ThreadTeam& team, CpuIsa isa = host_cpu_isa()) : team_(team), isa_(isa) {}

    ThreadTeam& team() { return team_; }
    CpuIsa isa() const { return isa_; }

    /// Makes at least this many bytes of scratch available to every thread. Never while an op runs.
    void reserve_scratch(std::size_t bytes_per_thread);

    /// The thread's scratch from byte_offset on, for n values of T; contents undefined. Belongs to the
    /// running op.
    template <class T>
    T* scratch(int thread, std::size_t n, std::size_t byte_offset = 0) {
        static_assert(std::is_trivial_v<T>);
        assert(byte_offset % alignof(T) == 0 && byte_offset + n * sizeof(T) <= bytes_per_thread_);
        (void)n;
        return reinterpret_cast<T*>(scratch_.get() + static_cast<std::size_t>(thread) * bytes_per_thread_ +
                                    byte_offset);
    }

  private:
    struct Free {
        void operator()(std::byte* p) const;
    };
    ThreadTeam& team_;
    CpuIsa isa_;
    std::size_t bytes_per_thread_ = 0;  // a multiple of a cache line, so that threads share none
    std::unique_ptr<std::byte[], Free> scratch_;
};

}  // namespace pantheon::kernels
