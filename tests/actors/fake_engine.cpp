#include "tests/actors/fake_engine.h"

#include <algorithm>
#include <limits>
#include <optional>
#include <stdexcept>
#include <utility>

namespace pantheon::actors {
namespace {

/// The fake device's state of a sequence is its tokens; a block has a name for every 16 of them.
class FakeCheckpoint : public model::Checkpoint {
  public:
    explicit FakeCheckpoint(const std::vector<TokenId>& sequence, bool is_q4_0_ = false,
                            bool is_rounded_ = false)
        : Checkpoint(static_cast<std::int32_t>(sequence.size()), names(sequence)),
          tokens(sequence),
          is_q4_0(is_q4_0_),
          is_rounded(is_rounded_) {}
    std::vector<TokenId> tokens;
    bool is_q4_0, is_rounded;

  private:
    static std::vector<std::uint64_t> names(const std::vector<TokenId>& sequence) {
        std::vector<std::uint64_t> names;
        std::uint64_t hash = 1;
        for (std::size_t i = 0; i < sequence.size(); ++i) {
            hash = (hash ^ static_cast<std::uint64_t>(sequence[i] + 1)) * 0x100000001B3ULL;
            if (i % kFakeBlockRows == kFakeBlockRows - 1 || i + 1 == sequence.size()) names.push_back(hash);
        }
        return names;
    }
};

class FakeCodec : public model::CheckpointCodec {
  public:
    std::string layout() const override { return "fake"; }
    std::uint64_t encoded_bytes(std::int32_t length) const override {
        return static_cast<std::uint64_t>(length) * sizeof(TokenId);
    }
    Status encode(const model::Checkpoint& checkpoint, const Sink& sink) const override {
        return sink(std::as_bytes(std::span(dynamic_cast<const FakeCheckpoint&>(checkpoint).tokens)));
    }
    Result<model::CheckpointPtr> decode(std::int32_t length, const Source& source) const override {
        std::vector<TokenId> tokens(static_cast<std::size_t>(length));
        if (Status ok = source(std::as_writable_bytes(std::span(tokens))); !ok) return std::move(ok).error();
        return model::CheckpointPtr(std::make_shared<const FakeCheckpoint>(tokens));
    }
};

class FakeExecutor : public model::Executor {
  public:
    FakeExecutor(std::shared_ptr<FakeDeviceControl> control, int n_slots, int n_ctx, std::int32_t n_vocab,
                 TokenId end)
        : control_(std::move(control)), n_ctx_(n_ctx), n_vocab_(n_vocab), end_(end) {
        slots_.resize(static_cast<std::size_t>(n_slots));
    }

    using Executor::bind;
    using Executor::snapshot;
    Status bind(SlotId slot, model::SequenceKv kv) override {
        if (control_->fail_bind) return Error(Code::resource_exhausted, "injected: no memory");
        auto& sequence = slots_[static_cast<std::size_t>(slot.value)];
        if (sequence) return Error(Code::failed_precondition, "bound");
        sequence.emplace();
        sequence->is_q4_0 = kv == model::SequenceKv::q4_0;
        return {};
    }
    Status convert_to_q4_0(SlotId slot) override {
        auto& sequence = slots_[static_cast<std::size_t>(slot.value)];
        if (!sequence) return Error(Code::failed_precondition, "not bound");
        if (begun_.contains(slot)) return Error(Code::failed_precondition, "amid a run");
        sequence->is_q4_0 = true;
        ++control_->n_converted;
        control_->kv_used_bytes = kv_used_bytes();
        return {};
    }
    Status restore(SlotId slot, const model::Checkpoint& from) override {
        if (control_->fail_restore) return Error(Code::resource_exhausted, "injected: no memory");
        auto& sequence = slots_[static_cast<std::size_t>(slot.value)];
        if (sequence) return Error(Code::failed_precondition, "bound");
        const auto& state = dynamic_cast<const FakeCheckpoint&>(from);
        sequence = FakeSequence{state.tokens, state.is_q4_0};
        ++control_->n_restored;
        control_->n_restored_rounded += state.is_rounded ? 1 : 0;
        return {};
    }
    Result<model::CheckpointPtr> snapshot(SlotId slot, model::ImageFormat format) override {
        if (control_->fail_snapshot) return Error(Code::resource_exhausted, "injected: no memory");
        const auto& sequence = slots_[static_cast<std::size_t>(slot.value)];
        if (!sequence) return Error(Code::failed_precondition, "not bound");
        if (begun_.contains(slot)) return Error(Code::failed_precondition, "amid a run");
        const bool is_rounded = format == model::ImageFormat::f16;
        auto checkpoint =
            std::make_shared<const FakeCheckpoint>(sequence->tokens, sequence->is_q4_0, is_rounded);
        control_->checkpoints.emplace_back(checkpoint);
        ++(is_rounded ? control_->n_rounded : control_->n_exact);
        return model::CheckpointPtr(std::move(checkpoint));
    }
    void release(SlotId slot) override {
        begun_.erase(slot);
        slots_[static_cast<std::size_t>(slot.value)].reset();
    }
    std::int32_t length(SlotId slot) const override {
        const auto& sequence = slots_[static_cast<std::size_t>(slot.value)];
        return sequence ? static_cast<std::int32_t>(sequence->tokens.size()) : -1;
    }

    void begin_repack(model::Repack repack) override {
        n_packed_ = 0;
        n_to_pack_ = repack == model::Repack::none ? 0 : control_->n_to_pack.load();
    }
    Result<bool> pack_some(std::chrono::microseconds) override {
        if (control_->no_memory_after >= 0 && n_packed_ >= control_->no_memory_after)
            return Error(Code::resource_exhausted, "injected: no memory");
        if (control_->during_each_pack) control_->during_each_pack();
        if (n_packed_ < n_to_pack_) ++n_packed_;
        control_->is_packed = n_packed_ == n_to_pack_;
        return n_packed_ < n_to_pack_;
    }
    std::uint64_t repack_bytes() const override { return static_cast<std::uint64_t>(n_packed_); }

    Result<std::optional<model::StepLogits>> step_in_parts(const model::StepRun& run,
                                                           const Pause& pause) override {
        auto begun = begun_.find(run.slot);
        if (begun == begun_.end()) {
            if (!has_room({&run, 1})) return used_up();
            begun = begun_.emplace(run.slot, Begun{0, run.tokens.size()}).first;
        }
        if (++begun->second.n_parts < control_->n_parts) {
            if (auto act = control_->during_each_part) act(run);  // which may set another
            (void)pause(model::RunUnit::gdn, model::RunUnit::experts);
            ++control_->n_begun_parts;
            return std::optional<model::StepLogits>();
        }
        begun_.erase(begun);
        auto logits = step({&run, 1});
        if (!logits) return std::move(logits).error();
        return std::optional(*logits);
    }

    Result<model::StepLogits> step(std::span<const model::StepRun> runs) override {
        const int number = control_->n_steps++;
        if (control_->throw_at_step == number) {
            control_->throw_at_step = -1;
            throw std::runtime_error("injected device failure");
        }
        if (auto during = std::exchange(control_->during_next_step, nullptr)) during();
        if (control_->during_each_step) control_->during_each_step(runs);
        std::size_t n_rows = 0;
        for (const model::StepRun& run : runs) {
            if (begun_.contains(run.slot)) return Error(Code::failed_precondition, "amid a run");
            if (length(run.slot) != run.pos) return Error(Code::failed_precondition, "wrong position");
            if (run.pos + static_cast<std::int32_t>(run.tokens.size()) > n_ctx_)
                return Error(Code::failed_precondition, "past n_ctx");
            n_rows += run.tokens.size();
        }
        if (!has_room(runs)) return used_up();
        control_->rows_per_step.push_back(n_rows);
        logits_.clear();
        for (const model::StepRun& run : runs) {
            auto& sequence = *slots_[static_cast<std::size_t>(run.slot.value)];
            for (std::size_t t = 0; t < run.tokens.size(); ++t) {
                sequence.tokens.push_back(run.tokens[t]);
                const bool is_wanted = run.logits == model::WantLogits::all ||
                                       (run.logits == model::WantLogits::last && t + 1 == run.tokens.size());
                if (is_wanted) append_row(sequence, number);
            }
        }
        control_->kv_used_bytes = kv_used_bytes();
        control_->kv_most_bytes = std::max(control_->kv_most_bytes, control_->kv_used_bytes);
        model::StepLogits logits;
        logits.n_vocab = n_vocab_;
        logits.n_rows = static_cast<std::int64_t>(logits_.size()) / n_vocab_;
        logits.data = logits_.data();
        return logits;
    }

    std::uint64_t kv_used_bytes() const override { return kv_bytes_with({}); }
    std::uint64_t kv_pool_bytes() const override { return control_->kv_pool_bytes; }

  private:
    struct FakeSequence {
        std::vector<TokenId> tokens;
        bool is_q4_0 = false;
    };

    struct Begun {
        int n_parts = 0;  // done
        std::size_t n_rows = 0;
    };

    bool has_room(std::span<const model::StepRun> runs) const {
        return control_->kv_pool_bytes == 0 || kv_bytes_with(runs) <= control_->kv_pool_bytes;
    }
    Error used_up() {
        ++control_->n_exhausted;
        return {Code::resource_exhausted, "injected: the pool is used up"};
    }
    /// A run takes its rows when it begins.
    std::uint64_t kv_bytes_with(std::span<const model::StepRun> runs) const {
        std::uint64_t n_bytes = 0;
        for (std::size_t i = 0; i < slots_.size(); ++i) {
            if (!slots_[i]) continue;
            std::size_t n_rows = slots_[i]->tokens.size();
            if (const auto begun = begun_.find(SlotId(static_cast<std::int32_t>(i))); begun != begun_.end())
                n_rows += begun->second.n_rows;
            for (const model::StepRun& run : runs)
                if (run.slot.value == static_cast<std::int32_t>(i)) n_rows += run.tokens.size();
            n_bytes += (n_rows + kFakeBlockRows - 1) / kFakeBlockRows *
                       (slots_[i]->is_q4_0 ? kFakeQ4BlockBytes : kFakeBlockBytes);
        }
        return n_bytes;
    }
    void append_row(const FakeSequence& sequence, int step) {
        const std::size_t begin = logits_.size();
        logits_.resize(begin + static_cast<std::size_t>(n_vocab_), 0.0F);
        const TokenId next = fake_next_token(sequence.tokens, end_, sequence.is_q4_0);
        logits_[begin + static_cast<std::size_t>(next)] = 20.0F;
        using Nonsense = FakeDeviceControl::Nonsense;
        if (control_->nan_at_step == step || control_->nonsense == Nonsense::nan)
            logits_[begin] = std::numeric_limits<float>::quiet_NaN();
        if (control_->nonsense == Nonsense::flat || control_->nonsense == Nonsense::constant)
            std::fill(logits_.begin() + static_cast<std::ptrdiff_t>(begin), logits_.end(), 0.0F);
        if (control_->nonsense == Nonsense::constant) logits_[begin] = 20.0F;
    }

    std::shared_ptr<FakeDeviceControl> control_;
    int n_ctx_;
    std::int32_t n_vocab_;
    TokenId end_;
    std::vector<std::optional<FakeSequence>> slots_;
    std::vector<float> logits_;
    std::map<SlotId, Begun> begun_;  // runs in parts
    int n_packed_ = 0, n_to_pack_ = 0;
};

}  // namespace

TokenId fake_next_token(std::span<const TokenId> sequence, TokenId end, bool is_q4_0) {
    std::uint64_t hash = is_q4_0 ? 0xBF58476D1CE4E5B9ULL : 0x9E3779B97F4A7C15ULL;
    for (const TokenId token : sequence) {
        hash ^= static_cast<std::uint64_t>(token) + 1;
        hash *= 0x100000001B3ULL;
        hash ^= hash >> 29;
    }
    if (hash % 41 == 0) return end;
    return 'a' + static_cast<TokenId>(hash % 26);
}

std::vector<TokenId> fake_reply(std::vector<TokenId> prompt, std::int64_t max_tokens, TokenId end,
                                std::optional<std::size_t> n_before) {
    std::vector<TokenId> reply;
    while (static_cast<std::int64_t>(reply.size()) < max_tokens) {
        const TokenId next = fake_next_token(prompt, end, n_before && reply.size() >= *n_before);
        prompt.push_back(next);
        reply.push_back(next);
        if (next == end) break;
    }
    return reply;
}

std::shared_ptr<const model::CheckpointCodec> fake_codec() {
    return std::make_shared<const FakeCodec>();
}

std::size_t FakeDeviceControl::n_held() const {
    return static_cast<std::size_t>(std::count_if(checkpoints.begin(), checkpoints.end(),
                                                  [](const auto& held) { return !held.expired(); }));
}

std::unique_ptr<model::Executor> make_fake_executor(std::shared_ptr<FakeDeviceControl> control, int n_slots,
                                                    int n_ctx, std::int32_t n_vocab, TokenId end) {
    ++control->n_created;
    return std::make_unique<FakeExecutor>(std::move(control), n_slots, n_ctx, n_vocab, end);
}

}  // namespace pantheon::actors
