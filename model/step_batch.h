// One step, checked and laid out in rows: which token of which slot each row is, and which rows want logits.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "model/executor.h"
#include "model/state/slot_store.h"
#include "runtime/base/ids.h"
#include "runtime/base/status.h"

namespace pantheon::model {

struct StepBatch {
    struct Run {
        SlotId slot;
        int first_row = 0;
        int n_rows = 0;
        std::int32_t pos = 0;  // of its first row
        bool operator==(const Run&) const = default;
    };
    std::vector<Run> runs;
    std::vector<TokenId> tokens;            // [n_rows]
    std::vector<std::int32_t> positions;    // [n_rows]
    std::vector<std::int32_t> wanted_rows;  // ascending

    int n_rows() const { return static_cast<int>(tokens.size()); }
    bool operator==(const StepBatch&) const = default;
};

/// Checks runs against the slots and the vocabulary. invalid_argument or failed_precondition: the plan is
/// wrong.
Result<StepBatch> plan_step(std::span<const StepRun> runs, const SlotStore& slots, std::int64_t n_vocab);

}  // namespace pantheon::model
