// The byte model of a step: what has to come from memory at least, whatever the kernels do.
#pragma once

#include <cstdint>

#include "model/executor.h"

namespace pantheon::model {

/// Experts that n_rows tokens hit at least once in a layer, if each token picked n_used of n_expert at
/// random: n_expert (1 − (1 − n_used / n_expert)^n_rows).
double expected_experts(int n_expert, int n_used, std::int64_t n_rows);

/// Of the loaded file, for any step.
class StepBytes {
  public:
    StepBytes(const Weights& weights, const KvSettings& kv);

    /// Bytes of a step of n_rows tokens in all, of n_sequences sequences that each hold `depth` tokens:
    /// weights once (of the routed experts those expected to be hit), recurrent states read and written once
    /// a sequence, keys and values read once a sequence.
    double of(std::int64_t n_rows, std::int64_t n_sequences, std::int64_t depth) const;

  private:
    double dense_ = 0;   // of all layers and the head
    double expert_ = 0;  // of one expert in every layer
    double state_ = 0;
    double kv_row_ = 0;
    int n_expert_, n_used_;
};

}  // namespace pantheon::model
