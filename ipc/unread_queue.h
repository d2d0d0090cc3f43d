// Replies that one client has not made room for: beyond the socket's own queue, up to a bound.
#pragma once

#include <cstddef>
#include <deque>
#include <string>

namespace pantheon::ipc {

/// What a push or pop means for the producers.
enum class UnreadChange {
    none,
    stalled,  // more than max_unread wait: stop producing
    resumed,  // half of that again: go on
    overrun,  // a client that goes on asking without reading; nothing of it can be kept any more
};

class UnreadQueue {
  public:
    /// Slack beyond max_unread: what is under way between a stall being told and the producers' pause, and
    /// the replies to small requests, which nothing pauses.
    static constexpr std::size_t kSlack = 4096;
    static constexpr std::size_t kMaxBytes = 64u << 20;

    explicit UnreadQueue(std::size_t max_unread) : max_unread_(max_unread) {}

    bool empty() const { return frames_.empty(); }
    std::size_t size() const { return frames_.size(); }
    bool is_stalled() const { return is_stalled_; }
    const std::string& front() const { return frames_.front(); }

    /// On overrun the frame was not kept.
    UnreadChange push(std::string frame) {
        const bool is_full = frames_.size() >= max_unread_ + kSlack ||
                             (!frames_.empty() && n_bytes_ + frame.size() > kMaxBytes);
        if (is_full) return UnreadChange::overrun;
        n_bytes_ += frame.size();
        frames_.push_back(std::move(frame));
        if (is_stalled_ || frames_.size() <= max_unread_) return UnreadChange::none;
        is_stalled_ = true;
        return UnreadChange::stalled;
    }

    UnreadChange pop() {
        n_bytes_ -= frames_.front().size();
        frames_.pop_front();
        if (!is_stalled_ || frames_.size() > max_unread_ / 2) return UnreadChange::none;
        is_stalled_ = false;
        return UnreadChange::resumed;
    }

    void clear() {
        frames_.clear();
        n_bytes_ = 0;
        is_stalled_ = false;
    }

  private:
    std::size_t max_unread_;
    std::deque<std::string> frames_;
    std::size_t n_bytes_ = 0;
    bool is_stalled_ = false;
};

}  // namespace pantheon::ipc
