#include "model/step_batch.h"

#include <limits>
#include <string>

namespace pantheon::model {
namespace {

Status check_run(const StepRun& run, const SlotStore& slots, std::int64_t n_vocab) {
    if (!slots.is_valid(run.slot))
        return Error(Code::invalid_argument, "there are " + std::to_string(slots.n_slots()) + " slots");
    if (run.tokens.empty()) return Error(Code::invalid_argument, "no tokens");
    if (!slots.is_bound(run.slot)) return Error(Code::failed_precondition, "is not bound");
    const std::int32_t length = slots.length(run.slot);
    if (run.pos != length)
        return Error(Code::failed_precondition,
                     "pos " + std::to_string(run.pos) + ", its length is " + std::to_string(length));
    if (run.tokens.size() > static_cast<std::size_t>(slots.room(run.slot)))
        return Error(Code::failed_precondition,
                     std::to_string(length) + " + " + std::to_string(run.tokens.size()) +
                         " tokens do not fit into n_ctx " + std::to_string(slots.n_ctx()));
    for (const TokenId token : run.tokens)
        if (token < 0 || token >= n_vocab)
            return Error(Code::invalid_argument,
                         "token " + std::to_string(token) + " of a vocabulary of " + std::to_string(n_vocab));
    return {};
}

}  // namespace

Result<StepBatch> plan_step(std::span<const StepRun> runs, const SlotStore& slots, std::int64_t n_vocab) {
    std::vector<bool> is_taken(static_cast<std::size_t>(slots.n_slots()));
    std::size_t n_rows = 0;
    for (const StepRun& run : runs) {
        Status ok = check_run(run, slots, n_vocab);
        if (ok && is_taken[static_cast<std::size_t>(run.slot.value)])
            ok = Error(Code::invalid_argument, "two runs in one step");
        if (!ok) return std::move(ok).error().with_context("slot " + std::to_string(run.slot.value));
        is_taken[static_cast<std::size_t>(run.slot.value)] = true;
        n_rows += run.tokens.size();
    }
    if (n_rows > static_cast<std::size_t>(std::numeric_limits<int>::max()))
        return Error(Code::invalid_argument, std::to_string(n_rows) + " rows in one step");

    StepBatch batch;
    batch.tokens.reserve(n_rows);
    batch.positions.reserve(n_rows);
    for (const StepRun& run : runs) {
        const int n = static_cast<int>(run.tokens.size());
        batch.runs.push_back({run.slot, batch.n_rows(), n, run.pos});
        for (int j = 0; j < n; ++j) {
            const bool is_last = j == n - 1;
            if (run.logits == WantLogits::all || (run.logits == WantLogits::last && is_last))
                batch.wanted_rows.push_back(batch.n_rows());
            batch.tokens.push_back(run.tokens[static_cast<std::size_t>(j)]);
            batch.positions.push_back(run.pos + j);
        }
    }
    return batch;
}

}  // namespace pantheon::model
