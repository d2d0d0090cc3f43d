#include "kernels/linear/activation_rows.h"

#include <cassert>

#include "kernels/cpu/leaves.h"

namespace pantheon::kernels {
namespace {

constexpr std::int64_t kCacheLine = 64;

std::int64_t in_lines(std::int64_t n_bytes) {
    return (n_bytes + kCacheLine - 1) / kCacheLine * kCacheLine;
}

std::int64_t sums_per_block(int width) {
    return width == 256 ? kSumsPer256 : 1;
}

QuantisedRows layout(std::int64_t n_in, int width) {
    const std::int64_t n_blocks = n_in / width, n_sums = n_blocks * sums_per_block(width);
    QuantisedRows rows;
    rows.width = width;
    rows.d_offset = in_lines(n_in);
    rows.sums_offset = rows.d_offset + in_lines(n_blocks * static_cast<std::int64_t>(sizeof(float)));
    rows.row_bytes = rows.sums_offset + in_lines(n_sums * static_cast<std::int64_t>(sizeof(std::int16_t)));
    return rows;
}

std::byte* aligned(std::byte* p) {
    const auto address = reinterpret_cast<std::uintptr_t>(p);
    const auto past = static_cast<std::int64_t>(address % static_cast<std::uintptr_t>(kCacheLine));
    return past == 0 ? p : p + (kCacheLine - past);
}

}  // namespace

std::size_t activation_storage_bytes(std::int64_t n_in, std::int64_t n_rows) {
    return static_cast<std::size_t>(n_rows * (layout(n_in, 256).row_bytes + layout(n_in, 32).row_bytes) +
                                    kCacheLine);
}

ActivationRows::ActivationRows(const float* x, std::int64_t n_in, int n_rows, std::byte* storage)
    : x_(x), n_in_(n_in), n_rows_(n_rows), wide_(layout(n_in, 256)), narrow_(layout(n_in, 32)) {
    if (!storage) return;
    wide_.data = aligned(storage);
    narrow_.data = wide_.data + n_rows * wide_.row_bytes;
}

const QuantisedRows& ActivationRows::quantised(Exec& exec, int width) {
    if (width == 256 ? has_wide_ : has_narrow_) return width == 256 ? wide_ : narrow_;
    const QuantisedRows& rows = to_be_quantised(width);
    exec.team().parallel_for(n_rows_, 4, [&](std::int64_t begin, std::int64_t end) {
        for (std::int64_t r = begin; r < end; ++r) quantise_part(exec.isa(), rows, r, 0, n_in_);
    });
    return rows;
}

const QuantisedRows& ActivationRows::to_be_quantised(int width) {
    assert((width == 256 || width == 32) && n_in_ % width == 0);
    const QuantisedRows& rows = width == 256 ? wide_ : narrow_;
    assert(rows.data && "no storage was given");
    (width == 256 ? has_wide_ : has_narrow_) = true;
    return rows;
}

void ActivationRows::quantise_part(CpuIsa isa, const QuantisedRows& form, std::int64_t row,
                                   std::int64_t first, std::int64_t n) const {
    const Leaves& leaves = cpu_leaves(isa);
    Quantise* quantise = form.width == 256 ? leaves.quantise_256 : leaves.quantise_32;
    const std::int64_t block = first / form.width;
    quantise(this->row(row) + first, n, form.q(row) + first, form.sums(row) + block * sums_per_block(form.width),
             form.d(row) + block);
}

}  // namespace pantheon::kernels
