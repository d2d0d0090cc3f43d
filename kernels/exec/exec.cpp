#include "kernels/exec/exec.h"

#include <new>

namespace pantheon::kernels {
namespace {
constexpr std::size_t kCacheLine = 64;
}

void Exec::Free::operator()(std::byte* p) const {
    ::operator delete[](p, std::align_val_t{kCacheLine});
}

void Exec::reserve_scratch(std::size_t bytes_per_thread) {
    if (bytes_per_thread <= bytes_per_thread_) return;
    const std::size_t rounded = (bytes_per_thread + kCacheLine - 1) / kCacheLine * kCacheLine;
    const std::size_t total = rounded * static_cast<std::size_t>(team_.n_threads());
    scratch_.reset(static_cast<std::byte*>(::operator new[](total, std::align_val_t{kCacheLine})));
    bytes_per_thread_ = rounded;
}

}  // namespace pantheon::kernels
