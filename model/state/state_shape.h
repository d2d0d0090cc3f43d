// What one sequence's state consists of, in sizes alone.
#pragma once

#include <cstddef>
#include <cstdint>

#include "kernels/attention/kv_view.h"

namespace pantheon::model {

struct StateShape {
    int n_gdn_layers = 0;
    std::size_t conv_floats = 0;  // per GDN layer: [gdn_conv_dim, gdn_d_conv − 1]
    std::size_t gdn_floats = 0;   // per GDN layer: [gdn_n_head_v, gdn_head_dim, gdn_head_dim]
    int gdn_head_dim = 0;
    int n_attention_layers = 0;
    int n_head_kv = 0;
    int head_dim = 0;
    kernels::KvRowType kv_type = kernels::KvRowType::f32;

    /// The recurrent states of a sequence, whatever its length.
    std::uint64_t image_bytes() const {
        return static_cast<std::uint64_t>(n_gdn_layers) * (conv_floats + gdn_floats) * sizeof(float);
    }
    /// One page for each attention layer and KV head: what 64 more rows of a sequence take.
    std::uint64_t kv_bytes_per_page_row() const {
        return static_cast<std::uint64_t>(n_attention_layers) * static_cast<std::uint64_t>(n_head_kv) *
               kernels::kv_page_bytes(kv_type, head_dim);
    }
};

/// Same in every size and format.
inline bool operator==(const StateShape& a, const StateShape& b) {
    return a.n_gdn_layers == b.n_gdn_layers && a.conv_floats == b.conv_floats &&
           a.gdn_floats == b.gdn_floats && a.gdn_head_dim == b.gdn_head_dim &&
           a.n_attention_layers == b.n_attention_layers && a.n_head_kv == b.n_head_kv &&
           a.head_dim == b.head_dim && a.kv_type == b.kv_type;
}

inline std::int64_t n_kv_pages(std::int64_t n_rows) {
    return (n_rows + kernels::kKvPageRows - 1) / kernels::kKvPageRows;
}

}  // namespace pantheon::model
