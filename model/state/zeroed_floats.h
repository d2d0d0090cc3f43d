// Memory for the large states of a sequence: zeros that cost nothing until they are touched.
#pragma once

#include <cstddef>
#include <cstdint>

namespace pantheon::model {

/// n values, 0 at first. From a huge page on straight from the system, in huge pages where it has them: a
/// fresh state of tens of megabytes is then there at once, and its pages are cleared by the threads that
/// first use them.
template <class T>
class Zeroed {
  public:
    explicit Zeroed(std::size_t n);  // throws std::bad_alloc
    Zeroed(const Zeroed& other);
    Zeroed& operator=(const Zeroed&) = delete;
    ~Zeroed();

    T* data() { return data_; }
    const T* data() const { return data_; }
    std::size_t size() const { return n_; }
    T* begin() { return data_; }
    T* end() { return data_ + n_; }
    const T* begin() const { return data_; }
    const T* end() const { return data_ + n_; }

  private:
    std::size_t mapped_bytes() const;  // 0: from the allocator

    std::size_t n_;
    T* data_ = nullptr;
};

using ZeroedFloats = Zeroed<float>;
using ZeroedHalves = Zeroed<std::uint16_t>;

}  // namespace pantheon::model
