#include "actors/spill_folder.h"

#include <filesystem>
#include <span>
#include <string_view>
#include <system_error>

namespace pantheon::actors {
namespace {

constexpr std::string_view kWho = "store";
constexpr std::string_view kEnding = ".checkpoint";
constexpr std::string_view kUnfinished = ".checkpoint.new";

void remove(const std::string& path) {
    std::error_code error;
    std::filesystem::remove(path, error);
    if (error) log_warning(kWho, path + ": " + error.message());
}

}  // namespace

void make_state_folder(const std::string& dir) {
    std::error_code ignored;
    if (std::filesystem::create_directory(dir, ignored))
        std::filesystem::permissions(dir, std::filesystem::perms::owner_all, ignored);
}

SpillFolder::SpillFolder(std::string dir, std::string fingerprint,
                         std::shared_ptr<const model::CheckpointCodec> codec)
    : dir_(std::move(dir)), fingerprint_(std::move(fingerprint)), codec_(std::move(codec)) {
    if (!codec_) dir_.clear();
}

std::string SpillFolder::file_of(const CacheSpace& space, const std::vector<TokenId>& tokens) const {
    const std::string_view ids(reinterpret_cast<const char*>(tokens.data()), tokens.size() * sizeof(TokenId));
    return model::state_file_name({fingerprint_, codec_->layout(), space, ids}) + std::string(kEnding);
}

std::vector<StateOnDisk> SpillFolder::list() const {
    std::vector<StateOnDisk> list;
    if (dir_.empty()) return list;
    std::vector<std::string> files;
    std::error_code error;
    std::error_code no_file;
    for (std::filesystem::directory_iterator at(dir_, error), end; !error && at != end; at.increment(error)) {
        const std::string file = at->path().filename().string();
        if (!at->is_regular_file(no_file)) continue;
        if (file.ends_with(kUnfinished)) remove(path_of(file));
        if (file.ends_with(kEnding)) files.push_back(file);
    }
    for (const std::string& file : files)
        if (auto state = describe(file)) list.push_back(*std::move(state));
    return list;
}

std::optional<StateOnDisk> SpillFolder::describe(const std::string& file) const {
    const std::string path = path_of(file);
    auto header = model::read_state_header(path);
    StateOnDisk state;
    state.file = file;
    std::error_code error;
    state.bytes = std::filesystem::file_size(path, error);
    if (error) return std::nullopt;  // nothing that could be read either
    const auto used = std::filesystem::last_write_time(path, error).time_since_epoch();
    state.used_ms = std::chrono::duration_cast<std::chrono::milliseconds>(used).count();
    if (!header && header.error().code() == Code::data_loss) {
        log_warning(kWho, header.error().to_string() + "; removed");
        remove(path);
        return std::nullopt;
    }
    if (!header || header->fingerprint != fingerprint_ || header->layout != codec_->layout()) return state;
    if (file != file_of(header->space, header->tokens) ||
        state.bytes != model::state_file_bytes(*header, *codec_)) {
        log_warning(kWho, path + ": is not what its name and head say; removed");
        remove(path);
        return std::nullopt;
    }
    state.space = std::move(header->space);
    state.tokens = std::move(header->tokens);
    return state;
}

Result<StateOnDisk> SpillFolder::write(const SpillState& message) const {
    if (dir_.empty()) return Error(Code::failed_precondition, "sessions.dir: not set");
    make_state_folder(dir_);
    StateOnDisk state = message.what;
    state.file = file_of(state.space, state.tokens);
    model::StateHeader header;
    header.fingerprint = fingerprint_;
    header.space = header.owner = state.space;
    header.tokens = state.tokens;
    header.layout = codec_->layout();
    state.bytes = model::state_file_bytes(header, *codec_);
    const std::string path = path_of(state.file);
    if (Status ok = model::write_state_file(path, std::move(header), *message.state, *codec_); !ok)
        return std::move(ok).error();
    std::error_code ignored;
    const auto used = std::filesystem::last_write_time(path, ignored).time_since_epoch();
    state.used_ms = std::chrono::duration_cast<std::chrono::milliseconds>(used).count();
    return state;
}

Result<model::StateFile> SpillFolder::read(const std::string& file) const {
    if (dir_.empty()) return Error(Code::failed_precondition, "sessions.dir: not set");
    const std::string path = path_of(file);
    auto state = model::read_state_file(path, fingerprint_, *codec_);
    if (state) {
        std::error_code ignored;
        std::filesystem::last_write_time(path, std::filesystem::file_time_type::clock::now(), ignored);
    } else if (state.error().code() == Code::data_loss) {
        remove(path);
    }
    return state;
}

void SpillFolder::drop(const std::vector<std::string>& files) const {
    if (dir_.empty()) return;
    for (const std::string& file : files) remove(path_of(file));
}

}  // namespace pantheon::actors
