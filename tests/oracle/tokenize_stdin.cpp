// Tokenizes many texts in one process, for the oracle test.
//   tokenize_stdin MODEL < texts      each text: u32 length, bytes. For each: the ids without and with
//   control
//                                     tokens, each list followed by its decoded bytes.
//   tokenize_stdin MODEL --pieces     for each id of the vocabulary its bytes without and with control
//   tokens.
// Numbers are u32 in the machine's byte order; a list is its length, then its items.
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <span>
#include <string>
#include <string_view>

#include "model/gguf/gguf_file.h"
#include "model/tokenizer/tokenizer.h"

namespace {

using pantheon::TokenId;
using pantheon::model::GgufFile;
using pantheon::model::Tokenizer;

void put_number(std::uint32_t n) {
    std::fwrite(&n, sizeof n, 1, stdout);
}

void put_bytes(std::string_view bytes) {
    put_number(static_cast<std::uint32_t>(bytes.size()));
    if (!bytes.empty()) std::fwrite(bytes.data(), 1, bytes.size(), stdout);
}

void put_ids(std::span<const TokenId> ids) {
    put_number(static_cast<std::uint32_t>(ids.size()));
    for (const TokenId id : ids) put_number(static_cast<std::uint32_t>(id));
}

/// False at the end of the input; exits on a torn record.
bool next_text(std::string& text) {
    std::uint32_t length = 0;
    const std::size_t got = std::fread(&length, 1, sizeof length, stdin);
    if (got == 0) return false;
    text.resize(length);
    if (got != sizeof length || (length > 0 && std::fread(text.data(), 1, length, stdin) != length)) {
        std::fprintf(stderr, "tokenize_stdin: the input ends inside a text\n");
        std::exit(1);
    }
    return true;
}

}  // namespace

int main(int argc, char** argv) {
    const bool wants_pieces = argc == 3 && std::strcmp(argv[2], "--pieces") == 0;
    if (argc != 2 && !wants_pieces) {
        std::fprintf(stderr, "usage: tokenize_stdin MODEL [--pieces]\n");
        return 2;
    }
    const auto file = GgufFile::open(argv[1]);
    if (!file) {
        std::fprintf(stderr, "%s\n", file.error().to_string().c_str());
        return 1;
    }
    const auto* embedding = (*file)->find_tensor("token_embd.weight");
    const auto tokenizer = Tokenizer::load((*file)->metadata(), embedding == nullptr ? 0 : embedding->ne[1]);
    if (!tokenizer) {
        std::fprintf(stderr, "%s\n", tokenizer.error().to_string().c_str());
        return 1;
    }

    if (wants_pieces) {
        for (TokenId id = 0; id < (*tokenizer)->n_vocab(); ++id) {
            put_bytes((*tokenizer)->piece(id, false));
            put_bytes((*tokenizer)->piece(id, true));
        }
        return 0;
    }
    for (std::string text; next_text(text);) {
        for (const bool special : {false, true}) {
            const auto ids = (*tokenizer)->encode(text, special);
            put_ids(ids);
            put_bytes((*tokenizer)->decode(ids, true));
        }
    }
    return 0;
}
