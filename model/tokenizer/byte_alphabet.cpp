#include "model/tokenizer/byte_alphabet.h"

#include <cstdint>

#include "model/tokenizer/utf8.h"

namespace pantheon::model {
namespace {

constexpr std::uint32_t kFirstSubstitute = 0x100;
constexpr std::uint32_t kSubstitutes = 68;

bool stands_for_itself(std::uint32_t byte) {
    return (byte >= 0x21 && byte <= 0x7E) || (byte >= 0xA1 && byte <= 0xAC) || byte >= 0xAE;
}

struct Alphabet {
    std::array<std::string, 256> of_byte;
    std::array<char, kSubstitutes> substituted{};  // byte of U+0100 + i

    Alphabet() {
        std::uint32_t n = 0;
        for (std::uint32_t byte = 0; byte < 256; ++byte) {
            if (stands_for_itself(byte)) {
                append_utf8(of_byte[byte], byte);
            } else {
                append_utf8(of_byte[byte], kFirstSubstitute + n);
                substituted[n++] = static_cast<char>(byte);
            }
        }
    }
};

const Alphabet& alphabet() {
    static const Alphabet a;
    return a;
}

}  // namespace

const std::array<std::string, 256>& byte_alphabet() {
    return alphabet().of_byte;
}

std::string bytes_of_entry(std::string_view entry) {
    const Alphabet& a = alphabet();
    std::string out;
    out.reserve(entry.size());
    while (!entry.empty()) {
        std::size_t n_bytes;
        if (utf8_step(entry, n_bytes) != Utf8Step::character) {
            out.push_back(entry[0]);
            entry.remove_prefix(1);
            continue;
        }
        std::size_t end = 0;
        const std::uint32_t c = next_code_point(entry, end);
        if (c >= kFirstSubstitute && c < kFirstSubstitute + kSubstitutes) {
            out.push_back(a.substituted[c - kFirstSubstitute]);
        } else if (c < 0x100 && stands_for_itself(c)) {
            out.push_back(static_cast<char>(c));
        } else {
            out.append(entry.substr(0, n_bytes));
        }
        entry.remove_prefix(n_bytes);
    }
    return out;
}

}  // namespace pantheon::model
