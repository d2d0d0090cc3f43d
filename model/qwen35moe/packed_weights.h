// Packed copies of a model's matrices (kernels/linear/weight_panels.h) for the cpu backend of this host.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "kernels/exec/exec.h"
#include "model/executor.h"
#include "model/qwen35moe/weights.h"
#include "runtime/base/status.h"

namespace pantheon::model {

/// The copies are made little by little between steps, so that nobody waits for gigabytes before the first
/// token: until a matrix is packed whole, products read its rows where the file has them, with the same bits.
class PackedWeights {
  public:
    /// Packs for exec's instruction set with all its threads; exec must outlive this object. Nothing is
    /// packed yet. Types without panels stay as they are.
    PackedWeights(const std::shared_ptr<const Weights>& weights, Repack repack, kernels::Exec& exec);

    /// Packs for about `budget`, what every token reads first; true: there is more to do. The pages of the
    /// file that were read are given back to the system. Never while a step runs. resource_exhausted: no
    /// memory; what was packed stays.
    Result<bool> pack_some(std::chrono::microseconds budget);

    /// The same model; matrices that are packed have their panels. Valid as long as this object.
    std::shared_ptr<const Weights> weights() const { return weights_; }
    std::uint64_t n_bytes() const { return n_bytes_; }  // taken so far

    /// What all of it takes.
    static std::uint64_t bytes_for(const Weights& weights, Repack repack, kernels::CpuIsa isa);

  private:
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
    /// One matrix of weights_, or as many as there are experts.
    struct Source {
        kernels::WeightMatrix* matrix = nullptr;
        kernels::ExpertMatrices* experts = nullptr;  // null: the one matrix

        std::int64_t n_matrices() const { return experts ? experts->n_expert : 1; }
        std::int64_t stride_bytes() const { return experts ? experts->expert_stride_bytes : 0; }
    };

    void pack_panels(std::int64_t n);
    void finish(const Source& source);

    std::shared_ptr<Weights> weights_;
    kernels::Exec& exec_;
    int n_rows_;  // of a panel
    std::vector<Source> sources_;
    std::size_t next_ = 0;         // of sources_
    std::int64_t next_panel_ = 0;  // of that source
    std::vector<Arena> arenas_;    // one a source that was begun
    std::uint64_t n_bytes_ = 0;
};

}  // namespace pantheon::model
