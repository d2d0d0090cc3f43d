#include "model/gguf/gguf_file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>

#include "tests/model/gguf/open_bytes.h"
#include "tests/support/temp_dir.h"

namespace pantheon::model {
namespace {

using test::GgufTyped;
using test::GgufWriter;
using test::open_bytes;
using test::open_written;
using testing::ElementsAre;
using testing::HasSubstr;

std::string pattern(std::size_t n_bytes, int seed) {
    std::string bytes(n_bytes, '\0');
    for (std::size_t i = 0; i < n_bytes; ++i)
        bytes[i] = static_cast<char>(static_cast<std::size_t>(seed) * 31 + i * 7);
    return bytes;
}

std::string text(std::span<const std::byte> bytes) {
    return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

GgufWriter two_tensors(std::uint32_t version = 3, std::uint32_t alignment = 32) {
    GgufWriter writer(version, alignment);
    writer.kv("general.architecture", GgufTyped::string("qwen35moe"));
    writer.tensor("a.weight", 2, {64, 3}, pattern(2 * 18 * 3, 1));  // Q4_0
    writer.tensor("b.weight", 0, {5}, pattern(20, 2));
    return writer;
}

TEST(GgufFileTest, ReadsBothVersionsAtEveryAlignment) {
    for (const std::uint32_t version : {2u, 3u}) {
        for (const std::uint32_t alignment : {1u, 8u, 32u, 64u, 4096u, 65536u}) {
            SCOPED_TRACE(testing::Message() << "version " << version << " alignment " << alignment);
            const auto file = open_written(two_tensors(version, alignment));
            ASSERT_TRUE(file) << file.error().to_string();
            EXPECT_EQ((*file)->version(), version);
            ASSERT_EQ((*file)->tensors().size(), 2u);
            const GgufTensor& a = (*file)->tensors()[0];
            EXPECT_EQ(a.name, "a.weight");
            EXPECT_EQ(a.type, 2);
            EXPECT_EQ(a.n_dims, 2);
            EXPECT_THAT(a.ne, ElementsAre(64, 3, 1, 1));
            EXPECT_EQ(a.offset % alignment, 0u);
            EXPECT_EQ(text((*file)->bytes(a)), pattern(108, 1));
            EXPECT_EQ(text((*file)->bytes((*file)->tensors()[1])), pattern(20, 2));
        }
    }
}

TEST(GgufFileTest, FindsTensorsByName) {
    const auto file = open_written(two_tensors());
    ASSERT_TRUE(file);
    EXPECT_EQ((*file)->find_tensor("b.weight"), &(*file)->tensors()[1]);
    EXPECT_EQ((*file)->find_tensor("b.weigh"), nullptr);
    EXPECT_EQ((*file)->find_tensor(""), nullptr);
}

TEST(GgufFileTest, KeepsTrailingDimensionsOfOneAsWritten) {
    GgufWriter writer;
    writer.f32_tensor("w", {2, 1, 1, 1}, std::array{1.0f, 2.0f});
    const auto file = open_written(writer);
    ASSERT_TRUE(file);
    EXPECT_EQ((*file)->tensors()[0].n_dims, 4);
    EXPECT_THAT((*file)->tensors()[0].ne, ElementsAre(2, 1, 1, 1));
}

TEST(GgufFileTest, AcceptsMissingPaddingAfterTheLastTensor) {
    GgufWriter writer = two_tensors();
    writer.trims_tail = true;
    const auto file = open_written(writer);
    ASSERT_TRUE(file) << file.error().to_string();
    EXPECT_EQ(text((*file)->bytes(*(*file)->find_tensor("b.weight"))), pattern(20, 2));
}

TEST(GgufFileTest, AcceptsGapsBetweenTensorsAndAnyOrderOfOffsets) {
    GgufWriter writer;
    writer.tensor("second", 0, {8}, pattern(32, 1));
    writer.tensor("first", 0, {8}, pattern(32, 2));
    writer.tensor("third", 0, {32}, pattern(128, 3));
    writer.tensors()[0].offset = 32;
    writer.tensors()[1].offset = 0;
    writer.tensors()[2].offset = 96;
    writer.tensors()[2].ne = {24};  // the info claims less than is written, so the gap is real
    const auto file = open_written(writer);
    ASSERT_TRUE(file) << file.error().to_string();
    EXPECT_EQ(text((*file)->bytes(*(*file)->find_tensor("second"))), pattern(32, 2));
    EXPECT_EQ(text((*file)->bytes(*(*file)->find_tensor("first"))), pattern(32, 1));
}

TEST(GgufFileTest, AcceptsFilesWithoutTensorsOrMetadata) {
    const auto file = open_written(GgufWriter());
    ASSERT_TRUE(file) << file.error().to_string();
    EXPECT_TRUE((*file)->tensors().empty());
    EXPECT_TRUE((*file)->metadata().entries().empty());
}

TEST(GgufFileTest, DescribesTensorsOfTypesItCannotComputeWith) {
    GgufWriter writer;
    writer.tensor("w", 40, {64, 2},
                  pattern(72, 1));  // NVFP4: known by size, refused where weights are loaded
    const auto file = open_written(writer);
    ASSERT_TRUE(file) << file.error().to_string();
    EXPECT_EQ((*file)->tensors()[0].n_bytes, 72u);
}

TEST(GgufFileTest, NamesThePathOfAFileThatCannotBeOpened) {
    const test::TempDir dir;
    const auto missing = GgufFile::open(dir.file("none.gguf"));
    ASSERT_FALSE(missing);
    EXPECT_EQ(missing.error().code(), Code::not_found);
    EXPECT_THAT(missing.error().message(), HasSubstr("none.gguf"));
    const auto directory = GgufFile::open(dir.path());
    ASSERT_FALSE(directory);
    EXPECT_EQ(directory.error().code(), Code::invalid_argument);
    EXPECT_THAT(directory.error().message(), HasSubstr("not a regular file"));
}

TEST(GgufFileTest, FingerprintChangesWithMetadataInfosAndData) {
    const std::string original = two_tensors().to_bytes();
    auto fingerprint = [](std::string_view bytes) {
        const auto file = open_bytes(bytes);
        return file ? (*file)->fingerprint() : file.error().to_string();
    };
    const std::string want = fingerprint(original);
    EXPECT_EQ(want.size(), 16u);
    EXPECT_EQ(want.find_first_not_of("0123456789abcdef"), std::string::npos);
    EXPECT_EQ(fingerprint(original), want);
    EXPECT_NE(fingerprint(original + std::string(32, '\0')), want) << "file size";

    std::string metadata = original;
    metadata[metadata.find("qwen35moe")] = 'Q';
    EXPECT_NE(fingerprint(metadata), want);
    std::string infos = original;
    infos[infos.find("b.weight")] = 'c';
    EXPECT_NE(fingerprint(infos), want);
    std::string data = original;
    const std::size_t at = data.find(pattern(20, 2));
    data[at] ^= 1;
    EXPECT_NE(fingerprint(data), want) << "first byte of a tensor";
    data = original;
    data[at + 19] ^= 1;
    EXPECT_NE(fingerprint(data), want) << "last byte of a tensor";
}

TEST(GgufFileTest, FingerprintReadsOnlyTheEndsOfLargeTensors) {
    GgufWriter writer;
    writer.tensor("w", 0, {4096}, pattern(16384, 1));
    const std::string bytes = writer.to_bytes();
    const std::size_t data = bytes.size() - 16384;
    auto with_flip_at = [&](std::size_t offset) {
        std::string changed = bytes;
        changed[data + offset] ^= 1;
        return (*open_bytes(changed))->fingerprint();
    };
    const std::string want = (*open_bytes(bytes))->fingerprint();
    EXPECT_NE(with_flip_at(4095), want);
    EXPECT_EQ(with_flip_at(4096), want);
    EXPECT_EQ(with_flip_at(16384 - 4097), want);
    EXPECT_NE(with_flip_at(16384 - 4096), want);
}

}  // namespace
}  // namespace pantheon::model
