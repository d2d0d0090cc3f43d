// Looks into a step from outside: what tests need to compare intermediate values. A step without a probe pays
// one pointer comparison a layer.
#pragma once

#include <cstdint>
#include <span>

namespace pantheon::model {

class StepProbe {
  public:
    virtual ~StepProbe() = default;
    /// The residual stream after a block, f32 [n_rows, n_embd]. After the last block only rows that want
    /// logits.
    virtual void after_block(int /*layer*/, std::span<const float> /*x*/) {}
    /// The router's choice, [n_rows, n_expert_used] in descending weight. Rows as in after_block.
    virtual void routed(int /*layer*/, std::span<const std::int32_t> /*ids*/,
                        std::span<const float> /*weights*/) {}
    /// The vector that the head multiplies, f32 [n wanted rows, n_embd].
    virtual void post_norm(std::span<const float> /*h*/) {}
};

}  // namespace pantheon::model
