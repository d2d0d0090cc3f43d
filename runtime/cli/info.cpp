// `info`: a model file's metadata and tensors.
#include <cstdio>
#include <map>
#include <nlohmann/json.hpp>

#include "model/gguf/gguf_types.h"
#include "runtime/base/units.h"
#include "runtime/cli/commands.h"
#include "runtime/cli/console.h"
#include "runtime/cli/info_text.h"
#include "runtime/cli/local_model.h"

namespace pantheon::cli {
namespace {

using model::GgufArray;
using model::GgufFile;
using model::GgufMetadata;
using model::GgufScalar;
using model::GgufTensor;
using model::GgufType;
using model::GgufValue;

Json scalar_json(const GgufScalar& scalar) {
    return std::visit([](const auto& value) { return Json(value); }, scalar);
}

Json value_json(const GgufValue& value) {
    if (const auto* scalar = std::get_if<GgufScalar>(&value)) return scalar_json(*scalar);
    const auto& array = std::get<GgufArray>(value);
    Json list = Json::array();
    const bool is_boolean = array.element_type == static_cast<std::int32_t>(GgufType::boolean);
    std::visit(
        [&](const auto& elements) {
            for (const auto& element : elements)
                list.push_back(is_boolean ? Json(element != decltype(element){}) : Json(element));
        },
        array.values);
    return list;
}

std::vector<std::int64_t> dimensions(const GgufTensor& tensor) {
    return {tensor.ne.begin(), tensor.ne.begin() + tensor.n_dims};
}

std::string architecture(const GgufFile& file) {
    const auto arch = file.metadata().get_string("general.architecture");
    return arch && *arch ? std::string(**arch) : std::string();
}

std::map<std::string, std::int64_t> type_counts(const GgufFile& file) {
    std::map<std::string, std::int64_t> counts;
    for (const GgufTensor& tensor : file.tensors())
        ++counts[std::string(model::gguf_tensor_type_name(tensor.type))];
    return counts;
}

/// Long values are shown by their size and beginning.
std::string short_value(const GgufValue& value) {
    constexpr std::size_t kMaxShown = 72;
    constexpr std::size_t kMaxElements = 6;
    Json json;
    std::string prefix;
    if (const auto* array = std::get_if<GgufArray>(&value)) {
        prefix = std::to_string(array->size()) + " x " +
                 std::string(model::gguf_type_name(array->element_type)) + " ";
        json = Json::array();
        std::visit(
            [&](const auto& elements) {
                for (std::size_t i = 0; i < elements.size() && i < kMaxElements; ++i)
                    json.push_back(elements[i]);
            },
            array->values);
    } else {
        json = scalar_json(std::get<GgufScalar>(value));
    }
    std::string text = prefix + json.dump(-1, ' ', true, Json::error_handler_t::replace);
    if (text.size() > kMaxShown) text = text.substr(0, kMaxShown) + " ...";
    return text;
}

}  // namespace

Json info_json(const GgufFile& file) {
    Json kv = Json::object();
    for (const GgufMetadata::Entry& entry : file.metadata().entries())
        kv[entry.key] = value_json(entry.value);
    Json tensors = Json::array();
    for (const GgufTensor& tensor : file.tensors())
        tensors.push_back(Json{{"name", tensor.name},
                               {"type", model::gguf_tensor_type_name(tensor.type)},
                               {"ne", dimensions(tensor)},
                               {"offset", tensor.offset},
                               {"bytes", tensor.n_bytes},
                               {"file", file.shard_paths()[static_cast<std::size_t>(tensor.shard)]}});
    return Json{{"arch", architecture(file)},
                {"kv", std::move(kv)},
                {"tensors", std::move(tensors)},
                {"types", type_counts(file)}};
}

std::string info_text(const GgufFile& file) {
    std::string out = "file         " + file.path() + "\n";
    for (const std::string& shard : file.shard_paths().subspan(1)) out += "             " + shard + "\n";
    out += "size         " + format_bytes(file.file_bytes()) + "\n";
    out += "version      " + std::to_string(file.version()) + "\n";
    out += "arch         " + architecture(file) + "\n";
    out += "fingerprint  " + file.fingerprint() + "\n";
    out += "tensors      " + std::to_string(file.tensors().size());
    for (const auto& [type, count] : type_counts(file)) out += ", " + std::to_string(count) + " " + type;
    out += "\n\n";
    for (const GgufMetadata::Entry& entry : file.metadata().entries())
        out += entry.key + " = " + short_value(entry.value) + "\n";
    out += "\n";
    for (const GgufTensor& tensor : file.tensors()) {
        std::string shape;
        for (const std::int64_t ne : dimensions(tensor))
            shape += (shape.empty() ? "" : " x ") + std::to_string(ne);
        char line[64];
        std::snprintf(line, sizeof line, "%-8s %-24s %12s  ",
                      std::string(model::gguf_tensor_type_name(tensor.type)).c_str(), shape.c_str(),
                      format_bytes(tensor.n_bytes).c_str());
        out.append(line).append(tensor.name).append("\n");
    }
    return out;
}

int run_info(const InfoOptions& options) {
    const auto file = open_model(options.file);
    if (!file) {
        complain(file.error().to_string());
        return kRefused;
    }
    const std::string text =
        options.as_json ? info_json(**file).dump(1, ' ', false, Json::error_handler_t::replace) + "\n"
                        : info_text(**file);
    if (write_out(text)) return kDone;
    complain("standard output cannot be written");
    return kRefused;
}

}  // namespace pantheon::cli
