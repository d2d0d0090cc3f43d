#include "model/gguf/gguf_file.h"

#define XXH_INLINE_ALL
#include <xxhash.h>

#include <algorithm>
#include <cstdio>
#include <utility>

#include "model/gguf/gguf_parse.h"
#include "model/gguf/mapped_file.h"
#include "model/gguf/split_name.h"

namespace pantheon::model {
namespace {

constexpr char kSplitNo[] = "split.no";
constexpr char kSplitCount[] = "split.count";
constexpr char kSplitTensors[] = "split.tensors.count";
constexpr std::int64_t kMaxSplitCount = 65535;
constexpr std::size_t kFingerprintEdge = 4096;  // bytes of either end of a tensor

struct Shard {
    std::string path;
    MappedFile file;
    GgufHead head;
};

Result<Shard> open_shard(const std::string& path) {
    auto file = MappedFile::open(path);
    if (!file) return std::move(file).error();
    auto head = parse_gguf_head(file->bytes());
    if (!head) return std::move(head).error().with_context(path);
    return Shard{path, *std::move(file), *std::move(head)};
}

/// A required split key of a shard, or the error that it lacks it.
Result<std::int64_t> split_key(const Shard& shard, const char* key, std::int64_t max) {
    const auto value = shard.head.metadata.get_int(key, 0, max);
    if (!value) return value.error().with_context(shard.path);
    if (!*value)
        return Error(Code::data_loss, shard.path + ": " + key + ": missing in a file of a split set");
    return **value;
}

Status check_place_in_set(const Shard& shard, std::int64_t number, std::int64_t count) {
    const auto no = split_key(shard, kSplitNo, kMaxSplitCount);
    if (!no) return no.error();
    const auto own_count = split_key(shard, kSplitCount, kMaxSplitCount);
    if (!own_count) return own_count.error();
    if (*own_count != count) {
        return Error(Code::data_loss, shard.path + ": " + kSplitCount + ": " + std::to_string(*own_count) +
                                          ", but its name or another file of the set says " +
                                          std::to_string(count));
    }
    if (*no + 1 != number) {
        return Error(Code::data_loss, shard.path + ": " + kSplitNo + ": " + std::to_string(*no) + ", want " +
                                          std::to_string(number - 1) + " (the name counts from 1)");
    }
    return {};
}

/// The whole set in order, given one opened file of it.
Result<std::vector<Shard>> open_set(Shard opened, std::int64_t count) {
    const auto name = parse_split_name(opened.path);
    if (!name) {
        return Error(Code::invalid_argument,
                     opened.path + ": is one of " + std::to_string(count) +
                         " files of a split set, and its name does not end in -NNNNN-of-NNNNN.gguf, "
                         "so that the others cannot be found");
    }
    if (auto s = check_place_in_set(opened, name->number, name->count); !s) return std::move(s).error();
    std::vector<Shard> shards;
    for (int number = 1; number <= name->count; ++number) {
        if (number == name->number) {
            shards.push_back(std::move(opened));
            continue;
        }
        auto shard = open_shard(name->path_of(number));
        if (!shard) {
            return std::move(shard).error().with_context("file " + std::to_string(number) + " of " +
                                                         std::to_string(name->count) + " of a split set");
        }
        if (auto s = check_place_in_set(*shard, number, name->count); !s) return std::move(s).error();
        shards.push_back(*std::move(shard));
    }
    return shards;
}

Status check_tensor_total(const Shard& first, std::size_t n_tensors) {
    const auto total = first.head.metadata.get_int(kSplitTensors, 0, INT64_MAX);
    if (!total) return total.error().with_context(first.path);
    if (!*total || static_cast<std::uint64_t>(**total) == n_tensors) return {};
    return Error(Code::data_loss, first.path + ": " + kSplitTensors + ": " + std::to_string(**total) +
                                      ", but the files of the set hold " + std::to_string(n_tensors) +
                                      " tensors");
}

}  // namespace

struct GgufFile::Impl {
    std::vector<Shard> shards;
    std::vector<std::string> paths;
    std::vector<GgufTensor> tensors;
    std::unordered_map<std::string_view, std::size_t> index;  // views into the names of `tensors`
    std::uint64_t file_bytes = 0;

    Status gather_tensors() {
        for (std::size_t i = 0; i < shards.size(); ++i) {
            paths.push_back(shards[i].path);
            file_bytes += shards[i].file.bytes().size();
            for (GgufTensor& tensor : shards[i].head.tensors) {
                tensor.shard = static_cast<int>(i);
                tensors.push_back(std::move(tensor));
            }
            shards[i].head.tensors.clear();
        }
        for (std::size_t i = 0; i < tensors.size(); ++i) {
            if (!index.emplace(tensors[i].name, i).second) {
                return Error(Code::data_loss, paths[static_cast<std::size_t>(tensors[i].shard)] + ": " +
                                                  tensors[i].name +
                                                  ": the tensor is also in another file of the set");
            }
        }
        return {};
    }
};

GgufFile::GgufFile() : impl_(std::make_unique<Impl>()) {}
GgufFile::~GgufFile() = default;

Result<std::shared_ptr<const GgufFile>> GgufFile::open(const std::string& path) {
    auto opened = open_shard(path);
    if (!opened) return std::move(opened).error();
    const auto count = opened->head.metadata.get_int(kSplitCount, 0, kMaxSplitCount);
    if (!count) return count.error().with_context(path);

    std::shared_ptr<GgufFile> file(new GgufFile);
    Impl& impl = *file->impl_;
    const bool is_split = count->value_or(0) > 1;
    if (is_split) {
        auto shards = open_set(*std::move(opened), **count);
        if (!shards) return std::move(shards).error();
        impl.shards = *std::move(shards);
    } else {
        impl.shards.push_back(*std::move(opened));
    }
    if (auto s = impl.gather_tensors(); !s) return std::move(s).error();
    if (is_split)
        if (auto s = check_tensor_total(impl.shards.front(), impl.tensors.size()); !s)
            return std::move(s).error();
    return std::shared_ptr<const GgufFile>(std::move(file));
}

const std::string& GgufFile::path() const {
    return impl_->paths.front();
}
std::span<const std::string> GgufFile::shard_paths() const {
    return impl_->paths;
}
std::uint64_t GgufFile::file_bytes() const {
    return impl_->file_bytes;
}
std::uint32_t GgufFile::version() const {
    return impl_->shards.front().head.version;
}
const GgufMetadata& GgufFile::metadata() const {
    return impl_->shards.front().head.metadata;
}
std::span<const GgufTensor> GgufFile::tensors() const {
    return impl_->tensors;
}

const GgufTensor* GgufFile::find_tensor(std::string_view name) const {
    const auto it = impl_->index.find(name);
    return it == impl_->index.end() ? nullptr : &impl_->tensors[it->second];
}

std::span<const std::byte> GgufFile::bytes(const GgufTensor& tensor) const {
    return impl_->shards[static_cast<std::size_t>(tensor.shard)].file.bytes().subspan(tensor.offset,
                                                                                      tensor.n_bytes);
}

std::string GgufFile::fingerprint() const {
    XXH3_state_t state;
    XXH3_64bits_reset(&state);
    for (const Shard& shard : impl_->shards) {
        const auto file = shard.file.bytes();
        XXH3_64bits_update(&state, file.data(), shard.head.head_bytes);
        const std::uint64_t n_bytes = file.size();
        XXH3_64bits_update(&state, &n_bytes, sizeof n_bytes);
    }
    for (const GgufTensor& tensor : impl_->tensors) {
        const auto data = bytes(tensor);
        const std::size_t edge = std::min(kFingerprintEdge, data.size());
        XXH3_64bits_update(&state, data.data(), edge);
        XXH3_64bits_update(&state, data.data() + data.size() - edge, edge);
    }
    char hex[17];
    std::snprintf(hex, sizeof hex, "%016llx", static_cast<unsigned long long>(XXH3_64bits_digest(&state)));
    return hex;
}

}  // namespace pantheon::model
