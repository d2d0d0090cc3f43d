#include "tests/tools/make_model/bpe_trainer.h"

#include <cstdint>
#include <optional>
#include <set>
#include <sstream>
#include <unordered_map>
#include <utility>

namespace pantheon::test {
namespace {

// The most common first: the n-th word counts 1/n.
constexpr char kWords[] =
    "the of and to in is that it for was on with as be at by this have from or one had not but what all were "
    "when we "
    "there can an your which their said if do will each about how up out them then she many some so these "
    "would other "
    "into has more her two like him see time could no make than first been its who now people my made over "
    "did down "
    "only way find use may water long little very after words called just where most know get through back "
    "much go "
    "good new write our me man too any day same right look think also around another came come work three "
    "must "
    "because does part even place well such here take why help put different away again off went old number "
    "great "
    "tell men say small every found still between name should home big give air line set own under read last "
    "never "
    "us left end along while might next sound below saw something thought both few those always show large "
    "often "
    "together asked house world going want school important until form food keep children feet land side "
    "without boy "
    "once animal life enough took four head above kind began almost live page got earth need far hand high "
    "year "
    "mother light country father let night picture being study second soon story since white ever paper hard "
    "near "
    "sentence better best across during today however sure knew try told young sun thing whole hear example "
    "heard "
    "several change answer room sea against top turn learn point city play toward five himself usually money "
    "seen car "
    "morning body upon family later turned move face door cut done group true half red fish plants black eat "
    "short "
    "white run book gave order open ground cold really table remember tree course front space inside ago sad "
    "early "
    "behind strong order question happened blue complete ship area rock fire south problem piece told knew "
    "passed "
    "since top whole king street inch multiply nothing stay wheel full force object decide surface deep moon "
    "island "
    "foot system busy test record boat common gold possible plane dry wonder laugh thousand check game shape "
    "hot miss "
    "brought heat snow tire bring yes distant fill east paint language among user assistant model token "
    "prompt please "
    "hello thank function value return string list code file data computer program network memory message "
    "error input "
    "output result server client request response stream window number state layer weight attention expert "
    "understand explain describe summary reason because therefore information knowledge language translate";

void append_utf8(std::string& out, unsigned code_point) {
    if (code_point < 0x80) {
        out += static_cast<char>(code_point);
    } else {
        out += static_cast<char>(0xC0 | code_point >> 6);
        out += static_cast<char>(0x80 | (code_point & 0x3F));
    }
}

bool is_printable(unsigned byte) {
    return (byte >= 0x21 && byte <= 0x7E) || (byte >= 0xA1 && byte <= 0xAC) || byte >= 0xAE;
}

/// Code point of every byte.
std::vector<unsigned> byte_code_points() {
    std::vector<unsigned> points(256);
    unsigned next = 0x100;
    for (unsigned byte = 0; byte < 256; ++byte) points[byte] = is_printable(byte) ? byte : next++;
    return points;
}

struct Word {
    std::vector<std::uint32_t> symbols;  // bytes, then merges from 256 on
    std::uint64_t count;
};

Word make_word(const std::string& text, std::uint64_t count) {
    Word word{{}, count};
    for (const char c : text) word.symbols.push_back(static_cast<unsigned char>(c));
    return word;
}

std::vector<Word> training_words() {
    std::vector<Word> words;
    std::istringstream in(kWords);
    std::uint64_t rank = 0;
    for (std::string text; in >> text;) {
        const std::uint64_t count = 1'000'000 / ++rank;
        std::string capital = text;
        capital[0] = static_cast<char>(capital[0] - 'a' + 'A');
        words.push_back(make_word(" " + text, count));
        words.push_back(make_word(text, count / 8));
        words.push_back(make_word(capital, count / 16));
        words.push_back(make_word(" " + capital, count / 32));
    }
    return words;
}

using SymbolPair = std::pair<std::uint32_t, std::uint32_t>;

void apply(SymbolPair pair, std::uint32_t merged, Word& word) {
    std::size_t n = 0;
    for (std::size_t i = 0; i < word.symbols.size(); ++i) {
        const bool is_pair = i + 1 < word.symbols.size() && word.symbols[i] == pair.first &&
                             word.symbols[i + 1] == pair.second;
        word.symbols[n++] = is_pair ? merged : word.symbols[i];
        if (is_pair) ++i;
    }
    word.symbols.resize(n);
}

/// The commonest pair whose merge would be a new token; of equals the one that compares least.
std::optional<SymbolPair> best_pair(const std::vector<Word>& words, const std::vector<std::string>& texts,
                                    const std::set<std::string>& taken) {
    std::unordered_map<std::uint64_t, std::uint64_t> counts;
    for (const Word& word : words)
        for (std::size_t i = 0; i + 1 < word.symbols.size(); ++i)
            counts[static_cast<std::uint64_t>(word.symbols[i]) << 32 | word.symbols[i + 1]] += word.count;
    std::uint64_t best = 0, best_count = 0;
    for (const auto& [pair, count] : counts) {
        if (count < best_count || (count == best_count && pair > best) || count == 0) continue;
        if (taken.contains(texts[pair >> 32] + texts[pair & 0xFFFFFFFF])) continue;
        best = pair;
        best_count = count;
    }
    if (best_count == 0) return std::nullopt;
    return SymbolPair{best >> 32, best & 0xFFFFFFFF};
}

}  // namespace

std::vector<std::string> byte_alphabet() {
    const std::vector<unsigned> points = byte_code_points();
    std::vector<std::string> alphabet;
    for (const bool wants_printable : {true, false}) {
        for (unsigned byte = 0; byte < 256; ++byte) {
            if (is_printable(byte) != wants_printable) continue;
            append_utf8(alphabet.emplace_back(), points[byte]);
        }
    }
    return alphabet;
}

std::string to_byte_alphabet(const std::string& text) {
    static const std::vector<unsigned> points = byte_code_points();
    std::string out;
    for (const char c : text) append_utf8(out, points[static_cast<unsigned char>(c)]);
    return out;
}

std::vector<BpeMerge> train_bpe(std::size_t n_merges) {
    std::vector<Word> words = training_words();
    std::vector<std::string> texts;  // of symbols
    for (int byte = 0; byte < 256; ++byte)
        texts.push_back(to_byte_alphabet(std::string(1, static_cast<char>(byte))));
    std::vector<BpeMerge> merges;
    std::set<std::string> taken;
    while (merges.size() < n_merges) {
        const auto pair = best_pair(words, texts, taken);
        if (!pair) break;
        const auto merged = static_cast<std::uint32_t>(texts.size());
        for (Word& word : words) apply(*pair, merged, word);
        merges.push_back({texts[pair->first], texts[pair->second]});
        texts.push_back(merges.back().left + merges.back().right);
        taken.insert(texts.back());
    }
    return merges;
}

}  // namespace pantheon::test
