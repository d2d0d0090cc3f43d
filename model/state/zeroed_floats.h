// Memory for the large states of a sequence: zeros that cost nothing until they are touched.
#pragma once

#include <cstddef>

namespace pantheon::model {

/// n floats, 0 at first. From a huge page on straight from the system, in huge pages where it has them: a
/// fresh state of tens of megabytes is then there at once, and its pages are cleared by the threads that
/// first use them.
class ZeroedFloats {
  public:
    explicit ZeroedFloats(std::size_t n);  // throws std::bad_alloc
    ZeroedFloats(const ZeroedFloats& other);
    ZeroedFloats& operator=(const ZeroedFloats&) = delete;
    ~ZeroedFloats();

    float* data() { return data_; }
    const float* data() const { return data_; }
    std::size_t size() const { return n_; }
    float* begin() { return data_; }
    float* end() { return data_ + n_; }
    const float* begin() const { return data_; }
    const float* end() const { return data_ + n_; }

  private:
    std::size_t mapped_bytes() const;  // 0: from the allocator

    std::size_t n_;
    float* data_ = nullptr;
};

}  // namespace pantheon::model
