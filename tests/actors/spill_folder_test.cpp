// The folder of spilled checkpoints: what is listed, what is removed, and that no file whatever harms it.
#include "actors/spill_folder.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <random>

#define XXH_INLINE_ALL
#include <xxhash.h>

#include "model/state/host_checkpoint.h"
#include "model/state/slot_store.h"

namespace pantheon::actors {
namespace {

model::StateShape small_shape() {
    model::StateShape shape;
    shape.n_gdn_layers = 1;
    shape.conv_floats = 3;
    shape.gdn_floats = 4;
    shape.gdn_head_dim = 2;
    shape.n_attention_layers = 1;
    shape.n_head_kv = 1;
    shape.head_dim = 4;
    shape.kv_type = kernels::KvRowType::f16;
    return shape;
}

class SpillFolderTest : public testing::Test {
  protected:
    SpillFolderTest() {
        set_log_level(LogLevel::off);
        dir_ = std::filesystem::temp_directory_path() / ("spill_folder_test." + std::to_string(getpid()));
        std::filesystem::remove_all(dir_);
    }
    ~SpillFolderTest() override {
        std::filesystem::remove_all(dir_);
        set_log_level(LogLevel::info);
    }

    SpillFolder folder(const std::string& fingerprint = "model") const {
        return {dir_.string(), fingerprint, codec_};
    }
    Result<StateOnDisk> write(const std::vector<TokenId>& tokens, const CacheSpace& space = "uid:1") {
        EXPECT_TRUE(slots_.bind(SlotId{0}));
        const auto n_tokens = static_cast<std::int32_t>(tokens.size());
        EXPECT_TRUE(slots_.reserve(SlotId{0}, n_tokens));
        for (std::int32_t r = 0; r < n_tokens; ++r) {
            std::fill_n(slots_.kv(SlotId{0}, 0).k_row(r, 0), 8, static_cast<std::byte>(r));
            std::fill_n(slots_.kv(SlotId{0}, 0).v_row(r, 0), 8, static_cast<std::byte>(r + 1));
        }
        std::fill_n(slots_.conv_state(SlotId{0}, 0), 3, 0.5F);
        std::fill_n(slots_.gdn_state(SlotId{0}, 0).data, 4, 0.25F);
        slots_.commit(SlotId{0}, n_tokens);
        SpillState message;
        message.what.space = space;
        message.what.tokens = tokens;
        message.state = *slots_.snapshot(SlotId{0});
        slots_.release(SlotId{0});
        return folder().write(message);
    }
    std::string bytes_of(const std::string& file) const {
        std::ifstream in(dir_ / file, std::ios::binary);
        return {std::istreambuf_iterator<char>(in), {}};
    }
    void put(const std::string& file, const std::string& bytes) const {
        std::ofstream(dir_ / file, std::ios::binary) << bytes;
    }

    std::filesystem::path dir_;
    model::StateShape shape_ = small_shape();
    model::SlotStore slots_{shape_, 1, 200};
    std::shared_ptr<const model::CheckpointCodec> codec_ = model::host_checkpoint_codec(shape_);
};

TEST_F(SpillFolderTest, WhatWasWrittenIsListedAndRead) {
    const auto written = write({1, 2, 3});
    ASSERT_TRUE(written) << written.error().to_string();
    EXPECT_EQ(written->bytes, std::filesystem::file_size(dir_ / written->file));
    const auto list = folder().list();
    ASSERT_EQ(list.size(), 1U);
    EXPECT_EQ(list[0], *written);
    const auto read = folder().read(written->file);
    ASSERT_TRUE(read) << read.error().to_string();
    EXPECT_EQ(read->header.tokens, (std::vector<TokenId>{1, 2, 3}));
    EXPECT_EQ(read->header.space, "uid:1");
    EXPECT_EQ(read->state->length(), 3);
    const auto perms = std::filesystem::status(dir_).permissions();
    EXPECT_EQ(perms, std::filesystem::perms::owner_all) << "prompts are nobody else's business";
    folder().drop({written->file, "gone already"});
    EXPECT_TRUE(folder().list().empty());
}

TEST_F(SpillFolderTest, ReadingCountsAsUse) {
    const auto written = write({1, 2, 3});
    ASSERT_TRUE(written);
    const auto old = std::filesystem::file_time_type::clock::now() - std::chrono::hours(5);
    std::filesystem::last_write_time(dir_ / written->file, old);
    const std::int64_t before = folder().list().at(0).used_ms;
    EXPECT_LT(before, written->used_ms);
    ASSERT_TRUE(folder().read(written->file));
    EXPECT_GE(folder().list().at(0).used_ms, written->used_ms);
}

TEST_F(SpillFolderTest, OthersFilesAreLeftAloneAndLeftoversGo) {
    const auto written = write({1, 2, 3});
    ASSERT_TRUE(written);
    const std::string bytes = bytes_of(written->file);
    put("talk.state", "whatever");
    put("notes.txt", "whatever");
    put("0123.checkpoint.new", "half of it");
    put("other name.checkpoint", bytes);
    put("rubbish.checkpoint", "rubbish");
    put("empty.checkpoint", "");
    put("cut.checkpoint", bytes.substr(0, bytes.size() / 2));
    std::filesystem::create_directory(dir_ / "folder.checkpoint");
    EXPECT_EQ(folder().list().size(), 1U);
    std::vector<std::string> left;
    for (const auto& entry : std::filesystem::directory_iterator(dir_))
        left.push_back(entry.path().filename());
    std::sort(left.begin(), left.end());
    std::vector<std::string> want{"folder.checkpoint", "notes.txt", "talk.state", written->file};
    std::sort(want.begin(), want.end());
    EXPECT_EQ(left, want);
}

TEST_F(SpillFolderTest, WhatWasWrittenWithTheOtherImageFormatIsListedWithoutTokens) {
    const auto written = write({1, 2, 3});
    ASSERT_TRUE(written);
    const SpillFolder in_f16(dir_.string(), "model",
                             model::host_checkpoint_codec(shape_, model::ImageFormat::f16));
    const auto list = in_f16.list();
    ASSERT_EQ(list.size(), 1U);
    EXPECT_TRUE(list[0].tokens.empty());
    EXPECT_EQ(in_f16.read(written->file).error().code(), Code::failed_precondition);
    EXPECT_EQ(folder().list().at(0), *written) << "and stays for whoever sets it back";
}

TEST_F(SpillFolderTest, AnotherModelsOrVersionsFilesAreListedWithoutTokens) {
    const auto written = write({1, 2, 3});
    ASSERT_TRUE(written);
    std::string later = bytes_of(written->file);
    later[8] = 99;  // the version
    put("later.checkpoint", later);
    for (const StateOnDisk& state : folder("other").list()) {
        EXPECT_TRUE(state.tokens.empty());
        EXPECT_EQ(state.bytes, written->bytes);
    }
    EXPECT_EQ(folder("other").list().size(), 2U);
    EXPECT_EQ(folder().list().size(), 2U);
    EXPECT_EQ(folder("other").read(written->file).error().code(), Code::failed_precondition);
    EXPECT_TRUE(std::filesystem::exists(dir_ / written->file));
}

TEST_F(SpillFolderTest, WithoutAFolderNothingIsThere) {
    const SpillFolder none("", "model", codec_), no_codec(dir_.string(), "model", nullptr);
    EXPECT_TRUE(none.list().empty());
    EXPECT_TRUE(no_codec.list().empty());
    EXPECT_EQ(none.write({}).error().code(), Code::failed_precondition);
    EXPECT_EQ(none.read("x").error().code(), Code::failed_precondition);
    const SpillFolder missing((dir_ / "a" / "b").string(), "model", codec_);
    EXPECT_TRUE(missing.list().empty());
    EXPECT_EQ(missing.read("x").error().code(), Code::not_found);
}

/// Every single bit, every length, and two thousand heavier mutations: nothing but the file as it was written
/// gives a state, and listing names only what can be read.
TEST_F(SpillFolderTest, NoMutationOfAFileIsTakenForAState) {
    const auto written = write({5, 6, 7, 8});
    ASSERT_TRUE(written);
    const std::string whole = bytes_of(written->file);
    const auto try_bytes = [&](const std::string& bytes) {
        put(written->file, bytes);
        const auto list = folder().list();
        EXPECT_LE(list.size(), 1U);
        const auto read = folder().read(written->file);
        EXPECT_FALSE(read && bytes != whole);
        const bool is_damaged = !read && read.error().code() == Code::data_loss;
        EXPECT_FALSE(is_damaged && std::filesystem::exists(dir_ / written->file));
    };
    for (std::size_t bit = 0; bit < whole.size() * 8; ++bit) {
        std::string bytes = whole;
        bytes[bit / 8] = static_cast<char>(bytes[bit / 8] ^ (1 << bit % 8));
        try_bytes(bytes);
    }
    for (std::size_t n = 0; n < whole.size(); ++n) try_bytes(whole.substr(0, n));
    try_bytes(whole + "x");
    std::mt19937 random(11);
    for (int i = 0; i < 2000; ++i) {
        std::string bytes = whole;
        for (unsigned n = 1 + random() % 6; n > 0; --n) {
            const std::size_t at = random() % bytes.size();
            switch (random() % 4) {
                case 0:
                    bytes[at] = static_cast<char>(random());
                    break;
                case 1:
                    bytes.erase(at, 1 + random() % 8);
                    break;
                case 2:
                    bytes.insert(at, whole.substr(random() % whole.size(), random() % 16));
                    break;
                default:  // a count of the head gone wild
                    for (std::size_t b = 0; b < 4 && at + b < bytes.size(); ++b)
                        bytes[at + b] = static_cast<char>(0xff >> random() % 8);
            }
            if (bytes.empty()) bytes = "x";
        }
        try_bytes(bytes);
    }
    put(written->file, whole);
    EXPECT_TRUE(folder().read(written->file));
}

/// Heads that are damaged and have a checksum that says otherwise, as from a hand that wants to do harm.
TEST_F(SpillFolderTest, AHeadWithARightChecksumIsStillReadWithCare) {
    const auto written = write({5, 6, 7, 8});
    ASSERT_TRUE(written);
    const std::string whole = bytes_of(written->file);
    std::uint32_t n_head = 0;
    std::memcpy(&n_head, whole.data() + 12, sizeof n_head);
    std::mt19937 random(13);
    for (int i = 0; i < 2000; ++i) {
        std::string bytes = whole;
        for (unsigned n = 1 + random() % 3; n > 0; --n) {
            const std::size_t at = 16 + random() % n_head;
            bytes[at] = static_cast<char>(random() % 3 ? random() : 0xff);
        }
        if (bytes == whole) continue;
        const std::uint64_t hash = XXH3_64bits(bytes.data() + 16, n_head);
        std::memcpy(bytes.data() + 16 + n_head, &hash, sizeof hash);
        put(written->file, bytes);
        (void)folder().read(written->file);  // may be another state's file, whole; must not do harm
        put(written->file, bytes);
        for (const StateOnDisk& state : folder().list())
            EXPECT_TRUE(state.tokens.empty() ||
                        (state.tokens == written->tokens && state.space == written->space))
                << "the name tells that it is not what was written";
    }
}

}  // namespace
}  // namespace pantheon::actors
