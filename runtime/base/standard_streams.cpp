#include "runtime/base/standard_streams.h"

#include <fcntl.h>

namespace pantheon {

void reserve_standard_streams() {
    // Ascending, so that open() takes the number just found free.
    for (int fd = 0; fd <= 2; ++fd)
        if (::fcntl(fd, F_GETFD) < 0) ::open("/dev/null", fd == 0 ? O_RDONLY : O_WRONLY);
}

}  // namespace pantheon
