#include "model/step_bytes.h"

#include <cmath>

#include "model/qwen35moe/weights.h"

namespace pantheon::model {

double expected_experts(int n_expert, int n_used, std::int64_t n_rows) {
    const double missed = 1.0 - static_cast<double>(n_used) / n_expert;
    return n_expert * (1.0 - std::pow(missed, static_cast<double>(n_rows)));
}

StepBytes::StepBytes(const Weights& weights, const KvSettings& kv)
    : n_expert_(weights.config().n_expert), n_used_(weights.config().n_expert_used) {
    const auto bytes = [](const kernels::WeightMatrix& w) {
        return static_cast<double>(w.n_out) * static_cast<double>(w.row_bytes);
    };
    weights.copy()->visit_products([&](const kernels::WeightMatrix& w) { dense_ += bytes(w); },
                                   [&](const kernels::ExpertMatrices& w) { expert_ += bytes(w.first); });
    const CheckpointSizes sizes = checkpoint_sizes(weights, kv);
    state_ = static_cast<double>(sizes.image_bytes);
    kv_row_ = static_cast<double>(sizes.block_bytes) / sizes.block_rows;
}

double StepBytes::of(std::int64_t n_rows, std::int64_t n_sequences, std::int64_t depth) const {
    return dense_ + expert_ * expected_experts(n_expert_, n_used_, n_rows) +
           static_cast<double>(n_sequences) * (2 * state_ + static_cast<double>(depth) * kv_row_);
}

}  // namespace pantheon::model
