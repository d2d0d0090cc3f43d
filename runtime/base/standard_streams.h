// Descriptors 0, 1 and 2, whatever the parent left of them.
#pragma once

namespace pantheon {

/// Opens /dev/null on each of 0, 1 and 2 that is closed. Otherwise the next file or socket would get that number,
/// and what is written for people would go into it. Call first in main.
void reserve_standard_streams();

}  // namespace pantheon
