// The input of one or several products: f32 rows, and the quantised forms of them that some backends multiply
// with.
#pragma once

#include <cstddef>
#include <cstdint>

#include "kernels/exec/exec.h"

namespace pantheon::kernels {

/// Int8 blocks of every row. Value i of row r is q(r)[i] · d(r)[i / width].
struct QuantisedRows {
    int width = 0;  // 256 or 32
    std::byte* data = nullptr;
    std::int64_t row_bytes = 0;
    std::int64_t d_offset = 0;     // of d in a row; q stands first
    std::int64_t sums_offset = 0;  // of sums in a row

    std::int8_t* q(std::int64_t row) const { return reinterpret_cast<std::int8_t*>(data + row * row_bytes); }
    /// One scale a block.
    float* d(std::int64_t row) const { return reinterpret_cast<float*>(data + row * row_bytes + d_offset); }
    /// Sums of q: kSumsPer256 a block where width is 256, one where it is 32.
    std::int16_t* sums(std::int64_t row) const {
        return reinterpret_cast<std::int16_t*>(data + row * row_bytes + sums_offset);
    }
};

/// Make one for each distinct input of a step and hand it to every product that reads that input: a quantised
/// form is computed when the first product asks for it and serves the others. The f32 values must not change
/// while the object lives. Not copied, because a copy would not know what the other has computed.
class ActivationRows {
  public:
    /// x        f32 [n_rows, n_in]
    /// storage  activation_storage_bytes(n_in, n_rows) bytes for the quantised forms, any alignment
    ActivationRows(const float* x, std::int64_t n_in, int n_rows, std::byte* storage);
    ActivationRows(const ActivationRows&) = delete;
    ActivationRows& operator=(const ActivationRows&) = delete;

    int n_rows() const { return n_rows_; }
    std::int64_t n_in() const { return n_in_; }
    const float* row(std::int64_t r) const { return x_ + r * n_in_; }

    /// The rows in blocks of width 256 or 32, which must divide n_in.
    const QuantisedRows& quantised(Exec& exec, int width);

    /// For whoever writes the f32 rows: the form of this width counts as computed from now on, and the writer
    /// calls quantise_part for every block as soon as its values are there.
    const QuantisedRows& to_be_quantised(int width);
    /// Values [first, first + n) of a row, whole blocks. Different blocks may be quantised at the same time.
    void quantise_part(CpuIsa isa, const QuantisedRows& form, std::int64_t row, std::int64_t first,
                       std::int64_t n) const;

  private:
    const float* x_;
    std::int64_t n_in_;
    int n_rows_;
    QuantisedRows wide_, narrow_;
    bool has_wide_ = false, has_narrow_ = false;
};

/// For both quantised forms.
std::size_t activation_storage_bytes(std::int64_t n_in, std::int64_t n_rows);

}  // namespace pantheon::kernels
