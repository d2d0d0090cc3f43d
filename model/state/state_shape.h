// What one sequence's state consists of, in sizes alone.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "kernels/attention/kv_view.h"
#include "model/state/image_format.h"

namespace pantheon::model {

inline std::int64_t n_kv_pages(std::int64_t n_rows) {
    return (n_rows + kernels::kKvPageRows - 1) / kernels::kKvPageRows;
}

struct StateShape {
    int n_gdn_layers = 0;
    std::size_t conv_floats = 0;  // per GDN layer: [gdn_conv_dim, gdn_d_conv − 1]
    std::size_t gdn_floats = 0;   // per GDN layer: [gdn_n_head_v, gdn_head_dim, gdn_head_dim]
    int gdn_head_dim = 0;
    int n_attention_layers = 0;
    int n_head_kv = 0;
    int head_dim = 0;
    kernels::KvRowType kv_type = kernels::KvRowType::f32;
    // Rows that are kept in f16 as well: the first kv_sink and the last kv_window of a sequence.
    int kv_sink = 0;
    int kv_window = 0;

    /// The recurrent states of a sequence, whatever its length.
    std::uint64_t image_bytes(ImageFormat format = ImageFormat::f32) const {
        return static_cast<std::uint64_t>(n_gdn_layers) * (conv_floats + gdn_floats) *
               (format == ImageFormat::f16 ? sizeof(std::uint16_t) : sizeof(float));
    }
    /// One page for each attention layer and KV head: what 64 more rows of a sequence take.
    std::uint64_t kv_bytes_per_page_row() const {
        return static_cast<std::uint64_t>(n_attention_layers) * static_cast<std::uint64_t>(n_head_kv) *
               kernels::kv_page_bytes(kv_type, head_dim);
    }
    bool keeps_half() const { return kv_sink > 0 || kv_window > 0; }
    /// The same in f16: what those rows are kept in.
    StateShape in_half() const {
        StateShape half = *this;
        half.kv_type = kernels::KvRowType::f16;
        half.kv_sink = half.kv_window = 0;
        return half;
    }
    /// Whether a sequence of that length keeps f16 rows of this page.
    bool keeps_half_of(std::int64_t page, std::int64_t length) const {
        const std::int64_t begin = page * kernels::kKvPageRows, end = begin + kernels::kKvPageRows;
        return begin < kv_sink || (kv_window > 0 && end > length - kv_window);
    }
    /// The most pages of f16 rows that a sequence of at most n_rows keeps between two steps.
    std::int64_t n_half_pages(std::int64_t n_rows) const {
        const std::int64_t n_window = kv_window > 0 ? n_kv_pages(kv_window) + 1 : 0;
        return std::min(n_kv_pages(kv_sink) + n_window, n_kv_pages(n_rows));
    }
    std::uint64_t half_bytes_of(std::int64_t n_rows) const {
        return static_cast<std::uint64_t>(n_half_pages(n_rows)) * in_half().kv_bytes_per_page_row();
    }
    /// All KV of a sequence of n_rows rows between two steps, in whole pages.
    std::uint64_t kv_bytes_of(std::int64_t n_rows) const {
        return static_cast<std::uint64_t>(n_kv_pages(n_rows)) * kv_bytes_per_page_row() +
               half_bytes_of(n_rows);
    }
};

/// Same in every size and format.
inline bool operator==(const StateShape& a, const StateShape& b) {
    return a.n_gdn_layers == b.n_gdn_layers && a.conv_floats == b.conv_floats &&
           a.gdn_floats == b.gdn_floats && a.gdn_head_dim == b.gdn_head_dim &&
           a.n_attention_layers == b.n_attention_layers && a.n_head_kv == b.n_head_kv &&
           a.head_dim == b.head_dim && a.kv_type == b.kv_type && a.kv_sink == b.kv_sink &&
           a.kv_window == b.kv_window;
}

}  // namespace pantheon::model
