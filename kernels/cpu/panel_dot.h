// The panel kernels of an instruction set; in its own file (panel_dot_*.cpp).
#pragma once

#include "kernels/cpu/leaves.h"
#include "kernels/cpu/vec8.h"

namespace pantheon::kernels::PANTHEON_ISA {

DotPanels* dot_panels(WeightType type);

}  // namespace pantheon::kernels::PANTHEON_ISA
