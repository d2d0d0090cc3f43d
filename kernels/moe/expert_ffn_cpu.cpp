#include <algorithm>

#include "kernels/cpu/columns.h"
#include "kernels/cpu/row_product.h"
#include "kernels/moe/expert_ffn.h"

namespace pantheon::kernels {
namespace {

constexpr std::int64_t kBlock = 256;  // the widest block of activations, and so what one thread completes
// Weight rows that a thread takes at once. Few rows of the step: long stretches of memory. Many: so few
// weights that they stay in the first cache for all rows.
constexpr std::int64_t kLongStretch = 128, kShortStretch = 32;
constexpr int kFewRows = 4;

std::int64_t n_blocks(std::int64_t n) {
    return (n + kBlock - 1) / kBlock;
}

void clear(std::atomic<std::int32_t>* counters, std::size_t n) {
    for (std::size_t i = 0; i < n; ++i) counters[i].store(0, std::memory_order_relaxed);
}

/// Products of one matrix with the rows of a task.
class TaskProduct {
  public:
    TaskProduct(const RowProduct& product, const Columns& columns) : product_(product), columns_(columns) {}

    /// row_of(i): row of the input for the task's i-th row; y_of(i): where its results for weight rows
    /// [first, first + n) go.
    template <class RowOf, class YOf>
    void run(const WeightMatrix& w, std::int64_t first, std::int64_t n, int n_rows, const RowOf& row_of,
             const YOf& y_of) const {
        for (int i = 0; i < n_rows; i += product_.max_columns()) {
            const int n_columns = std::min(product_.max_columns(), n_rows - i);
            Column group[kMaxColumns];
            float* out[kMaxColumns];
            for (int c = 0; c < n_columns; ++c) {
                group[c] = columns_.column(row_of(i + c));
                out[c] = y_of(i + c);
            }
            product_.run(w, first, n, group, n_columns, out);
        }
    }

  private:
    const RowProduct& product_;
    const Columns& columns_;
};

/// Gate, up and SwiGLU of either the routed experts or the shared one.
class HiddenPart {
  public:
    HiddenPart(Exec& exec, const WeightMatrix& gate, const WeightMatrix& up, WeightType down,
               ActivationRows& x, ActivationRows& rows, float* hidden)
        : exec_(exec),
          gate_columns_(exec, x, gate.type),
          up_columns_(exec, x, up.type),
          gate_(exec, gate),
          up_(exec, up),
          rows_(rows),
          hidden_(hidden),
          n_ff_(gate.n_out) {
        if (const int width = quant_width(down)) form_ = &rows.to_be_quantised(width);
    }

    std::int64_t n_ff() const { return n_ff_; }

    /// Weight rows [first, first + n) for all rows of a task; in_of and out_of map the task's rows.
    template <class InOf, class OutOf>
    void run(const WeightMatrix& gate, const WeightMatrix& up, std::int64_t first, std::int64_t n, int n_rows,
             const InOf& in_of, const OutOf& out_of) const {
        const Leaves& leaves = cpu_leaves(exec_.isa());
        float g[ExpertTask::kMaxRows * kShortStretch], u[ExpertTask::kMaxRows * kShortStretch];
        static_assert(kLongStretch * kFewRows <= ExpertTask::kMaxRows * kShortStretch);
        TaskProduct(gate_, gate_columns_).run(gate, first, n, n_rows, in_of, [&](int i) {
            return g + i * n;
        });
        TaskProduct(up_, up_columns_).run(up, first, n, n_rows, in_of, [&](int i) { return u + i * n; });
        for (int i = 0; i < n_rows; ++i)
            leaves.swiglu(g + i * n, u + i * n, hidden_ + out_of(i) * n_ff_ + first, n);
    }

    /// A block of the hidden vector is complete for all rows of a task.
    template <class OutOf>
    void quantise(std::int64_t block, int n_rows, const OutOf& out_of) const {
        if (!form_) return;
        const std::int64_t first = block * kBlock, n = std::min(kBlock, n_ff_ - first);
        for (int i = 0; i < n_rows; ++i) rows_.quantise_part(exec_.isa(), *form_, out_of(i), first, n);
    }

  private:
    Exec& exec_;
    Columns gate_columns_, up_columns_;
    RowProduct gate_, up_;
    const ActivationRows& rows_;
    const QuantisedRows* form_ = nullptr;
    float* hidden_;
    std::int64_t n_ff_;
};

}  // namespace

std::size_t expert_counters(int n_tasks, std::int64_t n_embd, std::int64_t n_ff) {
    return static_cast<std::size_t>(std::max(n_tasks * n_blocks(n_ff), n_blocks(n_embd)));
}

void expert_hidden_cpu(Exec& exec, const ExpertFfn& ffn, const ExpertGroups&, const ExpertTasks& tasks,
                       ActivationRows& x, const ExpertHiddenOut& out) {
    const HiddenPart routed(exec, ffn.gate->first, ffn.up->first, ffn.down->first.type, x, *out.routed,
                            out.hidden);
    const HiddenPart shared(exec, *ffn.shared_gate, *ffn.shared_up, ffn.shared_down->type, x, *out.shared,
                            out.shared_hidden);
    const std::int64_t blocks = n_blocks(std::max(routed.n_ff(), shared.n_ff()));
    // A step's largest task decides, so that all tasks are cut alike.
    const std::int64_t stretch = ffn.n_rows <= kFewRows ? kLongStretch : kShortStretch;
    const std::int64_t strips = kBlock / stretch;
    clear(tasks.counters, static_cast<std::size_t>(tasks.n * blocks));

    // Several strips of a task at once where there are many: what a thread does with one must be worth taking
    // it.
    const std::int64_t grain = ffn.n_rows <= kFewRows ? 1 : 4;
    exec.team().parallel_for(tasks.n * blocks * strips, grain, [&](std::int64_t begin, std::int64_t end) {
        for (std::int64_t item = begin; item < end; ++item) {
            const std::int64_t block = item / strips % blocks, at = item / strips / blocks;
            const ExpertTask& task = tasks.tasks[at];
            const bool is_shared = task.expert == ExpertTask::kShared;
            const HiddenPart& part = is_shared ? shared : routed;
            const std::int64_t block_rows = std::min(kBlock, part.n_ff() - block * kBlock);
            const std::int64_t offset = item % strips * stretch;
            if (offset >= block_rows) continue;
            const std::int64_t first = block * kBlock + offset, n = std::min(stretch, block_rows - offset);
            const int n_rows = task.end - task.begin;
            const auto row_of = [&](int i) -> std::int64_t { return task.begin + i; };
            const auto pair_of = [&](int i) -> std::int64_t { return ffn.pairs[task.begin + i]; };
            const auto row_of_pair = [&](int i) -> std::int64_t { return pair_of(i) / ffn.n_used; };
            if (is_shared)
                part.run(*ffn.shared_gate, *ffn.shared_up, first, n, n_rows, row_of, row_of);
            else
                part.run(ffn.gate->at(task.expert), ffn.up->at(task.expert), first, n, n_rows, row_of_pair,
                         pair_of);
            // Whoever finishes a block's last strip quantises the block.
            const std::int64_t n_strips = (block_rows + stretch - 1) / stretch;
            if (tasks.counters[at * blocks + block].fetch_add(1, std::memory_order_acq_rel) + 1 != n_strips)
                continue;
            if (is_shared)
                part.quantise(block, n_rows, row_of);
            else
                part.quantise(block, n_rows, pair_of);
        }
    });
}

void expert_output_cpu(Exec& exec, const ExpertFfn& ffn, const ExpertGroups&, const ExpertTasks& tasks,
                       const ExpertOutputArgs& args, float* x) {
    const Leaves& leaves = cpu_leaves(exec.isa());
    const std::int64_t n_embd = ffn.shared_down->n_out;
    const Columns routed_columns(exec, *args.hidden, ffn.down->first.type);
    const Columns shared_columns(exec, *args.shared_hidden, ffn.shared_down->type);
    const RowProduct routed(exec, ffn.down->first), shared(exec, *ffn.shared_down);
    const std::int64_t blocks = n_blocks(n_embd);
    const std::int64_t stretch = ffn.n_rows <= kFewRows ? kBlock : kShortStretch;
    clear(tasks.counters, static_cast<std::size_t>(blocks));

    // Block by block of the output, so that what the experts say to a block is added up while it is in a
    // cache.
    exec.team().parallel_for(blocks * tasks.n, 1, [&](std::int64_t begin, std::int64_t end) {
        for (std::int64_t item = begin; item < end; ++item) {
            const std::int64_t block = item / tasks.n, block_begin = block * kBlock;
            const ExpertTask& task = tasks.tasks[item % tasks.n];
            const std::int64_t block_end = std::min(n_embd, block_begin + kBlock);
            const int n_rows = task.end - task.begin;
            const bool is_shared = task.expert == ExpertTask::kShared;
            const WeightMatrix w = is_shared ? *ffn.shared_down : ffn.down->at(task.expert);
            for (std::int64_t first = block_begin; first < block_end; first += stretch) {
                const std::int64_t n = std::min(stretch, block_end - first);
                if (is_shared)
                    TaskProduct(shared, shared_columns)
                        .run(
                            w, first, n, n_rows, [&](int i) -> std::int64_t { return task.begin + i; },
                            [&](int i) { return args.shared + (task.begin + i) * n_embd + first; });
                else
                    TaskProduct(routed, routed_columns)
                        .run(
                            w, first, n, n_rows,
                            [&](int i) -> std::int64_t { return ffn.pairs[task.begin + i]; },
                            [&](int i) { return args.down + ffn.pairs[task.begin + i] * n_embd + first; });
            }
            if (tasks.counters[block].fetch_add(1, std::memory_order_acq_rel) + 1 != tasks.n) continue;
            for (std::int64_t r = 0; r < ffn.n_rows; ++r) {
                float* sum = x + r * n_embd + block_begin;
                leaves.moe_combine(args.down + r * ffn.n_used * n_embd + block_begin, n_embd,
                                   args.weights + r * ffn.n_used, ffn.n_used,
                                   args.shared + r * n_embd + block_begin, args.shared_gate[r], sum, sum,
                                   block_end - block_begin);
            }
        }
    });
}

}  // namespace pantheon::kernels
