// Packed copies of a model's matrices (kernels/linear/weight_panels.h) for the cpu backend of this host.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "kernels/exec/exec.h"
#include "model/executor.h"
#include "model/qwen35moe/weights.h"
#include "runtime/base/status.h"

namespace pantheon::model {

class PackedWeights {
  public:
    /// Packs with all threads of exec, for its instruction set. Types without panels stay as they are. The
    /// pages of the file that were read are given back to the system. resource_exhausted: no memory.
    static Result<std::unique_ptr<const PackedWeights>> pack(std::shared_ptr<const Weights> weights,
                                                             Repack repack, kernels::Exec& exec);

    /// The same model, its packed matrices attached; valid as long as this object.
    std::shared_ptr<const Weights> weights() const { return weights_; }
    std::uint64_t n_bytes() const { return n_bytes_; }

    /// What pack() would take.
    static std::uint64_t bytes_for(const Weights& weights, Repack repack, kernels::CpuIsa isa);

  private:
    friend class Packer;
    /// Anonymous memory, in huge pages where the system has them.
    class Arena {
      public:
        explicit Arena(std::size_t n_bytes);  // throws std::bad_alloc
        Arena(Arena&& other) noexcept;
        Arena& operator=(Arena&&) = delete;
        ~Arena();
        std::byte* data() const { return data_; }

      private:
        std::byte* data_;
        std::size_t n_bytes_;
    };

    PackedWeights() = default;
    std::shared_ptr<const Weights> weights_;
    std::vector<Arena> arenas_;
    std::uint64_t n_bytes_ = 0;
};

}  // namespace pantheon::model
