// One case per rule of the container format: what is broken, and how the refusal reads.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "model/gguf/gguf_file.h"
#include "tests/model/gguf/open_bytes.h"

namespace pantheon::model {
namespace {

using test::append_number;
using test::append_string;
using test::GgufTyped;
using test::GgufWriter;
using testing::HasSubstr;

struct Case {
    const char* name;
    std::function<std::string()> bytes;
    Code code;
    const char* message;
};

std::string written(const std::function<void(GgufWriter&)>& change, std::uint32_t version = 3,
                    std::uint32_t alignment = 32) {
    GgufWriter writer(version, alignment);
    writer.kv("general.architecture", GgufTyped::string("qwen35moe"));
    writer.tensor("a", 0, {8}, std::string(32, 'a'));
    writer.tensor("b", 2, {32, 2}, std::string(36, 'b'));
    change(writer);
    return writer.to_bytes();
}

std::string with_tensor(std::string name, std::uint32_t type, std::vector<std::int64_t> ne,
                        std::size_t n_bytes = 64) {
    return written([&](GgufWriter& w) { w.tensor(name, type, ne, std::string(n_bytes, 'x')); });
}

std::string with_entry(GgufTyped value) {
    return written([&](GgufWriter& w) { w.kv("the.key", value); });
}

std::string header(std::uint32_t version, std::int64_t n_tensors, std::int64_t n_entries) {
    std::string bytes = "GGUF";
    append_number(bytes, version);
    append_number(bytes, n_tensors);
    append_number(bytes, n_entries);
    return bytes;
}

std::string cut(std::string bytes, std::size_t n_bytes) {
    bytes.resize(bytes.size() - n_bytes);
    return bytes;
}

const Case kCases[] = {
    // header
    {"empty", [] { return std::string(); }, Code::data_loss, "the file has 0 bytes, a GGUF header 24"},
    {"short header", [] { return cut(header(3, 0, 0), 1); }, Code::data_loss, "the file has 23 bytes"},
    {"magic", [] { return written([](GgufWriter& w) { w.magic = 0x6C6D6767; }); }, Code::invalid_argument,
     "not a GGUF file"},
    {"version 0", [] { return header(0, 0, 0); }, Code::unimplemented, "GGUF version 0, want 2 or 3"},
    {"version 1", [] { return header(1, 0, 0); }, Code::unimplemented, "GGUF version 1, want 2 or 3"},
    {"version 4", [] { return header(4, 0, 0); }, Code::unimplemented, "GGUF version 4, want 2 or 3"},
    {"big-endian", [] { return header(0x03000000, 0, 0); }, Code::unimplemented, "big-endian"},
    {"negative tensor count", [] { return header(3, -1, 0); }, Code::data_loss, "promises -1 tensors"},
    {"negative entry count", [] { return header(3, 0, -1); }, Code::data_loss,
     "promises -1 metadata entries"},
    {"tensor count beyond the file", [] { return header(3, 1LL << 40, 0); }, Code::data_loss,
     "promises 1099511627776 tensors, the 0 bytes left hold at most 0"},
    {"entry count beyond the file", [] { return header(3, 0, 1LL << 62) + std::string(100, '\0'); },
     Code::data_loss, "the 100 bytes left hold at most 7"},
    // metadata
    {"empty key", [] { return written([](GgufWriter& w) { w.kv("", GgufTyped::u8(1)); }); }, Code::data_loss,
     "metadata entry 1: empty key"},
    {"key twice",
     [] { return written([](GgufWriter& w) { w.kv("general.architecture", GgufTyped::u8(1)); }); },
     Code::data_loss, "general.architecture: the key appears twice"},
    {"unknown value type",
     [] {
         return with_entry({13, "12345678"});
     },
     Code::data_loss, "the.key: unknown value type 13"},
    {"negative value type",
     [] {
         return with_entry({0xFFFFFFFF, "12345678"});
     },
     Code::data_loss, "the.key: unknown value type -1"},
    {"array of arrays", [] { return with_entry(GgufTyped::array(9, 1, std::string(64, '\0'))); },
     Code::data_loss, "the.key: an array of arrays"},
    {"unknown element type", [] { return with_entry(GgufTyped::array(77, 1, "1")); }, Code::data_loss,
     "the.key: unknown array element type 77"},
    {"array count beyond the file", [] { return with_entry(GgufTyped::array(4, 1ull << 61, "")); },
     Code::data_loss, "the.key: an array of 2305843009213693952 u32 elements in the "},
    {"string array count beyond the file", [] { return with_entry(GgufTyped::array(8, 1000, "")); },
     Code::data_loss, "the.key: an array of 1000 string elements in the "},
    {"string beyond the file",
     [] {
         return with_entry({8, std::string("\xFF\xFF\xFF\xFF\xFF\xFF\xFF\x7F", 8)});
     },
     Code::data_loss, "the.key: the file ends inside it"},
    {"string in an array beyond the file",
     [] { return with_entry(GgufTyped::array(8, 1, std::string("\xFF\xFF\xFF\xFF\xFF\xFF\xFF\xFF", 8))); },
     Code::data_loss, "the.key: the file ends inside it"},
    {"key beyond the file",
     [] {
         std::string bytes = header(3, 0, 1);
         append_number<std::uint64_t>(bytes, 1ull << 63);
         return bytes + std::string(32, 'k');
     },
     Code::data_loss, "metadata entry 0: the file ends inside it"},
    {"value beyond the file",
     [] {
         std::string bytes = header(3, 0, 1);
         append_string(bytes, "a.key");
         append_number<std::uint32_t>(bytes, 10);
         return bytes + "1234";
     },
     Code::data_loss, "a.key: the file ends inside it, 4 bytes after offset 41"},
    // alignment
    {"alignment no power of two",
     [] { return written([](GgufWriter& w) { w.kv("general.alignment", GgufTyped::u32(48)); }); },
     Code::invalid_argument, "general.alignment: 48 is no power of two"},
    {"alignment zero",
     [] { return written([](GgufWriter& w) { w.kv("general.alignment", GgufTyped::u32(0)); }); },
     Code::invalid_argument, "general.alignment: 0, want 1 to 65536"},
    {"alignment too large",
     [] { return written([](GgufWriter& w) { w.kv("general.alignment", GgufTyped::u32(1u << 17)); }); },
     Code::invalid_argument, "general.alignment: 131072, want 1 to 65536"},
    {"alignment of a wrong type",
     [] { return written([](GgufWriter& w) { w.kv("general.alignment", GgufTyped::string("32")); }); },
     Code::invalid_argument, "general.alignment: a string, want an integer"},
    // tensor infos
    {"empty name", [] { return with_tensor("", 0, {16}); }, Code::data_loss, "tensor 2: empty name"},
    {"long name", [] { return with_tensor(std::string(64, 'n'), 0, {16}); }, Code::data_loss,
     "a name of 64 bytes, at most 63 are allowed"},
    {"name twice", [] { return with_tensor("a", 0, {16}); }, Code::data_loss, "a: the tensor appears twice"},
    {"no dimensions", [] { return with_tensor("c", 0, {}); }, Code::data_loss,
     "c: 0 dimensions, want 1 to 4"},
    {"five dimensions",
     [] {
         return with_tensor("c", 0, {16, 1, 1, 1, 1});
     },
     Code::data_loss, "c: 5 dimensions, want 1 to 4"},
    {"dimension zero",
     [] {
         return with_tensor("c", 0, {16, 0});
     },
     Code::data_loss, "c: a dimension of 0"},
    {"negative dimension", [] { return with_tensor("c", 0, {-16}); }, Code::data_loss,
     "c: a dimension of -16"},
    {"element count overflows",
     [] {
         return with_tensor("c", 0, {1LL << 32, 1LL << 32});
     },
     Code::data_loss, "c: the number of elements overflows"},
    {"element count overflows to something small",
     [] {
         return with_tensor("c", 0, {1LL << 62, 4, 16});
     },
     Code::data_loss, "c: the number of elements overflows"},
    {"byte count overflows", [] { return with_tensor("c", 0, {1LL << 62}); }, Code::data_loss,
     "c: the number of bytes overflows"},
    {"ragged rows", [] { return with_tensor("c", 12, {255}); }, Code::data_loss,
     "c: rows of 255 elements, want a multiple of the 256 in a block of Q4_K"},
    {"retired type", [] { return with_tensor("c", 4, {32}); }, Code::unimplemented,
     "c: tensor type 4 was retired from the format"},
    {"private type", [] { return with_tensor("c", 139, {256}); }, Code::unimplemented,
     "c: tensor type 139 is private to ik_llama.cpp"},
    {"unknown type", [] { return with_tensor("c", 43, {32}); }, Code::unimplemented,
     "c: tensor type 43 is unknown"},
    {"negative type", [] { return with_tensor("c", 0x80000000, {32}); }, Code::unimplemented,
     "c: tensor type -2147483648 is unknown"},
    // data
    {"offset not aligned", [] { return written([](GgufWriter& w) { w.tensors()[1].offset = 40; }); },
     Code::data_loss, "b: offset 40 is no multiple of the alignment 32"},
    {"overlap", [] { return written([](GgufWriter& w) { w.tensors()[1].offset = 0; }); }, Code::data_loss,
     "its data overlaps that of"},
    {"offset beyond the file", [] { return written([](GgufWriter& w) { w.tensors()[1].offset = 1 << 20; }); },
     Code::data_loss, "b: ends at byte "},
    {"offset overflows",
     [] { return written([](GgufWriter& w) { w.tensors()[1].offset = 0xFFFFFFFFFFFFFFE0; }); },
     Code::data_loss, "b: offset 18446744073709551584 overflows"},
    {"data cut short", [] { return cut(written([](GgufWriter& w) { w.trims_tail = true; }), 1); },
     Code::data_loss, "b: ends at byte 228, the file has 227"},
    {"infos cut short", [] { return cut(written([](GgufWriter&) {}), 116); }, Code::data_loss,
     "the file ends inside it"},
    {"control characters in a name", [] { return with_tensor("\n\x1B[2J", 0, {0}); }, Code::data_loss,
     "??[2J: a dimension of 0"},
};

TEST(GgufDamageTest, RefusesEveryKindOfDamageByName) {
    for (const Case& c : kCases) {
        SCOPED_TRACE(c.name);
        const auto file = test::open_bytes(c.bytes());
        ASSERT_FALSE(file);
        EXPECT_EQ(file.error().code(), c.code) << file.error().to_string();
        EXPECT_THAT(file.error().message(), HasSubstr(c.message));
        EXPECT_THAT(file.error().message(), testing::StartsWith("/proc/self/fd/")) << "names the file";
    }
}

TEST(GgufDamageTest, AFileCutAnywhereIsRefused) {
    const std::string bytes = written([](GgufWriter& w) { w.trims_tail = true; });
    ASSERT_TRUE(test::open_bytes(bytes));
    for (std::size_t n = 0; n < bytes.size(); ++n) {
        const auto file = test::open_bytes(std::string_view(bytes).substr(0, n));
        ASSERT_FALSE(file) << n;
    }
}

}  // namespace
}  // namespace pantheon::model
