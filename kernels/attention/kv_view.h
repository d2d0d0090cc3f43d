// The cached K and V rows of one sequence in one attention layer, as kernels see them.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>

namespace pantheon::kernels {

constexpr int kKvPageRows = 64;
constexpr int kKvBlock = 32;  // values that share a scale in q8_0 and q4_0

/// q8_0 and q4_0 are blocks of 32 as in files of these weight types; the last block of a row is filled up
/// with zeros.
enum class KvRowType { f32, f16, q8_0, q4_0 };

inline std::size_t kv_row_bytes(KvRowType type, int head_dim) {
    const auto n_blocks = static_cast<std::size_t>((head_dim + kKvBlock - 1) / kKvBlock);
    switch (type) {
        case KvRowType::f32:
            return static_cast<std::size_t>(head_dim) * 4;
        case KvRowType::f16:
            return static_cast<std::size_t>(head_dim) * 2;
        case KvRowType::q8_0:
            return n_blocks * 34;
        case KvRowType::q4_0:
            return n_blocks * 18;
    }
    return 0;
}
/// A page holds the K rows and then the V rows of one KV head.
inline std::size_t kv_page_bytes(KvRowType type, int head_dim) {
    return 2 * kKvPageRows * kv_row_bytes(type, head_dim);
}

/// Consecutive rows of one page in one format.
struct KvStretch {
    KvRowType type = KvRowType::f32;
    std::size_t row_bytes = 0;
    const std::byte* k = nullptr;
    const std::byte* v = nullptr;
    int n_rows = 0;
};
constexpr int kMaxKvStretches = 3;

/// Which rows of a page a query reads, and where formats meet; row numbers within the page. Read are rows
/// [0, sink_end) and [shown_begin, end); in f16 those below sink_end and from half_begin on, where f16 is
/// kept beside.
struct KvCut {
    int sink_end = 0, shown_begin = 0, half_begin = 0, end = 0;

    int n_rows() const { return std::min(sink_end, end) + std::max(0, end - shown_begin); }
    /// The rows of one are the first rows of the other.
    bool is_like(const KvCut& other) const {
        return sink_end == other.sink_end && shown_begin == other.shown_begin &&
               half_begin == other.half_begin;
    }
};

/// A query at position p reads its rows r ≤ p except, when `reach` is set, those with sink ≤ r ≤ p − reach.
/// Rows r < sink and r > p − window are read from half_pages, if there are any; all others from pages.
struct KvView {
    KvRowType type = KvRowType::f32;
    int n_head_kv = 0;
    int head_dim = 0;
    // [n_pages, n_head_kv]; row r of the sequence lies in page r / kKvPageRows. Pages first_gone …
    // first_gone + n_gone − 1, which no query reads any more, have no place in the tables.
    std::byte* const* pages = nullptr;
    std::byte* const* half_pages = nullptr;  // the same rows in f16; null, or null where there is none
    std::int64_t first_gone = 0, n_gone = 0;
    int sink = 0;
    int window = 0;
    std::int64_t reach = 0;  // 0: nothing is hidden

    std::byte* k_row(std::int64_t r, int head) const {
        return page(r, head) + static_cast<std::size_t>(r % kKvPageRows) * kv_row_bytes(type, head_dim);
    }
    std::byte* v_row(std::int64_t r, int head) const {
        return page(r, head) +
               static_cast<std::size_t>(kKvPageRows + r % kKvPageRows) * kv_row_bytes(type, head_dim);
    }
    /// The page of row r in f16; null: there is none.
    std::byte* half_page(std::int64_t r, int head) const {
        return half_pages ? half_pages[place(r, head)] : nullptr;
    }
    std::byte* half_k_row(std::int64_t r, int head) const {
        return half_page(r, head) +
               static_cast<std::size_t>(r % kKvPageRows) * kv_row_bytes(KvRowType::f16, head_dim);
    }
    std::byte* half_v_row(std::int64_t r, int head) const {
        return half_page(r, head) + static_cast<std::size_t>(kKvPageRows + r % kKvPageRows) *
                                        kv_row_bytes(KvRowType::f16, head_dim);
    }

    /// How a query at position p reads the page whose first row is `first`.
    KvCut cut(std::int64_t first, std::int64_t p) const {
        const auto in_page = [first](std::int64_t r) {
            return static_cast<int>(std::clamp<std::int64_t>(r - first, 0, kKvPageRows));
        };
        KvCut cut;
        cut.sink_end = in_page(sink);
        cut.shown_begin = reach > 0 ? std::max(cut.sink_end, in_page(p - reach + 1)) : cut.sink_end;
        cut.end = in_page(p + 1);
        cut.half_begin = half_pages ? std::max(cut.shown_begin, in_page(p - window + 1)) : kKvPageRows;
        if (cut.half_begin >= cut.end && window == 0) cut.half_begin = kKvPageRows;
        return cut;
    }
    /// The first row that a query at p reads whether it is of the sink or not.
    std::int64_t first_shown_row(std::int64_t p) const {
        return reach > 0 ? std::max<std::int64_t>(0, p - reach + 1) : 0;
    }

    /// The rows of a cut of that page, in order; returns how many stretches there are.
    int stretches(std::int64_t first, int head, const KvCut& cut, KvStretch* out) const {
        int n = 0;
        const auto add = [&](int begin, int end, bool is_half) {
            end = std::min(end, cut.end);
            if (begin >= end) return;
            const std::int64_t r = first + begin;
            const KvRowType as = is_half ? KvRowType::f16 : type;
            out[n++] = {as, kv_row_bytes(as, head_dim), is_half ? half_k_row(r, head) : k_row(r, head),
                        is_half ? half_v_row(r, head) : v_row(r, head), end - begin};
        };
        add(0, cut.sink_end, half_pages != nullptr);
        add(cut.shown_begin, cut.half_begin, false);
        add(std::max(cut.shown_begin, cut.half_begin), kKvPageRows, true);
        return n;
    }

  private:
    std::int64_t place(std::int64_t r, int head) const {
        const std::int64_t i = r / kKvPageRows;
        return (i < first_gone ? i : i - n_gone) * n_head_kv + head;
    }
    std::byte* page(std::int64_t r, int head) const { return pages[place(r, head)]; }
};

/// Rows first_row … first_row + n_rows − 1 of a step are positions pos, pos + 1, … of the sequence behind kv.
struct AttentionRun {
    int first_row = 0;
    int n_rows = 0;
    std::int32_t pos = 0;
    KvView kv;
};

}  // namespace pantheon::kernels
