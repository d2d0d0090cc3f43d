#include "ipc/outbox.h"

#include <sys/eventfd.h>
#include <unistd.h>

#include <cerrno>
#include <system_error>

namespace pantheon::ipc {

Outbox::Outbox() : fd_(eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC)) {
    if (fd_ < 0) throw std::system_error(errno, std::generic_category(), "eventfd");
}

Outbox::~Outbox() {
    close(fd_);
}

void Outbox::push(Outgoing out) {
    bool was_empty = false;
    {
        const std::lock_guard lock(mutex_);
        was_empty = queue_.empty();
        queue_.push_back(std::move(out));
    }
    // Only the first message of a batch wakes: a stream of tokens costs few system calls.
    if (was_empty) wake();
}

void Outbox::wake() {
    const std::uint64_t one = 1;
    // The counter cannot fill up, so the one possible failure is EINTR before anything was written.
    while (write(fd_, &one, sizeof one) < 0 && errno == EINTR) {
    }
}

void Outbox::take(std::vector<Outgoing>& batch) {
    batch.clear();
    // The counter is cleared before the queue is taken: a push in between wakes once too often, never too
    // seldom.
    std::uint64_t count = 0;
    while (read(fd_, &count, sizeof count) < 0 && errno == EINTR) {
    }
    const std::lock_guard lock(mutex_);
    batch.swap(queue_);
}

}  // namespace pantheon::ipc
