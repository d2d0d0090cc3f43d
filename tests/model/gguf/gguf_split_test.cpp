#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>
#include <filesystem>

#include "model/gguf/gguf_file.h"
#include "tests/model/gguf/open_bytes.h"
#include "tests/support/temp_dir.h"

namespace pantheon::model {
namespace {

using test::GgufTyped;
using test::GgufWriter;
using testing::HasSubstr;

constexpr const char* kNames[] = {"t0", "t1", "t2", "t3", "t4"};

GgufWriter five_tensors() {
    GgufWriter writer;
    writer.kv("general.architecture", GgufTyped::string("qwen35moe"));
    for (int i = 0; i < 5; ++i)
        writer.f32_tensor(kNames[i], {3}, std::array{1.0f * static_cast<float>(i), 2.0f, 3.0f});
    return writer;
}

GgufWriter shard(int no, int count, int total, std::vector<std::string> names) {
    GgufWriter writer;
    writer.kv("split.no", GgufTyped::u16(static_cast<std::uint16_t>(no)));
    writer.kv("split.count", GgufTyped::u16(static_cast<std::uint16_t>(count)));
    writer.kv("split.tensors.count", GgufTyped::i32(total));
    for (const std::string& name : names) writer.f32_tensor(name, {1}, std::array{1.0f});
    return writer;
}

TEST(GgufSplitTest, OpensTheWholeSetFromAnyOfItsFiles) {
    const test::TempDir dir;
    const auto paths = five_tensors().write_split(dir.file("m"), 3);
    std::string fingerprint;
    for (const std::string& path : paths) {
        SCOPED_TRACE(path);
        const auto file = GgufFile::open(path);
        ASSERT_TRUE(file) << file.error().to_string();
        EXPECT_EQ((*file)->path(), paths[0]);
        EXPECT_THAT((*file)->shard_paths(), testing::ElementsAreArray(paths));
        EXPECT_EQ((*file)->tensors().size(), 5u);
        EXPECT_EQ(**(*file)->metadata().get_string("general.architecture"), "qwen35moe");
        std::uint64_t n_bytes = 0;
        for (const std::string& p : paths) n_bytes += std::filesystem::file_size(p);
        EXPECT_EQ((*file)->file_bytes(), n_bytes);
        for (int i = 0; i < 5; ++i) {
            const GgufTensor* t = (*file)->find_tensor(kNames[i]);
            ASSERT_NE(t, nullptr);
            float first = -1;
            std::memcpy(&first, (*file)->bytes(*t).data(), sizeof first);
            EXPECT_EQ(first, static_cast<float>(i));
        }
        if (fingerprint.empty()) fingerprint = (*file)->fingerprint();
        EXPECT_EQ((*file)->fingerprint(), fingerprint);
    }
}

TEST(GgufSplitTest, TakesASetOfOneForAWholeFile) {
    const test::TempDir dir;
    for (const int count : {0, 1}) {
        shard(0, count, 1, {"a"}).write_file(dir.file("any-name.gguf"));
        const auto file = GgufFile::open(dir.file("any-name.gguf"));
        EXPECT_TRUE(file) << file.error().to_string();
    }
}

struct BrokenSet {
    const char* name;
    std::function<void(const test::TempDir&)> write;
    Code code;
    const char* message;
};

TEST(GgufSplitTest, RefusesSetsThatDoNotFitTogether) {
    auto pair = [](const test::TempDir& dir, const GgufWriter& first, const GgufWriter& second) {
        first.write_file(dir.file("m-00001-of-00002.gguf"));
        second.write_file(dir.file("m-00002-of-00002.gguf"));
    };
    const BrokenSet kCases[] = {
        {"missing file",
         [&](const auto& d) { shard(0, 2, 2, {"a"}).write_file(d.file("m-00001-of-00002.gguf")); },
         Code::not_found, "file 2 of 2"},
        {"same number twice", [&](const auto& d) { pair(d, shard(0, 2, 2, {"a"}), shard(0, 2, 2, {"b"})); },
         Code::data_loss, "split.no: 0, want 1"},
        {"other count in the second",
         [&](const auto& d) { pair(d, shard(0, 2, 2, {"a"}), shard(1, 3, 2, {"b"})); }, Code::data_loss,
         "split.count: 3"},
        {"other count than the name",
         [&](const auto& d) { pair(d, shard(0, 3, 2, {"a"}), shard(1, 3, 2, {"b"})); }, Code::data_loss,
         "split.count: 3"},
        {"tensor in both", [&](const auto& d) { pair(d, shard(0, 2, 2, {"a"}), shard(1, 2, 2, {"a"})); },
         Code::data_loss, "a: the tensor is also in another file"},
        {"too few tensors", [&](const auto& d) { pair(d, shard(0, 2, 3, {"a"}), shard(1, 2, 3, {"b"})); },
         Code::data_loss, "split.tensors.count: 3, but the files of the set hold 2"},
        {"second is no part", [&](const auto& d) { pair(d, shard(0, 2, 2, {"a"}), GgufWriter()); },
         Code::data_loss, "split.no: missing"},
        {"second is damaged",
         [&](const auto& d) {
             pair(d, shard(0, 2, 2, {"a"}), shard(1, 2, 2, {"b"}));
             std::filesystem::resize_file(d.file("m-00002-of-00002.gguf"), 30);
         },
         Code::data_loss, "m-00002-of-00002.gguf"},
    };
    for (const BrokenSet& c : kCases) {
        SCOPED_TRACE(c.name);
        const test::TempDir dir;
        c.write(dir);
        const auto file = GgufFile::open(dir.file("m-00001-of-00002.gguf"));
        ASSERT_FALSE(file);
        EXPECT_EQ(file.error().code(), c.code) << file.error().to_string();
        EXPECT_THAT(file.error().message(), HasSubstr(c.message));
    }
}

TEST(GgufSplitTest, RefusesAPartWhoseNameDoesNotSayWhereTheOthersAre) {
    const test::TempDir dir;
    for (const char* name : {"m.gguf", "m-1-of-2.gguf", "m-00001-of-00002.bin", "m-0000x-of-00002.gguf"}) {
        shard(0, 2, 2, {"a"}).write_file(dir.file(name));
        const auto file = GgufFile::open(dir.file(name));
        ASSERT_FALSE(file) << name;
        EXPECT_EQ(file.error().code(), Code::invalid_argument);
        EXPECT_THAT(file.error().message(), HasSubstr("of a split set"));
    }
}

TEST(GgufSplitTest, EveryFileOfASetHasItsOwnAlignment) {
    const test::TempDir dir;
    shard(0, 2, 2, {"a"}).write_file(dir.file("m-00001-of-00002.gguf"));
    GgufWriter second(3, 4096);
    second.kv("split.no", GgufTyped::u16(1));
    second.kv("split.count", GgufTyped::u16(2));
    second.f32_tensor("b", {1}, std::array{7.0f});
    second.write_file(dir.file("m-00002-of-00002.gguf"));
    const auto file = GgufFile::open(dir.file("m-00001-of-00002.gguf"));
    ASSERT_TRUE(file) << file.error().to_string();
    float b = 0;
    std::memcpy(&b, (*file)->bytes(*(*file)->find_tensor("b")).data(), sizeof b);
    EXPECT_EQ(b, 7.0f);
}

}  // namespace
}  // namespace pantheon::model
