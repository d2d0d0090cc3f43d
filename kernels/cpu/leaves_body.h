// The table of one instruction set; leaves_*.cpp each include it once.
#pragma once

#include "kernels/cpu/attention_body.h"
#include "kernels/cpu/delta_rule_body.h"
#include "kernels/cpu/elementwise_body.h"
#include "kernels/cpu/float_dot_body.h"
#include "kernels/cpu/panel_dot.h"
#include "kernels/cpu/quantise_body.h"

namespace pantheon::kernels::PANTHEON_ISA {

inline constexpr Leaves kTable = {
    dot_rows,   dot_panels,     quantise_256, quantise_32,    rms_norm,
    l2_norm,    gated_rms_norm, swiglu,       output_gate,    rotate,
    exp_minus,  moe_combine,    finite_max,   causal_conv,    delta_rule_tokens,
    delta_rule, attend_page,    merge_quad,   narrow_to_half, widen_half,
};

}  // namespace pantheon::kernels::PANTHEON_ISA
