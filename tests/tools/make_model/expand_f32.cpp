#include "tests/tools/make_model/expand_f32.h"

#include <algorithm>
#include <stdexcept>

#include "kernels/quant/dequantize.h"
#include "model/gguf/gguf_file.h"
#include "model/gguf/gguf_types.h"

namespace pantheon::test {
namespace {

using model::GgufArray;
using model::GgufFile;
using model::GgufMetadata;
using model::GgufScalar;
using model::GgufTensor;
using model::GgufType;

/// Appends a number in the width of its file type. Narrowing is exact: the value came from that type.
template <class T>
void append_as(std::string& out, std::int32_t type, T value) {
    switch (static_cast<GgufType>(type)) {
        case GgufType::u8:
        case GgufType::i8:
        case GgufType::boolean:
            return append_number(out, static_cast<std::int8_t>(value));
        case GgufType::u16:
        case GgufType::i16:
            return append_number(out, static_cast<std::int16_t>(value));
        case GgufType::u32:
        case GgufType::i32:
            return append_number(out, static_cast<std::int32_t>(value));
        case GgufType::u64:
        case GgufType::i64:
            return append_number(out, static_cast<std::int64_t>(value));
        case GgufType::f32:
            return append_number(out, static_cast<float>(value));
        case GgufType::f64:
            return append_number(out, static_cast<double>(value));
        case GgufType::string:
        case GgufType::array:
            break;
    }
    throw std::logic_error("not a number type");
}

void append_as(std::string& out, std::int32_t, const std::string& value) {
    append_string(out, value);
}

GgufTyped encode(const GgufMetadata::Entry& entry) {
    if (const auto* array = std::get_if<GgufArray>(&entry.value)) {
        std::string elements;
        std::visit(
            [&](const auto& values) {
                for (const auto& v : values) append_as(elements, array->element_type, v);
            },
            array->values);
        return GgufTyped::array(static_cast<std::uint32_t>(array->element_type), array->size(),
                                std::move(elements));
    }
    GgufTyped typed{static_cast<std::uint32_t>(entry.type), {}};
    std::visit([&](const auto& v) { append_as(typed.bytes, entry.type, v); },
               std::get<GgufScalar>(entry.value));
    return typed;
}

void write_expanded(const GgufFile& file, const GgufTensor& tensor, ByteSink& sink) {
    const kernels::WeightTypeInfo& info = *kernels::weight_type_info(tensor.type);
    const std::int64_t n_in = tensor.ne[0], n_rows = tensor.ne[1] * tensor.ne[2] * tensor.ne[3];
    const auto row_bytes = static_cast<std::size_t>(kernels::row_bytes(info, n_in));
    std::vector<float> values(static_cast<std::size_t>(n_in));
    const std::byte* row = file.bytes(tensor).data();
    for (std::int64_t i = 0; i < n_rows; ++i, row += row_bytes) {
        kernels::dequantize_row(static_cast<kernels::WeightType>(tensor.type), row, values.data(), n_in);
        sink.write(values.data(), values.size() * sizeof(float));
    }
}

}  // namespace

WrittenModel expand_f32(const std::string& from, const std::string& to) {
    const auto opened = GgufFile::open(from);
    if (!opened) throw std::runtime_error(opened.error().to_string());
    const GgufFile& file = **opened;
    GgufWriter writer;
    bool has_file_type = false;
    for (const GgufMetadata::Entry& entry : file.metadata().entries()) {
        const bool is_of_the_container = entry.key == "general.alignment" || entry.key.starts_with("split.");
        if (is_of_the_container) continue;
        const bool is_file_type = entry.key == "general.file_type";
        writer.kv(entry.key, is_file_type ? GgufTyped::u32(0) : encode(entry));
        has_file_type = has_file_type || is_file_type;
    }
    if (!has_file_type) writer.kv("general.file_type", GgufTyped::u32(0));
    WrittenModel written;
    for (const GgufTensor& tensor : file.tensors()) {
        const kernels::WeightTypeInfo& info = *kernels::weight_type_info(tensor.type);
        if (!info.is_supported)
            throw std::runtime_error(tensor.name + ": cannot be expanded from " + std::string(info.name));
        const std::vector<std::int64_t> ne(tensor.ne.begin(), tensor.ne.begin() + tensor.n_dims);
        std::uint64_t n_bytes = sizeof(float);
        for (const std::int64_t d : ne) n_bytes *= static_cast<std::uint64_t>(d);
        writer.tensor({tensor.name, 0, ne, n_bytes,
                       [&](ByteSink& sink) { write_expanded(file, tensor, sink); }, std::nullopt});
        ++written.n_tensors;
        written.data_bytes += n_bytes;
    }
    writer.write_file(to);
    written.paths = {to};
    written.type_counts = std::to_string(written.n_tensors) + " F32";
    return written;
}

}  // namespace pantheon::test
