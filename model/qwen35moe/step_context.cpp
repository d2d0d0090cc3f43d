#include "model/qwen35moe/step_context.h"

#include <algorithm>
#include <bit>

namespace pantheon::model {
namespace {

template <class T>
void grow(std::vector<T>& buffer, std::size_t n) {
    if (buffer.size() < n) buffer.resize(n);
}

}  // namespace

void Workspace::reserve(const ModelConfig& config, std::size_t n_rows, std::size_t n_wanted,
                        std::size_t n_vocab) {
    // Steps of ever more rows would allocate, and touch, everything anew each time.
    constexpr std::size_t kLargeStep = 64;
    if (n_rows > kLargeStep) n_rows = std::bit_ceil(n_rows);
    const auto rows_of = [&](std::vector<float>& buffer, int width) {
        grow(buffer, n_rows * static_cast<std::size_t>(width));
    };
    rows_of(h, config.n_embd);
    rows_of(mix, config.n_embd);
    if (config.n_attention_layers() > 0) {
        rows_of(attention.qg, 2 * config.n_head * config.head_dim);
        rows_of(attention.q, config.n_head * config.head_dim);
        rows_of(attention.k, config.n_head_kv * config.head_dim);
        rows_of(attention.v, config.n_head_kv * config.head_dim);
        rows_of(attention.y, config.n_head * config.head_dim);
        attention.runs.reserve(n_rows);
    }
    if (config.n_gdn_layers() > 0) {
        rows_of(gdn.u, config.gdn_conv_dim());
        rows_of(gdn.qkv, config.gdn_conv_dim());
        rows_of(gdn.z, config.gdn_d_inner());
        rows_of(gdn.y, config.gdn_d_inner());
        rows_of(gdn.b, config.gdn_n_head_v);
        rows_of(gdn.alpha, config.gdn_n_head_v);
        gdn.runs.reserve(n_rows);
    }
    const std::size_t n_pairs = n_rows * static_cast<std::size_t>(config.n_expert_used);
    rows_of(moe.logits, config.n_expert);
    grow(moe.ids, n_pairs);
    grow(moe.weights, n_pairs);
    grow(moe.active, static_cast<std::size_t>(config.n_expert));
    grow(moe.begin, static_cast<std::size_t>(config.n_expert) + 1);
    grow(moe.pairs, n_pairs);
    const int n_tasks =
        kernels::max_expert_tasks(static_cast<int>(n_rows), config.n_expert_used, config.n_expert);
    grow(moe.tasks, static_cast<std::size_t>(n_tasks));
    const std::size_t n_counters =
        kernels::expert_counters(n_tasks, config.n_embd, std::max(config.n_ff_exp, config.n_ff_shexp));
    if (moe.n_counters < n_counters) {
        moe.counters.reset(new std::atomic<std::int32_t>[n_counters]);
        moe.n_counters = n_counters;
    }
    grow(moe.hidden, n_pairs * static_cast<std::size_t>(config.n_ff_exp));
    grow(moe.up, n_pairs * static_cast<std::size_t>(config.n_ff_exp));
    grow(moe.down, n_pairs * static_cast<std::size_t>(config.n_embd));
    rows_of(moe.shared_logit, 1);
    rows_of(moe.shared_hidden, config.n_ff_shexp);
    rows_of(moe.shared_up, config.n_ff_shexp);
    rows_of(moe.shared, config.n_embd);
    const auto storage_for = [](std::vector<std::byte>& storage, int width, std::size_t n) {
        grow(storage, kernels::activation_storage_bytes(width, static_cast<std::int64_t>(n)));
    };
    storage_for(input_storage, config.n_embd, n_rows);
    storage_for(inner_storage, config.n_ff_exp, n_pairs);
    storage_for(shared_storage, config.n_ff_shexp, n_rows);
    if (config.n_attention_layers() > 0) storage_for(inner_storage, config.n_head * config.head_dim, n_rows);
    if (config.n_gdn_layers() > 0) storage_for(inner_storage, config.gdn_d_inner(), n_rows);
    grow(logits, n_wanted * n_vocab);
    grow(tile_maxima,
         n_wanted * static_cast<std::size_t>(kernels::n_logit_tiles(static_cast<std::int64_t>(n_vocab))));
}

}  // namespace pantheon::model
