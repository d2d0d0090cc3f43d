// The model once more, in double and without any of our kernels: one sequence, token by token, written from
// the formulas. What the backend `ref` is compared with.
#pragma once

#include <cstdint>
#include <vector>

#include "tests/model/qwen35moe/tiny_model.h"

namespace pantheon::test {

using Doubles = std::vector<double>;

struct DoubleTrace {
    std::vector<Doubles> logits;                         // [pos][n_vocab]
    std::vector<Doubles> post_norm;                      // [pos][n_embd]
    std::vector<std::vector<Doubles>> after_block;       // [layer][pos][n_embd]
    std::vector<std::vector<std::vector<int>>> experts;  // [layer][pos][rank]
    std::vector<Doubles> conv;   // [GDN layer]: [channel][d_conv − 1] after the last token
    std::vector<Doubles> state;  // [GDN layer]: [v head][v][k] after the last token
};

DoubleTrace run_in_double(const TinyModel& model, const std::vector<std::int32_t>& tokens);

}  // namespace pantheon::test
