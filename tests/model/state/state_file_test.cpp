// States on disk: what comes back is what was written, to the bit, and nothing damaged or foreign is used.
#include "model/state/state_file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstring>
#include <filesystem>
#include <fstream>

#include "model/state/host_checkpoint.h"
#include "model/state/slot_store.h"

namespace pantheon::model {
namespace {

using testing::HasSubstr;

StateShape shape_of_test(kernels::KvRowType type = kernels::KvRowType::f16) {
    StateShape shape;
    shape.n_gdn_layers = 2;
    shape.conv_floats = 6;
    shape.gdn_floats = 8;
    shape.gdn_head_dim = 2;
    shape.n_attention_layers = 2;
    shape.n_head_kv = 2;
    shape.head_dim = 4;
    shape.kv_type = type;
    return shape;
}

class StateFileTest : public testing::Test {
  protected:
    void SetUp() override {
        dir_ = std::filesystem::temp_directory_path() / ("state_file_test." + std::to_string(getpid()));
        std::filesystem::create_directories(dir_);
        path_ = dir_ / "a.state";
        ASSERT_TRUE(slots_.bind(SlotId{0}));
        fill(70);
    }
    void TearDown() override { std::filesystem::remove_all(dir_); }

    /// Rows and states that tell every place from every other.
    void fill(std::int32_t n_rows) {
        ASSERT_TRUE(slots_.reserve(SlotId{0}, n_rows));
        unsigned value = 1;
        const std::size_t row_bytes = kernels::kv_row_bytes(shape_.kv_type, shape_.head_dim);
        for (int layer = 0; layer < 2; ++layer)
            for (std::int32_t r = 0; r < n_rows; ++r)
                for (int head = 0; head < 2; ++head)
                    for (std::size_t i = 0; i < row_bytes; ++i) {
                        value = value * 1664525U + 1013904223U;
                        slots_.kv(SlotId{0}, layer).k_row(r, head)[i] = static_cast<std::byte>(value >> 24);
                        slots_.kv(SlotId{0}, layer).v_row(r, head)[i] = static_cast<std::byte>(value >> 16);
                    }
        for (int layer = 0; layer < 2; ++layer) {
            for (int i = 0; i < 6; ++i)
                slots_.conv_state(SlotId{0}, layer)[i] = 0.1F * static_cast<float>(i + layer);
            for (int i = 0; i < 8; ++i)
                slots_.gdn_state(SlotId{0}, layer).data[i] = 1.0F / static_cast<float>(i + 3 + layer);
        }
        slots_.commit(SlotId{0}, n_rows);
    }

    static StateHeader header(std::size_t n_tokens = 70) {
        StateHeader header;
        header.fingerprint = "model";
        header.space = "uid:1";
        header.name = "a name / with\nanything";
        header.owner = "uid:1";
        for (std::size_t i = 0; i < n_tokens; ++i) header.tokens.push_back(static_cast<TokenId>(i * 7));
        return header;
    }
    Status write() { return write_state_file(path_, header(), **slots_.snapshot(SlotId{0}), *codec_); }

    std::string bytes() const {
        std::ifstream in(path_, std::ios::binary);
        return {std::istreambuf_iterator<char>(in), {}};
    }
    void overwrite(const std::string& bytes) const { std::ofstream(path_, std::ios::binary) << bytes; }

    StateShape shape_ = shape_of_test();
    SlotStore slots_{shape_, 2, 200};
    std::shared_ptr<const CheckpointCodec> codec_ = host_checkpoint_codec(shape_);
    std::filesystem::path dir_;
    std::string path_;
};

TEST_F(StateFileTest, WhatComesBackIsWhatWasWritten) {
    ASSERT_TRUE(write());
    const auto read = read_state_file(path_, "model", *codec_);
    ASSERT_TRUE(read) << read.error().to_string();
    EXPECT_EQ(read->header.name, header().name);
    EXPECT_EQ(read->header.space, "uid:1");
    EXPECT_EQ(read->header.tokens, header().tokens);
    ASSERT_TRUE(slots_.restore(SlotId{1}, *read->state));
    EXPECT_EQ(slots_.length(SlotId{1}), 70);
    const std::size_t row_bytes = kernels::kv_row_bytes(shape_.kv_type, shape_.head_dim);
    for (int layer = 0; layer < 2; ++layer) {
        EXPECT_EQ(std::memcmp(slots_.conv_state(SlotId{0}, layer), slots_.conv_state(SlotId{1}, layer), 24),
                  0);
        EXPECT_EQ(
            std::memcmp(slots_.gdn_state(SlotId{0}, layer).data, slots_.gdn_state(SlotId{1}, layer).data, 32),
            0);
        const kernels::KvView a = slots_.kv(SlotId{0}, layer), b = slots_.kv(SlotId{1}, layer);
        for (int r = 0; r < 70; ++r)
            for (int head = 0; head < 2; ++head) {
                EXPECT_EQ(std::memcmp(a.k_row(r, head), b.k_row(r, head), row_bytes), 0);
                EXPECT_EQ(std::memcmp(a.v_row(r, head), b.v_row(r, head), row_bytes), 0);
            }
    }
    EXPECT_EQ(read_state_header(path_)->tokens, header().tokens);
    EXPECT_FALSE(std::filesystem::exists(path_ + ".new"));
}

TEST_F(StateFileTest, TheSinkAndTheWindowArePartOfTheLayout) {
    StateShape q4 = shape_of_test(kernels::KvRowType::q4_0);
    q4.kv_sink = 16, q4.kv_window = 20;
    StateShape wider = q4;
    wider.kv_window = 21;
    SlotStore slots(q4, 1, 200);
    ASSERT_TRUE(slots.bind(SlotId{0}));
    ASSERT_TRUE(slots.reserve(SlotId{0}, 70));
    for (int layer = 0; layer < 2; ++layer)
        for (int r = 0; r < 70; ++r)
            for (int head = 0; head < 2; ++head) {
                const kernels::KvView kv = slots.kv(SlotId{0}, layer);
                std::memset(kv.k_row(r, head), r, 18);
                std::memset(kv.v_row(r, head), r + 1, 18);
                std::memset(kv.half_k_row(r, head), r + 2, 8);
                std::memset(kv.half_v_row(r, head), r + 3, 8);
            }
    slots.commit(SlotId{0}, 70);
    const auto codec = host_checkpoint_codec(q4);
    ASSERT_TRUE(write_state_file(path_, header(), **slots.snapshot(SlotId{0}), *codec));
    EXPECT_EQ(read_state_file(path_, "model", *host_checkpoint_codec(wider)).error().code(),
              Code::failed_precondition);
    EXPECT_EQ(read_state_file(path_, "model", *codec_).error().code(), Code::failed_precondition);
    const auto read = read_state_file(path_, "model", *codec);
    ASSERT_TRUE(read) << read.error().to_string();
    slots.release(SlotId{0});
    ASSERT_TRUE(slots.restore(SlotId{0}, *read->state));
    for (int layer = 0; layer < 2; ++layer)
        for (int r = 0; r < 70; ++r)
            for (int head = 0; head < 2; ++head) {
                const kernels::KvView kv = slots.kv(SlotId{0}, layer);
                ASSERT_EQ(kv.k_row(r, head)[17], static_cast<std::byte>(r));
                ASSERT_EQ(kv.v_row(r, head)[17], static_cast<std::byte>(r + 1));
                if (r >= 16 && r < 50) continue;  // neither of the sink nor of the window
                ASSERT_EQ(kv.half_k_row(r, head)[7], static_cast<std::byte>(r + 2));
                ASSERT_EQ(kv.half_v_row(r, head)[7], static_cast<std::byte>(r + 3));
            }
}

TEST_F(StateFileTest, NoBitOfAFileCanChangeUnnoticed) {
    ASSERT_TRUE(write());
    const std::string whole = bytes();
    for (std::size_t i = 0; i < whole.size(); i += i < 700 ? 1 : 41) {
        std::string damaged = whole;
        damaged[i] = static_cast<char>(damaged[i] ^ 0x10);
        overwrite(damaged);
        const auto read = read_state_file(path_, "model", *codec_);
        ASSERT_FALSE(read) << "byte " << i;
        EXPECT_TRUE(read.error().code() == Code::data_loss ||
                    read.error().code() == Code::failed_precondition)
            << read.error().to_string();
    }
    overwrite(whole);
    EXPECT_TRUE(read_state_file(path_, "model", *codec_));
}

TEST_F(StateFileTest, ACutFileIsRefusedWhereverItIsCut) {
    ASSERT_TRUE(write());
    const std::string whole = bytes();
    for (std::size_t n = 0; n < whole.size(); n += n < 700 ? 3 : 57) {
        overwrite(whole.substr(0, n));
        const auto read = read_state_file(path_, "model", *codec_);
        ASSERT_FALSE(read) << n;
        EXPECT_EQ(read.error().code(), Code::data_loss) << read.error().to_string();
    }
    overwrite(whole + "x");
    EXPECT_EQ(read_state_file(path_, "model", *codec_).error().code(), Code::data_loss);
}

TEST_F(StateFileTest, AnotherModelsOrFormatsStateIsNotTaken) {
    ASSERT_TRUE(write());
    EXPECT_EQ(read_state_file(path_, "other", *codec_).error().code(), Code::failed_precondition);
    const auto f32 = host_checkpoint_codec(shape_of_test(kernels::KvRowType::f32));
    EXPECT_THAT(read_state_file(path_, "model", *f32).error().message(), HasSubstr("layout"));
    EXPECT_EQ(write_state_file(path_, header(), **slots_.snapshot(SlotId{0}), *f32).error().code(),
              Code::invalid_argument);
    EXPECT_TRUE(read_state_file(path_, "model", *codec_)) << "a failed write leaves the old file";
}

TEST_F(StateFileTest, AFileOfTheOtherImageFormatIsRefusedInBothDirections) {
    kernels::ThreadTeam team(1);
    kernels::Exec exec(team);
    SlotStore slots(shape_, 2, 200, {}, {0, {}, &exec});
    ASSERT_TRUE(slots.restore(SlotId{0}, **slots_.snapshot(SlotId{0})));
    const auto rounded = *slots.snapshot(SlotId{0}, ImageFormat::f16);
    const auto codec = host_checkpoint_codec(shape_, ImageFormat::f16);
    EXPECT_EQ(codec_->encoded_bytes(70) - codec->encoded_bytes(70), shape_.image_bytes() / 2);
    EXPECT_EQ(write_state_file(path_, header(), *rounded, *codec_).error().code(), Code::invalid_argument);
    EXPECT_EQ(write_state_file(path_, header(), **slots_.snapshot(SlotId{0}), *codec).error().code(),
              Code::invalid_argument);

    ASSERT_TRUE(write_state_file(path_, header(), *rounded, *codec));
    EXPECT_EQ(std::filesystem::file_size(path_), state_file_bytes(header(), *codec));
    EXPECT_EQ(read_state_file(path_, "model", *codec_).error().code(), Code::failed_precondition);
    const auto read = read_state_file(path_, "model", *codec);
    ASSERT_TRUE(read) << read.error().to_string();
    // From disk the same bits as from memory.
    slots.release(SlotId{0});
    ASSERT_TRUE(slots.restore(SlotId{0}, *read->state));
    ASSERT_TRUE(slots.restore(SlotId{1}, *rounded));
    for (int layer = 0; layer < 2; ++layer) {
        EXPECT_EQ(std::memcmp(slots.conv_state(SlotId{0}, layer), slots.conv_state(SlotId{1}, layer), 24), 0);
        EXPECT_EQ(
            std::memcmp(slots.gdn_state(SlotId{0}, layer).data, slots.gdn_state(SlotId{1}, layer).data, 32),
            0);
    }

    ASSERT_TRUE(write());
    EXPECT_EQ(read_state_file(path_, "model", *codec).error().code(), Code::failed_precondition);
}

TEST_F(StateFileTest, AFolderThatCannotBeWrittenIsSaid) {
    const auto state = slots_.snapshot(SlotId{0});
    const Status written = write_state_file((dir_ / "none/a.state").string(), header(), **state, *codec_);
    EXPECT_EQ(written.error().code(), Code::not_found);
    EXPECT_EQ(read_state_file((dir_ / "none").string(), "model", *codec_).error().code(), Code::not_found);
}

}  // namespace
}  // namespace pantheon::model
