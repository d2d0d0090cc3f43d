// Stand-ins for the socket and the device, so that actors can be tested in one thread with virtual time.
#pragma once

#include <atomic>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <vector>

#include "actors/messages.h"

namespace pantheon::actors {

/// Keeps every event in the order of sending.
class FakePort : public ClientPort {
  public:
    struct Sent {
        RoutingId client;
        RequestId id;
        Event event;
    };
    void send(const RoutingId& client, const RequestId& id, Event event) override {
        sent.push_back({client, id, std::move(event)});
    }
    void set_sink(std::function<void(PortEvent)> sink) override { sink_ = std::move(sink); }

    bool has_sink() const { return static_cast<bool>(sink_); }
    void deliver(PortEvent event) { sink_(std::move(event)); }

    template <class T>
    std::vector<T> events(const RoutingId& client, const RequestId& id) const {
        std::vector<T> found;
        for (const Sent& s : sent)
            if (s.client == client && s.id == id)
                if (const T* event = std::get_if<T>(&s.event)) found.push_back(*event);
        return found;
    }

    std::vector<Sent> sent;

  private:
    std::function<void(PortEvent)> sink_;
};

inline constexpr std::int32_t kFakeBlockRows = 16;
/// What a block of the fake device takes, as configured and in q4_0.
inline constexpr std::uint64_t kFakeBlockBytes = 100, kFakeQ4BlockBytes = 30;

/// What tests tell the fake device to do.
struct FakeDeviceControl {
    std::atomic<int> n_steps{0};         // the two of each canary included
    std::atomic<int> throw_at_step{-1};  // the step with this number throws, once
    std::atomic<int> nan_at_step{-1};    // the step with this number gives NaN logits
    int n_parts = 1;                     // that a run in parts takes, whatever their time is
    int n_begun_parts = 0;               // after which there was more to do
    std::function<void(const model::StepRun&)> during_each_part;  // but the last
    std::atomic<bool> fail_create{false};
    std::atomic<int> n_created{0};
    enum class Nonsense { none, nan, flat, constant };  // in every row
    Nonsense nonsense = Nonsense::none;
    std::function<void()> during_next_step;  // called once, in the middle of a step
    std::function<void(std::span<const model::StepRun>)> during_each_step;
    std::vector<std::size_t> rows_per_step;
    std::atomic<int> n_to_pack{0};  // slices of packing
    std::function<void()> during_each_pack;
    std::atomic<bool> is_packed{false};
    std::atomic<int> no_memory_after{-1};  // so many slices
    bool fail_restore = false, fail_snapshot = false;
    int n_restored = 0, n_restored_rounded = 0;  // the latter: of those whose image was in f16
    /// The device's own bound, whatever the actors count; 0: none. A step that needs more is exhausted.
    std::uint64_t kv_pool_bytes = 0;
    std::uint64_t kv_used_bytes = 0, kv_most_bytes = 0;  // after the last step and after any
    int n_exhausted = 0, n_converted = 0;
    bool fail_bind = false;                                           // no memory for a state
    std::vector<std::weak_ptr<const model::Checkpoint>> checkpoints;  // every one ever taken
    int n_rounded = 0, n_exact = 0;  // of these, with their image in f16 and in f32
    std::size_t n_held() const;      // of these, those that still exist
};

/// The token that the fake device prefers after a sequence: a letter, or `end` after some histories. Another
/// one with KV in q4_0.
TokenId fake_next_token(std::span<const TokenId> sequence, TokenId end, bool is_q4_0 = false);

/// What a greedy request must produce: up to `max_tokens` tokens, the end token included when it comes.
/// n_before: tokens of it before KV was kept in q4_0; nothing: it never was.
std::vector<TokenId> fake_reply(std::vector<TokenId> prompt, std::int64_t max_tokens, TokenId end,
                                std::optional<std::size_t> n_before = {});

/// Saves the tokens.
std::shared_ptr<const model::CheckpointCodec> fake_codec();

std::unique_ptr<model::Executor> make_fake_executor(std::shared_ptr<FakeDeviceControl> control, int n_slots,
                                                    int n_ctx, std::int32_t n_vocab, TokenId end);

}  // namespace pantheon::actors
