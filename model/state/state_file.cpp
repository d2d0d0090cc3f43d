#include "model/state/state_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <memory>
#include <utility>

#define XXH_INLINE_ALL  // header only: nothing to link
#include <xxhash.h>

namespace pantheon::model {
namespace {

// magic, version, bytes of the header, header, its xxh3; the codec's bytes, their xxh3. Little-endian, like
// every host this runs on.
constexpr char kMagic[8] = {'P', 'N', 'T', 'H', 'S', 'T', 'A', 'T'};
constexpr std::uint32_t kVersion = 1;
constexpr std::uint32_t kMaxHeaderBytes = 1U << 24;
constexpr std::uint32_t kMaxString = 4096;
constexpr std::size_t kBufferBytes = 1U << 20;

struct FreeHash {
    void operator()(XXH3_state_t* state) const { XXH3_freeState(state); }
};

class Hash {
  public:
    Hash() : state_(XXH3_createState()) {
        if (!state_) throw std::bad_alloc();
        XXH3_64bits_reset(state_.get());
    }
    void add(std::span<const std::byte> bytes) {
        XXH3_64bits_update(state_.get(), bytes.data(), bytes.size());
    }
    std::uint64_t value() const { return XXH3_64bits_digest(state_.get()); }

  private:
    std::unique_ptr<XXH3_state_t, FreeHash> state_;
};

class Descriptor {
  public:
    explicit Descriptor(int fd) : fd_(fd) {}
    ~Descriptor() {
        if (fd_ >= 0) ::close(fd_);
    }
    Descriptor(const Descriptor&) = delete;
    Descriptor& operator=(const Descriptor&) = delete;
    int get() const { return fd_; }

  private:
    int fd_;
};

Error disk_error(const std::string& path) {
    const int reason = errno;
    return Error(reason == ENOENT ? Code::not_found : Code::unavailable, path + ": " + std::strerror(reason));
}

Error damaged(const std::string& path, std::string_view what) {
    return Error(Code::data_loss, path + ": " + std::string(what));
}

Status write_all(int fd, const std::string& path, std::span<const std::byte> bytes) {
    while (!bytes.empty()) {
        const ssize_t n = ::write(fd, bytes.data(), bytes.size());
        if (n < 0 && errno == EINTR) continue;
        if (n < 0) return disk_error(path);
        bytes = bytes.subspan(static_cast<std::size_t>(n));
    }
    return {};
}

Status read_all(int fd, const std::string& path, std::span<std::byte> bytes) {
    while (!bytes.empty()) {
        const ssize_t n = ::read(fd, bytes.data(), bytes.size());
        if (n < 0 && errno == EINTR) continue;
        if (n < 0) return disk_error(path);
        if (n == 0) return damaged(path, "is cut off");
        bytes = bytes.subspan(static_cast<std::size_t>(n));
    }
    return {};
}

template <class T>
std::span<const std::byte> bytes_of(const T& value) {
    return std::as_bytes(std::span(&value, 1));
}

// ---- the header
// ------------------------------------------------------------------------------------------------

template <class T>
void put(std::vector<std::byte>& out, const T& value) {
    const auto bytes = bytes_of(value);
    out.insert(out.end(), bytes.begin(), bytes.end());
}

void put_text(std::vector<std::byte>& out, const std::string& text) {
    put(out, static_cast<std::uint32_t>(text.size()));
    const auto bytes = std::as_bytes(std::span(text));
    out.insert(out.end(), bytes.begin(), bytes.end());
}

std::vector<std::byte> to_bytes(const StateHeader& header) {
    std::vector<std::byte> out;
    for (const std::string* text :
         {&header.fingerprint, &header.layout, &header.space, &header.name, &header.owner})
        put_text(out, *text);
    put(out, static_cast<std::uint32_t>(header.tokens.size()));
    const auto tokens = std::as_bytes(std::span(header.tokens));
    out.insert(out.end(), tokens.begin(), tokens.end());
    return out;
}

/// Takes values off the front; false once there are too few bytes.
class HeaderReader {
  public:
    explicit HeaderReader(std::span<const std::byte> bytes) : rest_(bytes) {}

    bool take(std::span<std::byte> to) {
        if (rest_.size() < to.size()) return false;
        std::copy_n(rest_.begin(), to.size(), to.begin());
        rest_ = rest_.subspan(to.size());
        return true;
    }
    bool take(std::uint32_t& value) { return take(std::as_writable_bytes(std::span(&value, 1))); }
    bool take(std::string& text) {
        std::uint32_t n = 0;
        if (!take(n) || n > kMaxString || n > rest_.size()) return false;
        text.resize(n);
        return take(std::as_writable_bytes(std::span(text)));
    }
    bool take(std::vector<TokenId>& tokens) {
        std::uint32_t n = 0;
        if (!take(n) || n > rest_.size() / sizeof(TokenId)) return false;
        tokens.resize(n);
        return take(std::as_writable_bytes(std::span(tokens)));
    }
    bool is_at_end() const { return rest_.empty(); }

  private:
    std::span<const std::byte> rest_;
};

Result<StateHeader> read_header(int fd, const std::string& path) {
    char magic[sizeof kMagic];
    if (Status ok = read_all(fd, path, std::as_writable_bytes(std::span(magic))); !ok)
        return std::move(ok).error();
    if (!std::equal(std::begin(magic), std::end(magic), std::begin(kMagic)))
        return damaged(path, "is no state file");
    std::uint32_t version = 0, n_bytes = 0;
    for (std::uint32_t* value : {&version, &n_bytes})
        if (Status ok = read_all(fd, path, std::as_writable_bytes(std::span(value, 1))); !ok)
            return std::move(ok).error();
    if (version != kVersion)
        return Error(Code::failed_precondition,
                     path + ": version " + std::to_string(version) + ", want " + std::to_string(kVersion));
    if (n_bytes > kMaxHeaderBytes) return damaged(path, "has a header of impossible size");
    std::vector<std::byte> bytes(n_bytes);
    if (Status ok = read_all(fd, path, bytes); !ok) return std::move(ok).error();
    std::uint64_t want = 0;
    if (Status ok = read_all(fd, path, std::as_writable_bytes(std::span(&want, 1))); !ok)
        return std::move(ok).error();
    if (XXH3_64bits(bytes.data(), bytes.size()) != want) return damaged(path, "header checksum");
    StateHeader header;
    HeaderReader reader(bytes);
    const bool is_whole = reader.take(header.fingerprint) && reader.take(header.layout) &&
                          reader.take(header.space) && reader.take(header.name) &&
                          reader.take(header.owner) && reader.take(header.tokens) && reader.is_at_end();
    if (!is_whole || header.tokens.empty()) return damaged(path, "header");
    return header;
}

// ---- writing
// ---------------------------------------------------------------------------------------------------

Status write_contents(int fd, const std::string& path, const StateHeader& header, const Checkpoint& state,
                      const CheckpointCodec& codec) {
    const std::vector<std::byte> head = to_bytes(header);
    if (head.size() > kMaxHeaderBytes)
        return Error(Code::invalid_argument,
                     path + ": a header of " + std::to_string(head.size()) + " bytes");
    std::vector<std::byte> buffer;
    buffer.reserve(kBufferBytes);
    const auto flush = [&]() -> Status {
        Status ok = write_all(fd, path, buffer);
        buffer.clear();
        return ok;
    };
    const auto push = [&](std::span<const std::byte> bytes) -> Status {
        while (!bytes.empty()) {
            const std::size_t n = std::min(bytes.size(), kBufferBytes - buffer.size());
            buffer.insert(buffer.end(), bytes.begin(), bytes.begin() + static_cast<std::ptrdiff_t>(n));
            bytes = bytes.subspan(n);
            if (buffer.size() == kBufferBytes)
                if (Status ok = flush(); !ok) return ok;
        }
        return {};
    };
    const auto n_bytes = static_cast<std::uint32_t>(head.size());
    const std::uint64_t head_hash = XXH3_64bits(head.data(), head.size());
    const std::span<const std::byte> parts[] = {std::as_bytes(std::span(kMagic)), bytes_of(kVersion),
                                                bytes_of(n_bytes), head, bytes_of(head_hash)};
    for (const auto bytes : parts)
        if (Status ok = push(bytes); !ok) return ok;
    Hash hash;
    Status ok = codec.encode(state, [&](std::span<const std::byte> bytes) {
        hash.add(bytes);
        return push(bytes);
    });
    if (!ok) return ok;
    const std::uint64_t body_hash = hash.value();
    if (ok = push(bytes_of(body_hash)); !ok) return ok;
    if (ok = flush(); !ok) return ok;
    if (::fsync(fd) != 0) return disk_error(path);
    return {};
}

}  // namespace

std::string state_file_name(std::initializer_list<std::string_view> parts) {
    std::vector<std::byte> bytes;
    for (const std::string_view part : parts) put_text(bytes, std::string(part));
    const XXH128_hash_t hash = XXH3_128bits(bytes.data(), bytes.size());
    std::string name;
    for (const std::uint64_t half : {hash.high64, hash.low64})
        for (int shift = 60; shift >= 0; shift -= 4) name += "0123456789abcdef"[half >> shift & 15];
    return name;
}

std::uint64_t state_file_bytes(StateHeader header, const CheckpointCodec& codec) {
    header.layout = codec.layout();
    constexpr std::size_t kFixed = sizeof kMagic + sizeof kVersion + sizeof(std::uint32_t);
    constexpr std::size_t kHashes = 2 * sizeof(std::uint64_t);
    return kFixed + to_bytes(header).size() +
           codec.encoded_bytes(static_cast<std::int32_t>(header.tokens.size())) + kHashes;
}

Status write_state_file(const std::string& path, StateHeader header, const Checkpoint& state,
                        const CheckpointCodec& codec) {
    header.layout = codec.layout();
    const std::string aside = path + ".new";
    Status ok;
    {
        const Descriptor file(::open(aside.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600));
        if (file.get() < 0) return disk_error(aside);
        ok = write_contents(file.get(), aside, header, state, codec);
    }
    if (ok && ::rename(aside.c_str(), path.c_str()) != 0) ok = disk_error(path);
    if (!ok) {
        ::unlink(aside.c_str());
        return ok;
    }
    const std::size_t slash = path.rfind('/');
    const std::string folder = slash == std::string::npos ? "." : path.substr(0, slash + 1);
    const Descriptor dir(::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
    if (dir.get() < 0 || ::fsync(dir.get()) != 0) return disk_error(folder);
    return {};
}

Result<StateHeader> read_state_header(const std::string& path) {
    const Descriptor file(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
    if (file.get() < 0) return disk_error(path);
    return read_header(file.get(), path);
}

Result<StateFile> read_state_file(const std::string& path, const std::string& fingerprint,
                                  const CheckpointCodec& codec) {
    const Descriptor file(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
    if (file.get() < 0) return disk_error(path);
    auto header = read_header(file.get(), path);
    if (!header) return std::move(header).error();
    if (header->fingerprint != fingerprint)
        return Error(Code::failed_precondition, path + ": a state of another model");
    if (header->layout != codec.layout())
        return Error(Code::failed_precondition,
                     path + ": layout " + header->layout + ", want " + codec.layout());
    // The size is checked before memory is taken for what the header promises.
    const auto length = static_cast<std::int32_t>(header->tokens.size());
    struct stat info {};
    const off_t at = ::lseek(file.get(), 0, SEEK_CUR);
    if (at < 0 || ::fstat(file.get(), &info) != 0) return disk_error(path);
    const std::uint64_t want_bytes = codec.encoded_bytes(length) + sizeof(std::uint64_t);
    if (static_cast<std::uint64_t>(info.st_size - at) != want_bytes) return damaged(path, "size");
    Hash hash;
    auto state = codec.decode(length, [&](std::span<std::byte> bytes) -> Status {
        if (Status ok = read_all(file.get(), path, bytes); !ok) return ok;
        hash.add(bytes);
        return {};
    });
    if (!state) return std::move(state).error();
    std::uint64_t want = 0;
    if (Status ok = read_all(file.get(), path, std::as_writable_bytes(std::span(&want, 1))); !ok)
        return std::move(ok).error();
    if (hash.value() != want) return damaged(path, "checksum");
    return StateFile{*std::move(header), *std::move(state)};
}

}  // namespace pantheon::model
