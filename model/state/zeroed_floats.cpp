#include "model/state/zeroed_floats.h"

#include <sys/mman.h>

#include <algorithm>
#include <cstdlib>
#include <limits>
#include <new>

namespace pantheon::model {
namespace {

constexpr std::size_t kHugePage = std::size_t{2} << 20;

}  // namespace

template <class T>
std::size_t Zeroed<T>::mapped_bytes() const {
    const std::size_t n_bytes = n_ * sizeof(T);
    return n_bytes < kHugePage ? 0 : (n_bytes + kHugePage - 1) / kHugePage * kHugePage;
}

template <class T>
Zeroed<T>::Zeroed(std::size_t n) : n_(n) {
    if (n == 0) return;
    if (n > std::numeric_limits<std::size_t>::max() / sizeof(T)) throw std::bad_alloc();
    if (const std::size_t n_bytes = mapped_bytes()) {
        void* address = ::mmap(nullptr, n_bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        if (address == MAP_FAILED) throw std::bad_alloc();
        ::madvise(address, n_bytes, MADV_HUGEPAGE);
        data_ = static_cast<T*>(address);
    } else {
        data_ = static_cast<T*>(std::calloc(n, sizeof(T)));
        if (!data_) throw std::bad_alloc();
    }
}

template <class T>
Zeroed<T>::Zeroed(const Zeroed& other) : Zeroed(other.n_) {
    std::copy(other.begin(), other.end(), data_);
}

template <class T>
Zeroed<T>::~Zeroed() {
    if (const std::size_t n_bytes = mapped_bytes())
        ::munmap(data_, n_bytes);
    else
        std::free(data_);
}

template class Zeroed<float>;
template class Zeroed<std::uint16_t>;

}  // namespace pantheon::model
