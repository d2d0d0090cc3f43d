// What the parts of a layer share while a step runs: shape, ops, where to run, whose states, and working
// memory.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "kernels/exec/exec.h"
#include "model/qwen35moe/config.h"
#include "model/qwen35moe/ops.h"
#include "model/qwen35moe/probe.h"
#include "model/qwen35moe/step_profile.h"
#include "model/state/slot_store.h"
#include "model/step_batch.h"

namespace pantheon::model {

/// Activations of one step. Every buffer is f32 [rows of the step, width named beside it] unless it says
/// otherwise. Grows to the largest step seen and stays.
struct Workspace {
    std::vector<float> h;    // n_embd: the residual stream, normalised
    std::vector<float> mix;  // n_embd: what a mixer or the experts add to x

    struct {
        std::vector<float> qg;    // n_head · 2 · head_dim, per head query and gate
        std::vector<float> q;     // n_head · head_dim
        std::vector<float> k, v;  // n_head_kv · head_dim
        std::vector<float> y;     // n_head · head_dim
        std::vector<kernels::AttentionRun> runs;
    } attention;

    struct {
        std::vector<float> u, qkv;    // gdn_conv_dim: before and after the convolution
        std::vector<float> z, y;      // gdn_d_inner
        std::vector<float> b, alpha;  // gdn_n_head_v
        std::vector<kernels::GdnHeadsRun> runs;
    } gdn;

    struct {
        std::vector<float> logits;                              // n_expert
        std::vector<std::int32_t> ids;                          // n_expert_used
        std::vector<float> weights;                             // n_expert_used
        std::vector<std::int32_t> active, begin, pairs;         // see kernels::group_by_expert
        std::vector<kernels::ExpertTask> tasks;                 // of the step
        std::unique_ptr<std::atomic<std::int32_t>[]> counters;  // see kernels::ExpertTasks
        std::size_t n_counters = 0;
        std::vector<float> hidden, up;                // n_expert_used · n_ff_exp
        std::vector<float> down;                      // n_expert_used · n_embd
        std::vector<float> shared_logit;              // 1
        std::vector<float> shared_hidden, shared_up;  // n_ff_shexp
        std::vector<float> shared;                    // n_embd
    } moe;

    // Quantised forms of an input of products (kernels::ActivationRows): of the mixer's, the experts' or the
    // head's input, of what lies between two products inside a mixer or a routed expert, and inside the
    // shared one.
    std::vector<std::byte> input_storage, inner_storage, shared_storage;

    std::vector<float> logits;       // f32 [wanted rows, n_vocab]
    std::vector<float> tile_maxima;  // of the logits, see kernels::TileMaxima

    /// Throws std::bad_alloc or std::length_error.
    void reserve(const ModelConfig& config, std::size_t n_rows, std::size_t n_wanted, std::size_t n_vocab);
};

struct StepContext {
    const ModelConfig& config;
    const Ops& ops;
    kernels::Exec& exec;
    SlotStore& slots;
    const StepBatch& batch;
    Workspace& work;
    StepProbe* probe;
    StepProfile* profile;
};

}  // namespace pantheon::model
