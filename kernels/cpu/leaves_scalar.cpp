#include "kernels/cpu/leaves_body.h"

namespace pantheon::kernels::scalar {

extern const Leaves kLeaves;
const Leaves kLeaves = kTable;

}  // namespace pantheon::kernels::scalar
