#include "model/chat/bounded_json.h"

#include <nlohmann/json.hpp>
#include <vector>

#include "model/chat/python_text.h"

namespace pantheon::model {

std::optional<Json> parse_bounded_json(std::string_view text) {
    bool is_bounded = true;
    std::vector<std::size_t> n_keys;  // of the objects and arrays that are open
    const auto check = [&](int depth, Json::parse_event_t event, const Json&) {
        switch (event) {
            case Json::parse_event_t::object_start:
            case Json::parse_event_t::array_start:
                n_keys.push_back(0);
                if (depth >= kMaxJsonDepth) is_bounded = false;
                break;
            case Json::parse_event_t::object_end:
            case Json::parse_event_t::array_end:
                if (!n_keys.empty()) n_keys.pop_back();
                break;
            case Json::parse_event_t::key:
                if (++n_keys.back() > kMaxJsonKeys) is_bounded = false;
                break;
            case Json::parse_event_t::value:
                break;
        }
        return is_bounded;  // once false nothing more is stored
    };
    Json value = Json::parse(text, check, /*allow_exceptions=*/false);
    if (!is_bounded || value.is_discarded()) return std::nullopt;
    return value;
}

}  // namespace pantheon::model
