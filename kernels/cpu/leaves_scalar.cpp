#include "kernels/cpu/leaves_body.h"

namespace pantheon::kernels::scalar {

DotPanels* dot_panels(WeightType) {
    return nullptr;
}

extern const Leaves kLeaves;
const Leaves kLeaves = kTable;

}  // namespace pantheon::kernels::scalar
