#include "model/gguf/gguf_parse.h"

#include <algorithm>
#include <bit>
#include <limits>
#include <string>
#include <unordered_set>
#include <utility>

#include "kernels/quant/weight_type.h"
#include "model/gguf/byte_reader.h"
#include "model/gguf/gguf_types.h"
#include "runtime/base/units.h"

namespace pantheon::model {
namespace {

constexpr std::uint64_t kHeaderBytes = 24;     // magic, version and the two counts
constexpr std::uint64_t kMinEntryBytes = 14;   // key of one byte, type, value of one byte
constexpr std::uint64_t kMinTensorBytes = 33;  // name of one byte, one dimension, type, offset
constexpr std::uint64_t kMaxArrayCount = 1u << 30;
constexpr std::uint64_t kMaxStringBytes = kGiB;
constexpr std::uint64_t kMaxNameBytes = 63;
constexpr std::uint64_t kDefaultAlignment = 32;
constexpr std::int64_t kMaxAlignment = 65536;
constexpr char kAlignmentKey[] = "general.alignment";

Error damaged(std::string message) {
    return Error(Code::data_loss, std::move(message));
}

Error truncated(const std::string& what, const ByteReader& in) {
    return damaged(what + ": the file ends inside it, " + std::to_string(in.remaining()) +
                   " bytes after offset " + std::to_string(in.position()));
}

/// Names in messages: printable, and not longer than a line.
std::string printable(std::string_view text) {
    constexpr std::size_t kMaxShown = 80;
    std::string out;
    for (const char c : text.substr(0, kMaxShown)) out += c >= 0x20 && c < 0x7F ? c : '?';
    if (text.size() > kMaxShown) out += "...";
    return out;
}

template <class File, class Stored, class Vector>
bool read_elements(ByteReader& in, std::uint64_t count, Vector& values) {
    values.reserve(count);
    for (std::uint64_t i = 0; i < count; ++i) {
        const auto element = in.read<File>();
        if (!element) return false;
        values.push_back(static_cast<Stored>(*element));
    }
    return true;
}

Result<GgufArray> read_array(ByteReader& in, const std::string& key) {
    const auto type = in.read<std::int32_t>();
    const auto count = in.read<std::uint64_t>();
    if (!type || !count) return truncated(key, in);
    if (*type == static_cast<std::int32_t>(GgufType::array)) return damaged(key + ": an array of arrays");
    const std::uint64_t min_bytes = gguf_type_min_bytes(*type);
    if (min_bytes == 0) return damaged(key + ": unknown array element type " + std::to_string(*type));
    if (*count > kMaxArrayCount || *count > in.remaining() / min_bytes) {
        return damaged(key + ": an array of " + std::to_string(*count) + " " +
                       std::string(gguf_type_name(*type)) + " elements in the " +
                       std::to_string(in.remaining()) + " bytes left");
    }
    GgufArray array;
    array.element_type = *type;
    auto integers = [&]<class T>(T) {
        return read_elements<T, std::int64_t>(in, *count, array.values.emplace<std::vector<std::int64_t>>());
    };
    auto floats = [&]<class T>(T) {
        return read_elements<T, double>(in, *count, array.values.emplace<std::vector<double>>());
    };
    bool is_complete = true;
    switch (static_cast<GgufType>(*type)) {
        case GgufType::u8:
            is_complete = integers(std::uint8_t{});
            break;
        case GgufType::i8:
            is_complete = integers(std::int8_t{});
            break;
        case GgufType::u16:
            is_complete = integers(std::uint16_t{});
            break;
        case GgufType::i16:
            is_complete = integers(std::int16_t{});
            break;
        case GgufType::u32:
            is_complete = integers(std::uint32_t{});
            break;
        case GgufType::i32:
            is_complete = integers(std::int32_t{});
            break;
        case GgufType::i64:
            is_complete = integers(std::int64_t{});
            break;
        case GgufType::u64:
            is_complete = read_elements<std::uint64_t, std::uint64_t>(
                in, *count, array.values.emplace<std::vector<std::uint64_t>>());
            break;
        case GgufType::f32:
            is_complete = floats(float{});
            break;
        case GgufType::f64:
            is_complete = floats(double{});
            break;
        case GgufType::boolean: {
            is_complete = integers(std::uint8_t{});
            for (std::int64_t& value : std::get<std::vector<std::int64_t>>(array.values)) value = value != 0;
            break;
        }
        case GgufType::string: {
            auto& strings = array.values.emplace<std::vector<std::string>>();
            strings.reserve(*count);
            for (std::uint64_t i = 0; i < *count && is_complete; ++i) {
                const auto text = in.read_string();
                is_complete = text && text->size() <= kMaxStringBytes;
                if (is_complete) strings.emplace_back(*text);
            }
            break;
        }
        case GgufType::array:
            break;  // refused above
    }
    if (!is_complete) return truncated(key, in);
    return array;
}

Result<GgufValue> read_value(ByteReader& in, std::int32_t type, const std::string& key) {
    auto as = [&]<class File, class Stored>(File, Stored) -> Result<GgufValue> {
        const auto value = in.read<File>();
        if (!value) return truncated(key, in);
        return GgufValue(GgufScalar(static_cast<Stored>(*value)));
    };
    switch (static_cast<GgufType>(type)) {
        case GgufType::u8:
            return as(std::uint8_t{}, std::int64_t{});
        case GgufType::i8:
            return as(std::int8_t{}, std::int64_t{});
        case GgufType::u16:
            return as(std::uint16_t{}, std::int64_t{});
        case GgufType::i16:
            return as(std::int16_t{}, std::int64_t{});
        case GgufType::u32:
            return as(std::uint32_t{}, std::int64_t{});
        case GgufType::i32:
            return as(std::int32_t{}, std::int64_t{});
        case GgufType::i64:
            return as(std::int64_t{}, std::int64_t{});
        case GgufType::f32:
            return as(float{}, double{});
        case GgufType::f64:
            return as(double{}, double{});
        case GgufType::boolean:
            return as(std::uint8_t{}, bool{});
        case GgufType::u64: {
            const auto value = in.read<std::uint64_t>();
            if (!value) return truncated(key, in);
            if (*value > static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max()))
                return GgufValue(GgufScalar(*value));
            return GgufValue(GgufScalar(static_cast<std::int64_t>(*value)));
        }
        case GgufType::string: {
            const auto text = in.read_string();
            if (!text || text->size() > kMaxStringBytes) return truncated(key, in);
            return GgufValue(GgufScalar(std::string(*text)));
        }
        case GgufType::array: {
            auto array = read_array(in, key);
            if (!array) return std::move(array).error();
            return GgufValue(*std::move(array));
        }
    }
    return damaged(key + ": unknown value type " + std::to_string(type));
}

Status read_metadata(ByteReader& in, std::int64_t n_entries, GgufMetadata& metadata) {
    for (std::int64_t i = 0; i < n_entries; ++i) {
        const std::string number = "metadata entry " + std::to_string(i);
        const auto key = in.read_string();
        if (!key) return truncated(number, in);
        if (key->empty()) return damaged(number + ": empty key");
        const std::string name = printable(*key);
        if (metadata.contains(*key)) return damaged(name + ": the key appears twice");
        const auto type = in.read<std::int32_t>();
        if (!type) return truncated(name, in);
        auto value = read_value(in, *type, name);
        if (!value) return std::move(value).error();
        metadata.add({std::string(*key), *type, *std::move(value)});
    }
    return {};
}

Error unknown_type(const std::string& name, std::int32_t type) {
    std::string text = name + ": tensor type " + std::to_string(type);
    const bool is_retired =
        type == 4 || type == 5 || (type >= 31 && type <= 33) || (type >= 36 && type <= 38);
    if (is_retired) {
        text += " was retired from the format";
    } else if (type >= 97 && type < 400) {
        text += " is private to ik_llama.cpp";
    } else {
        text += " is unknown";
    }
    return Error(Code::unimplemented, text);
}

Status check_extent(const std::string& name, GgufTensor& tensor) {
    const kernels::WeightTypeInfo* info = kernels::weight_type_info(tensor.type);
    if (!info) return unknown_type(name, tensor.type);
    std::uint64_t n_elements = 1;
    for (const std::int64_t ne : tensor.ne) {
        if (ne <= 0) return damaged(name + ": a dimension of " + std::to_string(ne));
        const auto product = checked_mul(n_elements, static_cast<std::uint64_t>(ne));
        if (!product || *product > static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max()))
            return damaged(name + ": the number of elements overflows");
        n_elements = *product;
    }
    if (tensor.ne[0] % info->block_elems != 0) {
        return damaged(name + ": rows of " + std::to_string(tensor.ne[0]) +
                       " elements, want a multiple of the " + std::to_string(info->block_elems) +
                       " in a block of " + std::string(info->name));
    }
    const auto n_bytes = checked_mul(n_elements / static_cast<std::uint64_t>(info->block_elems),
                                     static_cast<std::uint64_t>(info->block_bytes));
    if (!n_bytes) return damaged(name + ": the number of bytes overflows");
    tensor.n_bytes = *n_bytes;
    return {};
}

Status read_tensor(ByteReader& in, const std::string& number, std::uint64_t alignment, GgufTensor& tensor) {
    const auto raw_name = in.read_string();
    if (!raw_name) return truncated(number, in);
    if (raw_name->empty()) return damaged(number + ": empty name");
    const std::string name = printable(*raw_name);
    if (raw_name->size() > kMaxNameBytes) {
        return damaged(name + ": a name of " + std::to_string(raw_name->size()) + " bytes, at most " +
                       std::to_string(kMaxNameBytes) + " are allowed");
    }
    tensor.name = *raw_name;
    const auto n_dims = in.read<std::uint32_t>();
    if (!n_dims) return truncated(name, in);
    if (*n_dims < 1 || *n_dims > tensor.ne.size())
        return damaged(name + ": " + std::to_string(*n_dims) + " dimensions, want 1 to 4");
    tensor.n_dims = static_cast<int>(*n_dims);
    for (std::uint32_t d = 0; d < *n_dims; ++d) {
        const auto ne = in.read<std::int64_t>();
        if (!ne) return truncated(name, in);
        tensor.ne[d] = *ne;
    }
    const auto type = in.read<std::int32_t>();
    const auto offset = in.read<std::uint64_t>();
    if (!type || !offset) return truncated(name, in);
    tensor.type = *type;
    tensor.offset = *offset;
    if (*offset % alignment != 0) {
        return damaged(name + ": offset " + std::to_string(*offset) + " is no multiple of the alignment " +
                       std::to_string(alignment));
    }
    return check_extent(name, tensor);
}

/// Turns offsets relative to the data into offsets in the file, and checks that the data is there.
Status place_tensors(std::uint64_t data_start, std::uint64_t file_bytes, std::vector<GgufTensor>& tensors) {
    for (GgufTensor& tensor : tensors) {
        const auto offset = checked_add(data_start, tensor.offset);
        const auto end = offset ? checked_add(*offset, tensor.n_bytes) : std::nullopt;
        if (!end)
            return damaged(printable(tensor.name) + ": offset " + std::to_string(tensor.offset) +
                           " overflows");
        if (*end > file_bytes) {
            return damaged(printable(tensor.name) + ": ends at byte " + std::to_string(*end) +
                           ", the file has " + std::to_string(file_bytes));
        }
        tensor.offset = *offset;
    }
    std::vector<const GgufTensor*> by_offset;
    by_offset.reserve(tensors.size());
    for (const GgufTensor& tensor : tensors) by_offset.push_back(&tensor);
    std::sort(by_offset.begin(), by_offset.end(),
              [](const GgufTensor* a, const GgufTensor* b) { return a->offset < b->offset; });
    for (std::size_t i = 1; i < by_offset.size(); ++i) {
        const GgufTensor &before = *by_offset[i - 1], &after = *by_offset[i];
        if (before.offset + before.n_bytes > after.offset)
            return damaged(printable(after.name) + ": its data overlaps that of " + printable(before.name));
    }
    return {};
}

Status check_magic_and_version(ByteReader& in, std::uint64_t file_bytes, std::uint32_t& version) {
    constexpr std::uint32_t kMagic = 0x46554747;  // "GGUF"
    const auto magic = in.read<std::uint32_t>();
    if (magic && *magic != kMagic)
        return Error(Code::invalid_argument, "not a GGUF file: it does not start with 'GGUF'");
    if (file_bytes < kHeaderBytes) {
        return damaged("the file has " + std::to_string(file_bytes) + " bytes, a GGUF header " +
                       std::to_string(kHeaderBytes));
    }
    version = *in.read<std::uint32_t>();
    if (version != 0 && (version & 0xFFFF) == 0)
        return Error(Code::unimplemented, "a GGUF file in big-endian byte order");
    if (version != 2 && version != 3)
        return Error(Code::unimplemented, "GGUF version " + std::to_string(version) + ", want 2 or 3");
    return {};
}

Status check_count(const char* what, std::int64_t count, std::uint64_t remaining, std::uint64_t min_bytes) {
    if (count >= 0 && static_cast<std::uint64_t>(count) <= remaining / min_bytes) return {};
    return damaged("the header promises " + std::to_string(count) + " " + what + ", the " +
                   std::to_string(remaining) + " bytes left hold at most " +
                   std::to_string(remaining / min_bytes));
}

Result<std::uint64_t> alignment_of(const GgufMetadata& metadata) {
    const auto alignment = metadata.get_int(kAlignmentKey, 1, kMaxAlignment);
    if (!alignment) return alignment.error();
    const auto value = static_cast<std::uint64_t>(alignment->value_or(kDefaultAlignment));
    if (!std::has_single_bit(value)) {
        return Error(Code::invalid_argument,
                     std::string(kAlignmentKey) + ": " + std::to_string(value) + " is no power of two");
    }
    return value;
}

}  // namespace

Result<GgufHead> parse_gguf_head(std::span<const std::byte> file) {
    ByteReader in(file);
    GgufHead head;
    if (auto s = check_magic_and_version(in, file.size(), head.version); !s) return std::move(s).error();
    const std::int64_t n_tensors = *in.read<std::int64_t>();
    const std::int64_t n_entries = *in.read<std::int64_t>();
    if (auto s = check_count("metadata entries", n_entries, in.remaining(), kMinEntryBytes); !s)
        return std::move(s).error();
    if (auto s = check_count("tensors", n_tensors, in.remaining(), kMinTensorBytes); !s)
        return std::move(s).error();
    if (auto s = read_metadata(in, n_entries, head.metadata); !s) return std::move(s).error();
    const auto alignment = alignment_of(head.metadata);
    if (!alignment) return alignment.error();

    if (auto s = check_count("tensors", n_tensors, in.remaining(), kMinTensorBytes); !s)
        return std::move(s).error();
    head.tensors.resize(static_cast<std::size_t>(n_tensors));
    std::unordered_set<std::string_view> names;
    for (std::size_t i = 0; i < head.tensors.size(); ++i) {
        GgufTensor& tensor = head.tensors[i];
        if (auto s = read_tensor(in, "tensor " + std::to_string(i), *alignment, tensor); !s)
            return std::move(s).error();
        if (!names.insert(tensor.name).second)
            return damaged(printable(tensor.name) + ": the tensor appears twice");
    }
    head.head_bytes = in.position();
    const std::uint64_t data_start = (head.head_bytes + *alignment - 1) / *alignment * *alignment;
    if (auto s = place_tensors(data_start, file.size(), head.tensors); !s) return std::move(s).error();
    return head;
}

}  // namespace pantheon::model
