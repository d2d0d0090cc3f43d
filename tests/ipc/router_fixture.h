// A RouterLoop on a socket of its own, a sink that records, and clients that speak raw ZeroMQ.
#pragma once

#include <gtest/gtest.h>

#include <chrono>
#include <condition_variable>
#include <mutex>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>
#include <zmq.hpp>

#include "ipc/codec.h"
#include "ipc/msgpack_tree.h"
#include "ipc/router_loop.h"
#include "tests/support/temp_dir.h"

namespace pantheon::ipc {

constexpr std::chrono::milliseconds kPatience{10'000};

/// A sink that keeps every event and lets a test wait for what it expects.
class Recorder {
  public:
    /// With `takes_up_at_once` false the requests go on counting as waiting until they are destroyed.
    std::function<void(PortEvent)> sink(bool takes_up_at_once = true) {
        return [this, takes_up_at_once](PortEvent event) {
            const std::lock_guard lock(mutex_);
            if (auto* inbound = std::get_if<Inbound>(&event); inbound && takes_up_at_once)
                inbound->in_flight.reset();
            events_.push_back(std::move(event));
            changed_.notify_all();
        };
    }

    /// Removes and returns the first event of type T, waiting for it.
    template <class T>
    std::optional<T> next(std::chrono::milliseconds patience = kPatience) {
        std::unique_lock lock(mutex_);
        const auto deadline = std::chrono::steady_clock::now() + patience;
        for (;;) {
            for (auto at = events_.begin(); at != events_.end(); ++at) {
                if (!std::holds_alternative<T>(*at)) continue;
                T found = std::get<T>(std::move(*at));
                events_.erase(at);
                return found;
            }
            if (changed_.wait_until(lock, deadline) == std::cv_status::timeout) return std::nullopt;
        }
    }
    /// As next, failing the test when nothing comes.
    template <class T>
    T expect() {
        std::optional<T> found = next<T>();
        if (!found) {
            ADD_FAILURE() << "the event did not come";
            return T{};
        }
        return std::move(*found);
    }

  private:
    std::mutex mutex_;
    std::condition_variable changed_;
    std::vector<PortEvent> events_;
};

class RawClient {
  public:
    RawClient(zmq::context_t& context, const std::string& endpoint,
              zmq::socket_type type = zmq::socket_type::dealer, const std::string& identity = "",
              int receive_queue = 1000)
        : socket_(context, type) {
        socket_.set(zmq::sockopt::linger, 0);
        socket_.set(zmq::sockopt::rcvtimeo, static_cast<int>(kPatience.count()));
        socket_.set(zmq::sockopt::sndhwm, 0);
        socket_.set(zmq::sockopt::rcvhwm, receive_queue);
        if (!identity.empty()) socket_.set(zmq::sockopt::routing_id, identity);
        socket_.connect(endpoint);
    }

    zmq::socket_t& socket() { return socket_; }
    void send(const std::string& frame, zmq::send_flags flags = zmq::send_flags::none) {
        socket_.send(zmq::buffer(frame), flags);
    }
    void ask(const RequestId& id, const Request& request) { send(encode_request(id, request).value()); }

    std::optional<std::string> frame() {
        zmq::message_t message;
        if (!socket_.recv(message)) return std::nullopt;
        return message.to_string();
    }
    /// The next reply; a test failure when none comes or it cannot be read.
    Reply reply() {
        Reply nothing{std::nullopt, ResultEvent{}};
        const auto bytes = frame();
        if (!bytes) {
            ADD_FAILURE() << "no reply";
            return nothing;
        }
        auto decoded = decode_reply(*bytes);
        if (!decoded) {
            ADD_FAILURE() << decoded.error().to_string();
            return nothing;
        }
        return std::move(decoded).value();
    }
    template <class T>
    T expect(const RequestId& id) {
        Reply r = reply();
        EXPECT_EQ(r.id, id);
        if (auto* event = std::get_if<T>(&r.event)) return std::move(*event);
        ADD_FAILURE() << "another event";
        if constexpr (std::is_same_v<T, ErrorEvent>)
            return T{Error(Code::internal, ""), std::nullopt};
        else
            return T{};
    }
    void set_patience(std::chrono::milliseconds patience) {
        socket_.set(zmq::sockopt::rcvtimeo, static_cast<int>(patience.count()));
    }

  private:
    zmq::socket_t socket_;
};

class RouterFixture : public testing::Test {
  protected:
    RouterConfig config() const {
        RouterConfig c;
        c.endpoint = "ipc://" + dir_.path() + "/s.sock";
        c.max_unread = 16;
        return c;
    }
    std::unique_ptr<RouterLoop> start(const RouterConfig& c) {
        auto loop = RouterLoop::start(c);
        EXPECT_TRUE(loop) << loop.error().to_string();
        return loop ? std::move(loop).value() : nullptr;
    }
    std::unique_ptr<RouterLoop> start() { return start(config()); }

    test::TempDir dir_;
    zmq::context_t context_;  // the clients'
    Recorder recorder_;
};

inline Event result_of(const char* json) {
    return ResultEvent{Json::parse(json)};
}

inline TokenEvent token_event(std::int64_t i, std::string text = "x") {
    TokenEvent e;
    e.i = i;
    e.token = 1;
    e.text = std::move(text);
    return e;
}

inline GenerateRequest prompt_request(bool stream = true) {
    GenerateRequest r;
    r.input = std::string("hello");
    r.stream = stream;
    return r;
}

}  // namespace pantheon::ipc
