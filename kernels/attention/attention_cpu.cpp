#include <algorithm>
#include <cassert>
#include <limits>

#include "kernels/attention/attention.h"
#include "kernels/cpu/leaves.h"

namespace pantheon::kernels {
namespace {

constexpr int kMaxQuads = 16;  // of one item: their sums and scores stay in the second cache
constexpr int kItemsPerThread = 4;

std::int64_t divide_up(std::int64_t a, std::int64_t b) {
    return (a + b - 1) / b;
}

/// What all items of a call have in common. A part is up to kMaxQuads quads of the queries of one token that
/// read one KV head.
struct Call {
    const Leaves& leaves;
    const AttentionRun* runs;
    int n_runs;
    const float* q;
    float* y;
    int n_head, n_head_kv, head_dim, padded;
    int group;         // queries of a KV head
    int n_part_quads;  // of a part
    int n_parts;       // of a KV head
    int n_tokens;      // of an item, at most

    std::size_t sum_floats() const { return static_cast<std::size_t>(QueryQuad::kSize * padded); }
};

/// Consecutive tokens of one run with the queries of one part.
struct Item {
    const AttentionRun* run;
    int first, n_tokens;  // rows of the run
    int kv_head, part;
    int n_quads;  // of a token

    std::int64_t pos(int token) const { return run->pos + first + token; }
};

std::int64_t n_items_of(const Call& call, const AttentionRun& run) {
    return divide_up(run.n_rows, call.n_tokens) * call.n_head_kv * call.n_parts;
}

Item item_at(const Call& call, std::int64_t index) {
    const AttentionRun* run = call.runs;
    for (; index >= n_items_of(call, *run); ++run) index -= n_items_of(call, *run);
    Item item;
    item.run = run;
    item.part = static_cast<int>(index % call.n_parts);
    item.kv_head = static_cast<int>(index / call.n_parts % call.n_head_kv);
    item.first = static_cast<int>(index / call.n_parts / call.n_head_kv) * call.n_tokens;
    item.n_tokens = std::min(call.n_tokens, run->n_rows - item.first);
    const int n_quads = (call.group + QueryQuad::kSize - 1) / QueryQuad::kSize;
    item.n_quads = std::min(call.n_part_quads, n_quads - item.part * call.n_part_quads);
    return item;
}

/// Chunks of which the query at p reads something, in order: the first n_sink ones, then those from
/// first_tail on.
struct Chunks {
    std::int64_t n_sink, first_tail, n;
    std::int64_t operator[](std::int64_t i) const { return i < n_sink ? i : first_tail + i - n_sink; }
};

Chunks chunks_of(const KvView& kv, std::int64_t first_p, std::int64_t last_p) {
    Chunks chunks;
    const std::int64_t last = last_p / kAttentionChunkRows;
    chunks.first_tail = kv.first_shown_row(first_p) / kAttentionChunkRows;
    chunks.n_sink = std::min(divide_up(kv.sink, kAttentionChunkRows), chunks.first_tail);
    chunks.n = chunks.n_sink + last - chunks.first_tail + 1;
    return chunks;
}

/// The quads of an item over one chunk, or over several.
struct Quads {
    QueryQuad quad[kMaxQuads];
    bool is_used[kMaxQuads];  // has met a row

    void clear(int i, int padded) {
        for (int h = 0; h < QueryQuad::kSize; ++h) {
            quad[i].max[h] = -std::numeric_limits<float>::infinity();
            quad[i].weight[h] = 0;
        }
        std::fill_n(quad[i].sum, QueryQuad::kSize * padded, 0.0f);
        quad[i].n_rows = 0;
        is_used[i] = false;
    }
};

/// Where query h of a quad of the item stands in q and y, in heads; places without a query repeat the last.
std::int64_t head_of(const Call& call, const Item& item, int token, int quad, int h) {
    const int last = call.group - 1;
    const int in_group = (item.part * call.n_part_quads + quad) * QueryQuad::kSize + h;
    const std::int64_t row = item.run->first_row + item.first + token;
    return row * call.n_head + item.kv_head * call.group + std::min(in_group, last);
}

void set_queries(const Call& call, const Item& item, float* sums, float* scores, Quads& quads) {
    for (int i = 0; i < item.n_tokens * item.n_quads; ++i) {
        QueryQuad& quad = quads.quad[i];
        for (int h = 0; h < QueryQuad::kSize; ++h)
            quad.q[h] = call.q + head_of(call, item, i / item.n_quads, i % item.n_quads, h) * call.head_dim;
        quad.sum = sums + static_cast<std::size_t>(i) * call.sum_floats();
        quad.scores = scores ? scores + i * QueryQuad::kSize * kKvPageRows : nullptr;
    }
}

/// Takes up the rows of the chunk. Neighbouring tokens that read a page alike share what is unpacked of it.
void attend_chunk(const Call& call, const Item& item, std::int64_t chunk, float* tile, Quads& quads) {
    const KvView& kv = item.run->kv;
    for (int i = 0; i < item.n_tokens * item.n_quads; ++i) quads.clear(i, call.padded);
    const std::int64_t begin = chunk * kAttentionChunkRows;
    const std::int64_t end = std::min(begin + kAttentionChunkRows, item.pos(item.n_tokens - 1) + 1);
    for (std::int64_t first = begin; first < end; first += kKvPageRows)
        for (int token = 0; token < item.n_tokens;) {
            const int first_token = token;
            KvCut cut = kv.cut(first, item.pos(token));
            for (;; ++token) {
                if (token == item.n_tokens) break;
                const KvCut next = kv.cut(first, item.pos(token));
                if (!cut.is_like(next)) break;
                cut.end = next.end;
                for (int i = 0; i < item.n_quads; ++i) {
                    const int at = token * item.n_quads + i;
                    quads.quad[at].n_rows = next.n_rows();
                    quads.is_used[at] |= next.n_rows() > 0;
                }
            }
            if (cut.n_rows() == 0) continue;
            KvStretch stretches[kMaxKvStretches];
            const int n = kv.stretches(first, item.kv_head, cut, stretches);
            call.leaves.attend_page(stretches, n, call.head_dim, quads.quad + first_token * item.n_quads,
                                    (token - first_token) * item.n_quads, tile);
        }
}

/// The first chunk that a quad has met is taken as it is, the next ones are merged into it, in order.
void merge(const Call& call, const QueryQuad& more, QueryQuad& into, bool& is_used) {
    if (is_used) return call.leaves.merge_quad(more, call.head_dim, into);
    std::copy_n(more.sum, call.sum_floats(), into.sum);
    std::copy_n(more.max, QueryQuad::kSize, into.max);
    std::copy_n(more.weight, QueryQuad::kSize, into.weight);
    is_used = true;
}

void write_result(const Call& call, const Item& item, int i, const QueryQuad& quad) {
    const int token = i / item.n_quads, part_quad = i % item.n_quads;
    for (int h = 0; h < QueryQuad::kSize; ++h) {
        if ((item.part * call.n_part_quads + part_quad) * QueryQuad::kSize + h >= call.group) return;
        const float inverse = 1.0f / quad.weight[h];
        const float* sum = quad.sum + h * call.padded;
        float* y = call.y + head_of(call, item, token, part_quad, h) * call.head_dim;
        for (int k = 0; k < call.head_dim; ++k) y[k] = sum[k] * inverse;
    }
}

/// The scratch of a thread: a tile, scores, and the sums of two sets of quads; behind it what chunks gave.
struct Scratch {
    float *tile, *scores, *chunk_sums, *sums;
    static std::size_t n_floats(int head_dim) {
        const auto sums = static_cast<std::size_t>(QueryQuad::kSize * padded_head_dim(head_dim));
        return attention_tile_floats(head_dim) +
               kMaxQuads * (QueryQuad::kSize * static_cast<std::size_t>(kKvPageRows) + 2 * sums);
    }
    Scratch(Exec& exec, int thread, const Call& call) {
        tile = exec.scratch<float>(thread, n_floats(call.head_dim));
        scores = tile + attention_tile_floats(call.head_dim);
        chunk_sums = scores + static_cast<std::ptrdiff_t>(kMaxQuads) * QueryQuad::kSize * kKvPageRows;
        sums = chunk_sums + kMaxQuads * call.sum_floats();
    }
};

/// One thread takes an item through all its chunks.
void attend_whole(const Call& call, const Item& item, const Scratch& scratch) {
    Quads chunk, all;
    set_queries(call, item, scratch.chunk_sums, scratch.scores, chunk);
    set_queries(call, item, scratch.sums, nullptr, all);
    const int n_quads = item.n_tokens * item.n_quads;
    std::fill_n(all.is_used, n_quads, false);
    const Chunks chunks = chunks_of(item.run->kv, item.pos(0), item.pos(item.n_tokens - 1));
    for (std::int64_t c = 0; c < chunks.n; ++c) {
        attend_chunk(call, item, chunks[c], scratch.tile, chunk);
        for (int i = 0; i < n_quads; ++i)
            if (chunk.is_used[i]) merge(call, chunk.quad[i], all.quad[i], all.is_used[i]);
    }
    for (int i = 0; i < n_quads; ++i) write_result(call, item, i, all.quad[i]);
}

/// What a chunk gave the quads of one token and part.
struct PartialChunks {
    Exec& exec;
    const Call& call;

    static std::size_t record_floats(int padded, int n_quads) {
        return static_cast<std::size_t>(n_quads * QueryQuad::kSize * (padded + 2));
    }
    /// Records go round the threads' scratch.
    float* record(std::int64_t i) const {
        const int n_threads = exec.team().n_threads();
        const std::size_t n = record_floats(call.padded, call.n_part_quads);
        const std::size_t before =
            Scratch::n_floats(call.head_dim) + static_cast<std::size_t>(i / n_threads) * n;
        return exec.scratch<float>(static_cast<int>(i % n_threads), n, before * sizeof(float));
    }
    void store(const QueryQuad& quad, float* to) const {
        std::copy_n(quad.max, QueryQuad::kSize, to);
        std::copy_n(quad.weight, QueryQuad::kSize, to + QueryQuad::kSize);
        std::copy_n(quad.sum, call.sum_floats(), to + 2 * QueryQuad::kSize);
    }
    void load(float* from, QueryQuad& quad) const {
        std::copy_n(from, QueryQuad::kSize, quad.max);
        std::copy_n(from + QueryQuad::kSize, QueryQuad::kSize, quad.weight);
        quad.sum = from + 2 * QueryQuad::kSize;
    }
};

/// Few items, each of one token: their chunks are divided among the threads and merged afterwards.
void attend_split(Exec& exec, const Call& call, std::int64_t n_items) {
    std::int64_t n_chunks = 0;
    for (std::int64_t i = 0; i < n_items; ++i) {
        const Item item = item_at(call, i);
        n_chunks = std::max(n_chunks, chunks_of(item.run->kv, item.pos(0), item.pos(0)).n);
    }
    const PartialChunks partial{exec, call};
    const std::size_t quad_floats = PartialChunks::record_floats(call.padded, 1);
    exec.team().parallel_for(n_items * n_chunks, 1, [&](int thread, std::int64_t begin, std::int64_t end) {
        const Scratch scratch(exec, thread, call);
        for (std::int64_t at = begin; at < end; ++at) {
            const Item item = item_at(call, at / n_chunks);
            const Chunks chunks = chunks_of(item.run->kv, item.pos(0), item.pos(0));
            if (at % n_chunks >= chunks.n) continue;
            Quads quads;
            set_queries(call, item, scratch.chunk_sums, scratch.scores, quads);
            attend_chunk(call, item, chunks[at % n_chunks], scratch.tile, quads);
            assert(quads.is_used[0]);
            for (int i = 0; i < item.n_quads; ++i)
                partial.store(quads.quad[i], partial.record(at) + static_cast<std::size_t>(i) * quad_floats);
        }
    });
    exec.team().parallel_for(n_items, 1, [&](int thread, std::int64_t begin, std::int64_t end) {
        const Scratch scratch(exec, thread, call);
        for (std::int64_t index = begin; index < end; ++index) {
            const Item item = item_at(call, index);
            Quads all;
            set_queries(call, item, scratch.sums, nullptr, all);
            const Chunks chunks = chunks_of(item.run->kv, item.pos(0), item.pos(0));
            for (int i = 0; i < item.n_quads; ++i) {
                all.is_used[i] = false;
                for (std::int64_t c = 0; c < chunks.n; ++c) {
                    QueryQuad chunk;
                    partial.load(
                        partial.record(index * n_chunks + c) + static_cast<std::size_t>(i) * quad_floats,
                        chunk);
                    merge(call, chunk, all.quad[i], all.is_used[i]);
                }
                write_result(call, item, i, all.quad[i]);
            }
        }
    });
}

}  // namespace

void attention_cpu(Exec& exec, const AttentionRun* runs, int n_runs, const float* q, float* y, int n_head) {
    if (n_runs == 0) return;
    const KvView& kv = runs[0].kv;
    const int group = n_head / kv.n_head_kv;
    const int n_quads = (group + QueryQuad::kSize - 1) / QueryQuad::kSize;
    Call call{cpu_leaves(exec.isa()),
              runs,
              n_runs,
              q,
              y,
              n_head,
              kv.n_head_kv,
              kv.head_dim,
              padded_head_dim(kv.head_dim),
              group,
              std::min(n_quads, kMaxQuads),
              static_cast<int>(divide_up(n_quads, kMaxQuads)),
              1};
    std::int64_t n_items = 0;  // with one token each
    for (int s = 0; s < n_runs; ++s) n_items += n_items_of(call, runs[s]);
    const std::int64_t n_wanted = static_cast<std::int64_t>(exec.team().n_threads()) * kItemsPerThread;
    if (n_items < n_wanted && exec.team().n_threads() > 1) return attend_split(exec, call, n_items);

    // Tokens share what is unpacked as far as that leaves something to do for every thread.
    call.n_tokens =
        static_cast<int>(std::clamp<std::int64_t>(n_items / n_wanted, 1, kMaxQuads / call.n_part_quads));
    n_items = 0;
    for (int s = 0; s < n_runs; ++s) n_items += n_items_of(call, runs[s]);
    exec.team().parallel_for(n_items, 1, [&](int thread, std::int64_t begin, std::int64_t end) {
        const Scratch scratch(exec, thread, call);
        for (std::int64_t i = begin; i < end; ++i) attend_whole(call, item_at(call, i), scratch);
    });
}

std::size_t attention_scratch_bytes(std::int64_t n_kv_rows, int head_dim, int group) {
    const auto d = static_cast<std::size_t>(head_dim);
    const std::size_t ref = (static_cast<std::size_t>(n_kv_rows) + d) * sizeof(double) + d * sizeof(float);
    // Of a query that reads n_kv_rows rows: one chunk more where they begin inside one, one for the sink.
    const std::int64_t n_chunks = n_kv_rows / kAttentionChunkRows + 3;
    const int n_quads = std::min(kMaxQuads, (group + QueryQuad::kSize - 1) / QueryQuad::kSize);
    const std::size_t record = PartialChunks::record_floats(padded_head_dim(head_dim), n_quads);
    const std::size_t n_records = static_cast<std::size_t>(kItemsPerThread * n_chunks) + 1;
    return std::max(ref, (Scratch::n_floats(head_dim) + n_records * record) * sizeof(float));
}

}  // namespace pantheon::kernels
