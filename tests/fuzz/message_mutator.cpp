#include "tests/fuzz/message_mutator.h"

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <random>

namespace pantheon::fuzz {
namespace {

constexpr unsigned char kHeaders[] = {0x80, 0x8f, 0x90, 0x9f, 0xa0, 0xbf, 0xc0, 0xc1, 0xc2, 0xc4, 0xc5,
                                      0xc6, 0xc7, 0xc9, 0xca, 0xcb, 0xcc, 0xcf, 0xd0, 0xd3, 0xd4, 0xd8,
                                      0xd9, 0xda, 0xdb, 0xdc, 0xdd, 0xde, 0xdf, 0xe0, 0xff};

class Mutator {
  public:
    Mutator(const std::vector<std::string>& corpus, std::uint64_t seed) : corpus_(corpus), random_(seed) {}

    std::string run() {
        bytes_ = corpus_[below(corpus_.size())];
        for (std::size_t n = 1 + below(1 + below(6)); n > 0; --n) mutate();
        return std::move(bytes_);
    }

  private:
    // Not a std distribution: those may differ between standard libraries.
    std::size_t below(std::size_t n) { return static_cast<std::size_t>(random_() % n); }
    std::size_t place() { return below(bytes_.size()); }

    void mutate() {
        if (bytes_.empty()) bytes_.push_back('\x80');
        switch (below(8)) {
            case 0:
                bytes_[place()] ^= static_cast<char>(1u << below(8));
                break;
            case 1:
                bytes_[place()] = static_cast<char>(below(256));
                break;
            case 2:
                bytes_[place()] = static_cast<char>(kHeaders[below(std::size(kHeaders))]);
                break;
            case 3:
                bytes_.insert(place(), 1, static_cast<char>(below(256)));
                break;
            case 4:
                bytes_.erase(place(), 1 + below(8));
                break;
            case 5:
                bytes_.resize(place());
                break;
            case 6: {
                const std::size_t at = place();
                const std::string piece = bytes_.substr(at, 1 + below(40));
                bytes_.insert(at, piece);
                break;
            }
            case 7: {
                const std::string& other = corpus_[below(corpus_.size())];
                bytes_.resize(place());
                bytes_ += other.substr(below(other.size()));
                break;
            }
        }
    }

    const std::vector<std::string>& corpus_;
    std::mt19937_64 random_;
    std::string bytes_;
};

}  // namespace

std::vector<std::string> message_corpus() {
    std::vector<std::filesystem::path> files;
    for (const auto& entry :
         std::filesystem::directory_iterator(PANTHEON_SOURCE_DIR "/tests/fuzz/message_corpus"))
        files.push_back(entry.path());
    std::sort(files.begin(), files.end());
    std::vector<std::string> corpus;
    for (const auto& file : files) {
        std::ifstream in(file, std::ios::binary);
        corpus.emplace_back(std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>());
    }
    return corpus;
}

std::string mutated_message(const std::vector<std::string>& corpus, std::uint64_t seed) {
    return Mutator(corpus, seed).run();
}

}  // namespace pantheon::fuzz
