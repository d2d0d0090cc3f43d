// What clients ask and what they are told, as plain values: the wire codec turns bytes into these and back,
// the actors work with nothing else. Field meanings, ranges and defaults are those of ipc/protocol.md. Free
// of CAF so that the codec and the client library stay light; actors/messages.h has the actor interfaces.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "runtime/base/ids.h"
#include "runtime/base/json.h"
#include "runtime/base/status.h"

namespace pantheon {

/// A client's own name for a request: a string of at most 128 bytes or an unsigned integer.
using RequestId = std::variant<std::string, std::uint64_t>;

/// Who is at the other end, from the socket itself. Never from the message.
struct Identity {
    std::uint32_t uid = 0;
    std::uint32_t pid = 0;
    std::string curve_key;  // empty on ipc
    friend bool operator==(const Identity&, const Identity&) = default;
};

/// The ROUTER's routing id of a connection (opaque bytes).
using RoutingId = std::string;

// ---- requests
// -------------------------------------------------------------------------------------------------

enum class CacheMode { private_, shared, off };

/// Absent fields mean: the configured default, then the model file's, then the protocol's.
struct SamplingRequest {
    std::optional<double> temperature, top_p, min_p;
    std::optional<std::int64_t> top_k;
    std::optional<double> repeat_penalty, presence_penalty, frequency_penalty;
    std::optional<std::uint64_t> seed;
    std::vector<std::pair<TokenId, float>> logit_bias;
};

struct GenerateRequest {
    std::variant<std::string, std::vector<TokenId>, Json> input;  // prompt | tokens | messages (an array)
    std::optional<std::int64_t> max_tokens;
    bool stream = true;
    std::vector<std::string> stop;
    SamplingRequest sampling;
    std::optional<int> logprobs;
    std::optional<bool> thinking;
    std::optional<std::int64_t> thinking_budget;
    Json tools;  // null: none
    int priority = 0;
    std::optional<std::int64_t> deadline_ms;
    CacheMode cache = CacheMode::private_;
    std::optional<std::string> session;
    std::optional<std::int64_t> credit;
};
struct CancelRequest {
    RequestId target;
};
struct CreditRequest {
    RequestId target;
    std::int64_t n = 0;
};
struct TokenizeRequest {
    std::string text;
    bool special = false;
};
struct DetokenizeRequest {
    std::vector<TokenId> tokens;
    bool special = true;
};
struct TemplateRequest {
    Json messages;
    Json tools;
    std::optional<bool> thinking;
    bool add_generation_prompt = true;
};
struct ScoreRequest {
    std::vector<TokenId> tokens;
    int top = 0;
};
struct StatusRequest {};
struct PingRequest {};
struct MetricsRequest {};
struct ReloadRequest {
    bool dry_run = false;
};
struct DrainRequest {
    std::optional<double> timeout_s;
};
/// sessions, session.drop, session.save, session.load
struct SessionRequest {
    std::string op;
    std::optional<std::string> session;
    CacheMode cache = CacheMode::private_;
};

using Request = std::variant<GenerateRequest, CancelRequest, CreditRequest, TokenizeRequest,
                             DetokenizeRequest, TemplateRequest, ScoreRequest, StatusRequest, PingRequest,
                             MetricsRequest, ReloadRequest, DrainRequest, SessionRequest>;

// ---- replies
// --------------------------------------------------------------------------------------------------

struct TokenLogprobEntry {
    TokenId token = -1;
    float logprob = 0;
};

struct AcceptedEvent {
    std::int64_t queue = 0;
    std::uint64_t seed = 0;
    std::int64_t max_tokens = 0;
};
struct ProgressEvent {
    std::string phase;
    std::int64_t done = 0, total = 0;
};
struct TokenEvent {
    std::int64_t i = 0;
    std::optional<TokenId> token;  // absent on the last event, which only frees held-back text
    std::string text;
    std::string kind = "content";  // content | reasoning | tool_call
    std::optional<float> logprob;
    std::optional<std::vector<TokenLogprobEntry>> top;
};
struct Usage {
    std::int64_t prompt_tokens = 0, cached_tokens = 0, completion_tokens = 0, reasoning_tokens = 0;
};
struct Timings {
    double queue_ms = 0, prefill_ms = 0, first_token_ms = 0, decode_ms = 0;
};
struct ToolCallEntry {
    std::string name;
    Json arguments;
    bool is_incomplete = false;
};
struct DoneEvent {
    std::string finish;  // stop | length | cancelled | deadline | error
    std::string text;
    std::string reasoning;
    std::vector<ToolCallEntry> tool_calls;
    std::optional<std::string> stop_match;
    Usage usage;
    Timings timings;
    std::vector<std::string> notes;
    std::optional<Error> error;  // code and message, on failure
};
struct ResultEvent {
    Json value;
};  // a map; binary values are Json::binary
struct ErrorEvent {
    Error error;
    std::optional<std::int64_t> retry_after_ms;
};

using Event = std::variant<AcceptedEvent, ProgressEvent, TokenEvent, DoneEvent, ResultEvent, ErrorEvent>;

// ---- the socket's two directions
// ------------------------------------------------------------------------------

/// A decoded message from a client.
struct Inbound {
    RoutingId client;
    Identity who;
    RequestId id;
    Request request;
    /// Held as long as the request waits for its turn; the port reads no further while too many are held.
    std::shared_ptr<const void> in_flight = nullptr;
};
/// The connection is known to be gone: all it asked for may be cancelled.
struct ClientGone {
    RoutingId client;
};
/// More than ipc.max_unread events wait in the daemon for this client (is_stalled), or no longer do (half of
/// it).
struct ClientBacklog {
    RoutingId client;
    bool is_stalled = false;
};

using PortEvent = std::variant<Inbound, ClientGone, ClientBacklog>;

/// The sending half of the client socket, as actors see it. Thread-safe; never blocks; what is sent to one
/// client arrives in the order of the calls from one thread.
class ClientPort {
  public:
    virtual ~ClientPort() = default;
    virtual void send(const RoutingId& client, const RequestId& id, Event event) = 0;
    /// Where decoded messages go: called on the socket's thread, must not block. Replacing it is allowed at
    /// any time (a new gateway); an empty function holds messages back, in a bounded queue.
    virtual void set_sink(std::function<void(PortEvent)> sink) = 0;
};

}  // namespace pantheon
