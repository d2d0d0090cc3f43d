// A model set up for a test: weights, slots, threads and a probe, stepped from its parts rather than through
// Executor, so that states and intermediate values can be looked at.
#pragma once

#include <map>
#include <optional>
#include <stdexcept>
#include <vector>

#include "kernels/exec/exec.h"
#include "model/qwen35moe/forward.h"
#include "tests/model/qwen35moe/tiny_model.h"

namespace pantheon::test {

using Rows = std::vector<std::vector<float>>;

/// Keeps what the steps show, row after row.
class Recorder : public model::StepProbe {
  public:
    explicit Recorder(const TinyShape& shape) : shape_(shape) {}
    void after_block(int layer, std::span<const float> x) override { split(x, shape_.n_embd, blocks[layer]); }
    void routed(int layer, std::span<const std::int32_t> ids, std::span<const float> w) override {
        split(ids, shape_.n_expert_used, experts[layer]);
        split(w, shape_.n_expert_used, weights[layer]);
    }
    void post_norm(std::span<const float> h) override { split(h, shape_.n_embd, hidden); }

    std::map<int, Rows> blocks;  // [layer][row]
    std::map<int, std::vector<std::vector<std::int32_t>>> experts;
    std::map<int, Rows> weights;
    Rows hidden;

  private:
    template <class T>
    static void split(std::span<const T> values, int width, std::vector<std::vector<T>>& rows) {
        for (std::size_t i = 0; i < values.size(); i += static_cast<std::size_t>(width))
            rows.emplace_back(values.begin() + static_cast<std::ptrdiff_t>(i),
                              values.begin() + static_cast<std::ptrdiff_t>(i) + width);
    }
    TinyShape shape_;
};

class Stepper {
  public:
    explicit Stepper(const TinyModel& tiny, int n_threads = 1,
                     const model::KvSettings& kv = {model::KvFormat::f32}, int n_slots = 8, int n_ctx = 640,
                     model::Backend backend = model::Backend::ref, const model::Ops* ops = nullptr)
        : recorder(tiny.shape),
          weights_(loaded(tiny)),
          team_(n_threads),
          exec_(team_),
          slots(model::state_shape(weights_->config(), kv), n_slots, n_ctx,
                kv.overflow == model::KvOverflow::slide ? std::optional(kv.sink) : std::nullopt),
          forward_(weights_, ops ? *ops : model::ops_for(backend), slots, exec_, &recorder) {}

    const model::Weights& weights() const { return *weights_; }

    /// One step; the rows of logits. Throws on an error.
    Rows step(const std::vector<model::StepRun>& runs) {
        auto batch = model::plan_step(runs, slots, weights_->n_vocab());
        if (!batch) throw std::runtime_error(batch.error().to_string());
        model::Pass pass;
        if (Status ok = forward_.begin(*std::move(batch), pass); !ok)
            throw std::runtime_error(ok.error().to_string());
        const model::StepLogits logits = *forward_.run(pass, {});
        Rows rows;
        for (std::int64_t i = 0; i < logits.n_rows; ++i)
            rows.emplace_back(logits.row(i).begin(), logits.row(i).end());
        return rows;
    }

    /// Tokens [begin, end) of a sequence that the slot continues.
    model::StepRun run_of(SlotId slot, const std::vector<std::int32_t>& tokens, std::size_t begin,
                          std::size_t end, model::WantLogits want = model::WantLogits::all) const {
        model::StepRun run;
        run.slot = slot;
        run.pos = static_cast<std::int32_t>(begin);
        run.tokens.assign(tokens.begin() + static_cast<std::ptrdiff_t>(begin),
                          tokens.begin() + static_cast<std::ptrdiff_t>(end));
        run.logits = want;
        return run;
    }

    /// All logits of a sequence in a freshly bound slot, which stays bound.
    Rows sequence(SlotId slot, const std::vector<std::int32_t>& tokens, std::size_t chunk) {
        if (Status ok = slots.bind(slot); !ok) throw std::runtime_error(ok.error().to_string());
        Rows all;
        for (std::size_t t = 0; t < tokens.size(); t += chunk)
            for (auto& row : step({run_of(slot, tokens, t, std::min(t + chunk, tokens.size()))}))
                all.push_back(std::move(row));
        return all;
    }

    Recorder recorder;

  private:
    static std::shared_ptr<const model::Weights> loaded(const TinyModel& tiny) {
        auto weights = tiny.load();
        if (!weights) throw std::runtime_error(weights.error().to_string());
        return std::move(*weights);
    }
    std::shared_ptr<const model::Weights> weights_;
    kernels::ThreadTeam team_;
    kernels::Exec exec_;

  public:
    model::SlotStore slots;

  private:
    model::Forward forward_;
};

}  // namespace pantheon::test
