#include "model/score.h"

#include <algorithm>
#include <string>

namespace pantheon::model {
namespace {

/// A slot that is released however the scoring ends.
class BoundSlot {
  public:
    BoundSlot(Executor& executor, SlotId slot) : executor_(executor), slot_(slot) {}
    ~BoundSlot() { executor_.release(slot_); }
    BoundSlot(const BoundSlot&) = delete;
    BoundSlot& operator=(const BoundSlot&) = delete;

  private:
    Executor& executor_;
    SlotId slot_;
};

}  // namespace

Status score(Executor& executor, SlotId slot, std::span<const TokenId> ids, std::int64_t n_vocab, int chunk,
             const ScoreSink& sink) {
    if (ids.empty()) return Error(Code::invalid_argument, "tokens: none");
    if (chunk < 1) return Error(Code::invalid_argument, "chunk: " + std::to_string(chunk) + " is below 1");
    for (std::size_t t = 0; t < ids.size(); ++t)
        if (ids[t] < 0 || ids[t] >= n_vocab)
            return Error(Code::invalid_argument, "tokens[" + std::to_string(t) +
                                                     "]: " + std::to_string(ids[t]) + " of a vocabulary of " +
                                                     std::to_string(n_vocab));

    if (Status ok = executor.bind(slot); !ok) return ok;
    const BoundSlot bound(executor, slot);
    StepRun run;
    run.slot = slot;
    run.logits = WantLogits::all;
    for (std::size_t t = 0; t < ids.size(); t += run.tokens.size()) {
        const std::size_t n = std::min(ids.size() - t, static_cast<std::size_t>(chunk));
        run.pos = static_cast<std::int32_t>(t);
        run.tokens.assign(ids.begin() + static_cast<std::ptrdiff_t>(t),
                          ids.begin() + static_cast<std::ptrdiff_t>(t + n));
        const auto rows = executor.step({&run, 1});
        if (!rows) return rows.error();
        if (Status ok = sink(*rows); !ok) return ok;
    }
    return {};
}

}  // namespace pantheon::model
