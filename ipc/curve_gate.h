// Who may connect to a CURVE endpoint: answers ZeroMQ's authentication requests (ZAP, RFC 27) from a list of
// keys.
#pragma once

#include <set>
#include <string>
#include <vector>
#include <zmq.hpp>

namespace pantheon::ipc {

/// Used by the thread that owns the context's ROUTER; must exist before that socket binds.
class CurveGate {
  public:
    CurveGate(zmq::context_t& context, const std::vector<std::string>& client_keys);

    void* handle() { return socket_.handle(); }
    /// Answers all requests that wait. A peer let in carries its key (Z85) as "User-Id".
    void answer_waiting();

  private:
    zmq::socket_t socket_;
    std::set<std::string> client_keys_;
};

}  // namespace pantheon::ipc
