#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <limits>

#include "model/gguf/gguf_file.h"
#include "tests/model/gguf/open_bytes.h"

namespace pantheon::model {
namespace {

using test::GgufTyped;
using test::GgufWriter;
using testing::ElementsAre;
using testing::HasSubstr;

constexpr std::int64_t kMin = std::numeric_limits<std::int64_t>::min();
constexpr std::int64_t kMax = std::numeric_limits<std::int64_t>::max();

std::shared_ptr<const GgufFile> open_with(std::vector<std::pair<std::string, GgufTyped>> entries) {
    GgufWriter writer;
    for (auto& [key, value] : entries) writer.kv(key, value);
    auto file = test::open_written(writer);
    EXPECT_TRUE(file) << file.error().to_string();
    return file ? *file : nullptr;
}

template <class T>
std::string error_text(const Result<T>& result) {
    return result ? "no error" : result.error().to_string();
}

TEST(GgufMetadataTest, ReadsIntegersOfEveryWidth) {
    const auto file = open_with({
        {"u8", GgufTyped::u8(200)},
        {"i8", GgufTyped::i8(-100)},
        {"u16", GgufTyped::u16(60000)},
        {"i16", GgufTyped::i16(-30000)},
        {"u32", GgufTyped::u32(4'000'000'000)},
        {"i32", GgufTyped::i32(-2'000'000'000)},
        {"u64", GgufTyped::u64(kMax)},
        {"i64", GgufTyped::i64(kMin)},
    });
    const std::pair<const char*, std::int64_t> kWant[] = {
        {"u8", 200},     {"i8", -100},           {"u16", 60000},
        {"i16", -30000}, {"u32", 4'000'000'000}, {"i32", -2'000'000'000},
        {"u64", kMax},   {"i64", kMin}};
    for (const auto& [key, want] : kWant) {
        const auto value = file->metadata().get_int(key, kMin, kMax);
        ASSERT_TRUE(value) << key;
        EXPECT_EQ(**value, want) << key;
    }
}

TEST(GgufMetadataTest, ReadsBothFloatWidthsBoolsAndStrings) {
    const auto file = open_with({
        {"f32", GgufTyped::f32(1.5f)},
        {"f64", GgufTyped::f64(1e300)},
        {"yes", GgufTyped::boolean(true)},
        {"one", GgufTyped::u8(1)},
        {"text", GgufTyped::string("\xC3\xA4\xFF")},
    });
    const GgufMetadata& m = file->metadata();
    EXPECT_EQ(**m.get_float("f32"), 1.5);
    EXPECT_EQ(**m.get_float("f64"), 1e300);
    EXPECT_TRUE(**m.get_bool("yes"));
    EXPECT_TRUE(**m.get_bool("one"));
    EXPECT_EQ(**m.get_string("text"), "\xC3\xA4\xFF");
}

TEST(GgufMetadataTest, ReadsArraysAndScalarsAsArrays) {
    const std::vector<std::string> words = {"a", "", "bc"};
    const std::vector<std::int32_t> ints = {-1, 2, 3};
    const std::vector<float> floats = {0.5f, 2.0f};
    const auto file = open_with({
        {"words", GgufTyped::strings(words)},
        {"ints", GgufTyped::i32s(ints)},
        {"floats", GgufTyped::f32s(floats)},
        {"bools", GgufTyped::array(7, 3, std::string("\x01\x00\x02", 3))},
        {"u64s", GgufTyped::array(10, 1, std::string("\x07\0\0\0\0\0\0\0", 8))},
        {"empty", GgufTyped::array(5, 0, "")},
        {"int", GgufTyped::u32(4)},
        {"float", GgufTyped::f32(4)},
    });
    const GgufMetadata& m = file->metadata();
    EXPECT_EQ(**m.get_string_array("words"), words);
    EXPECT_THAT(**m.get_int_array("ints"), ElementsAre(-1, 2, 3));
    EXPECT_THAT(**m.get_float_array("floats"), ElementsAre(0.5, 2.0));
    EXPECT_THAT(**m.get_int_array("bools"), ElementsAre(1, 0, 1));
    EXPECT_THAT(**m.get_int_array("u64s"), ElementsAre(7));
    EXPECT_THAT(**m.get_int_array("empty"), ElementsAre());
    EXPECT_THAT(**m.get_int_array("int"), ElementsAre(4));
    EXPECT_THAT(**m.get_float_array("float"), ElementsAre(4.0));
}

TEST(GgufMetadataTest, AnswersNothingForAbsentKeys) {
    const auto file = open_with({});
    const GgufMetadata& m = file->metadata();
    EXPECT_FALSE(m.contains("x"));
    EXPECT_FALSE(m.get_int("x", 0, 1)->has_value());
    EXPECT_FALSE(m.get_float("x")->has_value());
    EXPECT_FALSE(m.get_bool("x")->has_value());
    EXPECT_FALSE(m.get_string("x")->has_value());
    EXPECT_FALSE(m.get_int_array("x")->has_value());
    EXPECT_FALSE(m.get_float_array("x")->has_value());
    EXPECT_EQ(*m.get_string_array("x"), nullptr);
}

TEST(GgufMetadataTest, NamesTheKeyOfAValueThatDoesNotConvert) {
    const std::vector<std::string> words = {"a"};
    const auto file = open_with({
        {"int", GgufTyped::i32(7)},
        {"huge", GgufTyped::u64(std::numeric_limits<std::uint64_t>::max())},
        {"float", GgufTyped::f32(1)},
        {"text", GgufTyped::string("t")},
        {"words", GgufTyped::strings(words)},
    });
    const GgufMetadata& m = file->metadata();
    EXPECT_EQ(error_text(m.get_int("int", 8, 9)), "invalid_argument: int: 7, want 8 to 9");
    EXPECT_EQ(error_text(m.get_int("text", 0, 9)), "invalid_argument: text: a string, want an integer");
    EXPECT_EQ(error_text(m.get_int("float", 0, 9)), "invalid_argument: float: a float, want an integer");
    EXPECT_THAT(error_text(m.get_int("huge", 0, kMax)), HasSubstr("huge: 18446744073709551615"));
    EXPECT_EQ(error_text(m.get_float("int")), "invalid_argument: int: an integer, want a float");
    EXPECT_EQ(error_text(m.get_bool("int")), "invalid_argument: int: an integer, want a bool");
    EXPECT_EQ(error_text(m.get_string("words")),
              "invalid_argument: words: an array of string, want a string");
    EXPECT_EQ(error_text(m.get_int_array("words")),
              "invalid_argument: words: an array of string, want an array of integers");
    EXPECT_EQ(error_text(m.get_float_array("int")),
              "invalid_argument: int: an integer, want an array of floats");
    EXPECT_EQ(error_text(m.get_string_array("text")),
              "invalid_argument: text: a string, want an array of strings");
}

TEST(GgufMetadataTest, KeepsEntriesInFileOrderWithTheirTypes) {
    const auto file = open_with({{"z", GgufTyped::u8(1)}, {"a", GgufTyped::string("s")}});
    const auto entries = file->metadata().entries();
    ASSERT_EQ(entries.size(), 2u);
    EXPECT_EQ(entries[0].key, "z");
    EXPECT_EQ(entries[0].type, 0);
    EXPECT_EQ(entries[1].key, "a");
    EXPECT_EQ(entries[1].type, 8);
}

}  // namespace
}  // namespace pantheon::model
