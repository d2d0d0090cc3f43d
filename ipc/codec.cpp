// Replies: their envelope (id, ev) around the fields of ipc/event_json.h.
#include "ipc/codec.h"

#include <nlohmann/json.hpp>

#include "ipc/event_json.h"
#include "ipc/fields.h"
#include "ipc/msgpack_tree.h"

namespace pantheon::ipc {

std::string encode_event(const std::optional<RequestId>& id, const Event& event) {
    Json map = Json::object();
    map["id"] = id ? request_id_to_json(*id) : Json(nullptr);
    map["ev"] = event_name(event);
    Json fields = event_to_json(event);
    for (auto& [key, value] : fields.get_ref<Json::object_t&>()) map[key] = std::move(value);
    return pack_tree(map);
}

Result<Reply> decode_reply(std::string_view frame) noexcept {
    try {
        Json root;
        if (auto status = parse_map(frame, kReplyLimits, root); !status)
            return Error(Code::data_loss, "a reply that cannot be read: " + status.error().message());
        Reply reply{std::nullopt, ResultEvent{}};
        const auto id = root.find("id");
        if (id == root.end()) return Error(Code::data_loss, "a reply without id");
        if (!id->is_null()) {
            reply.id = request_id_from_json(*id);
            if (!reply.id) return Error(Code::data_loss, "a reply whose id is mistyped");
        }
        const auto ev = root.find("ev");
        if (ev == root.end() || !ev->is_string()) return Error(Code::data_loss, "a reply without ev");
        auto event = event_from_json(ev->get_ref<const std::string&>(), root);
        if (!event) return std::move(event).error();
        reply.event = std::move(event).value();
        return reply;
    } catch (...) {
        return Error(Code::resource_exhausted, "out of memory");
    }
}

}  // namespace pantheon::ipc
