// The cached K and V rows of one sequence in one attention layer, as kernels see them.
#pragma once

#include <cstddef>
#include <cstdint>

namespace pantheon::kernels {

constexpr int kKvPageRows = 64;

enum class KvRowType { f32, f16 };

inline std::size_t kv_row_bytes(KvRowType type, int head_dim) {
    return static_cast<std::size_t>(head_dim) * (type == KvRowType::f32 ? 4 : 2);
}
/// A page holds the K rows and then the V rows of one KV head.
inline std::size_t kv_page_bytes(KvRowType type, int head_dim) {
    return 2 * kKvPageRows * kv_row_bytes(type, head_dim);
}

struct KvView {
    KvRowType type = KvRowType::f32;
    int n_head_kv = 0;
    int head_dim = 0;
    std::byte* const* pages =
        nullptr;  // [n_pages, n_head_kv]; row r of the sequence lies in page r / kKvPageRows

    std::byte* k_row(std::int64_t r, int head) const {
        return page(r, head) + static_cast<std::size_t>(r % kKvPageRows) * kv_row_bytes(type, head_dim);
    }
    std::byte* v_row(std::int64_t r, int head) const {
        return page(r, head) +
               static_cast<std::size_t>(kKvPageRows + r % kKvPageRows) * kv_row_bytes(type, head_dim);
    }

  private:
    std::byte* page(std::int64_t r, int head) const { return pages[r / kKvPageRows * n_head_kv + head]; }
};

/// Rows first_row … first_row + n_rows − 1 of a step are positions pos, pos + 1, … of the sequence behind kv.
struct AttentionRun {
    int first_row = 0;
    int n_rows = 0;
    std::int32_t pos = 0;
    KvView kv;
};

}  // namespace pantheon::kernels
