// What a block of 256 of a packed panel needs besides the products of its quants: its scales, and the terms
// that are paid for through the sums of the activations.
#pragma once

#include "kernels/cpu/leaves.h"
#include "kernels/cpu/panel_types.h"

#if defined(PANTHEON_HAS_AVX2)

namespace pantheon::kernels::PANTHEON_ISA {

template <class Type>
constexpr int kPanelHeadBytes = (Type::kHeadBytes + 3) / 4 * 4 * kR;
template <class Type>
constexpr int kPanelGroupBytes = Type::kBodyVectors * 4 * kR;

/// Asks for what a panel's reader will need 2 KiB later. Hardware prefetchers do not run far enough ahead of
/// a thread that also computes (measured: 17 of 24 GB/s with two threads, 23 with this).
template <int n_bytes>
inline void prefetch_ahead(const std::byte* p) {
    constexpr int kAhead = 2048, kLine = 64;
    for (int i = 0; i < n_bytes; i += kLine)
        _mm_prefetch(reinterpret_cast<const char*>(p + kAhead + i), _MM_HINT_T1);
}

template <class Type>
class BlockHead {
  public:
    void read(const std::byte* head) {
        prefetch_ahead<kPanelHeadBytes<Type>>(head);
        head_ = head;
        scales_ = Type::scales(head, bytes_);
    }
    /// The one or two scales of a group of 32.
    void scales_of_group(int g, Ints* scale) const {
        if constexpr (Type::kScalesPerGroup == 2) {
            const ScalePair both_of = pair(g);
            scale[0] = even_scale(both_of);
            scale[1] = odd_scale(both_of);
        } else {
            const ScalePair two_groups = pair(g / 2);
            scale[0] = g % 2 == 0 ? even_scale(two_groups) : odd_scale(two_groups);
        }
    }
    /// What is to be taken off the products' sums of each column: Σ scale · 2^kOffsetBits · Σ activations.
    template <int n_columns>
    inline __attribute__((always_inline)) void offsets(const Column* columns, std::int64_t b,
                                                       Ints* offset) const {
        for (int c = 0; c < n_columns; ++c) offset[c] = zero_ints();
        for (int i = 0; i < 4 * Type::kScalesPerGroup; ++i) {
            const ScalePair scales = pair(i);
            for (int c = 0; c < n_columns; ++c)
                offset[c] = add_pair_product(offset[c], scales, two_at(sums(columns[c], b) + 2 * i));
        }
        for (int c = 0; c < n_columns; ++c) offset[c] = left_ints<Type::kOffsetBits>(offset[c]);
    }
    /// Adds the block to y; total: the weighed sums of the products of each column.
    template <int n_columns>
    inline __attribute__((always_inline)) void finish(const Column* columns, std::int64_t b,
                                                      const Floats* total, Floats* y) const {
        const Floats d = load_halves(head_);
        for (int c = 0; c < n_columns; ++c)
            y[c] = plus_product(times(d, all_floats(columns[c].d[b])), total[c], y[c]);
        if constexpr (Type::kHasMin) {
            const Floats dmin = load_halves(head_ + 2 * kR);
            Ints min[n_columns];
            for (int c = 0; c < n_columns; ++c) min[c] = zero_ints();
            for (int i = 0; i < 4; ++i) {
                const ScalePair mins = unsigned_pair(bytes_.min + 2 * kR * i);
                for (int c = 0; c < n_columns; ++c)
                    min[c] = add_pair_product(min[c], mins, two_at(sums(columns[c], b) + 2 * i));
            }
            for (int c = 0; c < n_columns; ++c)
                y[c] = minus_product(times(dmin, all_floats(columns[c].d[b])), to_floats(min[c]), y[c]);
        }
    }

  private:
    /// Sums of activations, one for each scale.
    static const std::int16_t* sums(const Column& column, std::int64_t b) {
        return column.sums + kSumsPer256 * b + (Type::kScalesPerGroup == 1 ? 16 : 0);
    }
    ScalePair pair(int i) const {
        if constexpr (Type::kHasSignedScales)
            return signed_pair(scales_ + 2 * kR * i);
        else
            return unsigned_pair(scales_ + 2 * kR * i);
    }

    const std::byte* head_ = nullptr;
    const std::uint8_t* scales_ = nullptr;
    ScaleBytes bytes_;
};

}  // namespace pantheon::kernels::PANTHEON_ISA

#endif
