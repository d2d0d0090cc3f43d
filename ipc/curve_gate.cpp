#include "ipc/curve_gate.h"

namespace pantheon::ipc {
namespace {

constexpr std::size_t kKeyBytes = 32;

}  // namespace

CurveGate::CurveGate(zmq::context_t& context, const std::vector<std::string>& client_keys)
    : socket_(context, zmq::socket_type::rep), client_keys_(client_keys.begin(), client_keys.end()) {
    socket_.set(zmq::sockopt::linger, 0);
    socket_.bind("inproc://zeromq.zap.01");
}

void CurveGate::answer_waiting() {
    // Request: version, request id, domain, address, identity, mechanism, credentials.
    for (;;) {
        std::vector<std::string> frames;
        zmq::message_t part;
        do {
            if (zmq_msg_recv(part.handle(), socket_.handle(), ZMQ_DONTWAIT) < 0) return;
            frames.push_back(part.to_string());
        } while (part.more());
        std::string key;
        if (frames.size() == 7 && frames[0] == "1.0" && frames[5] == "CURVE" &&
            frames[6].size() == kKeyBytes) {
            char text[41] = {};
            zmq_z85_encode(text, reinterpret_cast<const std::uint8_t*>(frames[6].data()), kKeyBytes);
            key = text;
        }
        const bool is_known = client_keys_.contains(key);
        const std::string reply[] = {"1.0",
                                     frames.size() > 1 ? frames[1] : "",
                                     is_known ? "200" : "400",
                                     is_known ? "OK" : "this key is not on the list",
                                     is_known ? key : "",
                                     ""};
        for (const std::string& frame : reply)
            zmq_send(socket_.handle(), frame.data(), frame.size(), &frame == &reply[5] ? 0 : ZMQ_SNDMORE);
    }
}

}  // namespace pantheon::ipc
