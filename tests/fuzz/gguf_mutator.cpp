#include "tests/fuzz/gguf_mutator.h"

#include <algorithm>
#include <cstring>
#include <fstream>
#include <iterator>
#include <stdexcept>

#include "tests/support/gguf_writer.h"
#include "tests/support/temp_dir.h"
#include "tests/tools/make_model/model_writer.h"
#include "tests/tools/make_model/random_bits.h"

namespace pantheon::fuzz {
namespace {

using test::GgufTyped;
using test::GgufWriter;
using test::RandomBits;

/// Walks the head of a file that is known to be valid and notes where its numbers are.
class HeadWalker {
  public:
    explicit HeadWalker(GgufSeed& seed) : seed_(seed) {}

    void walk() {
        number(4);  // magic
        number(4);
        const std::uint64_t n_tensors = number(8), n_entries = number(8);
        for (std::uint64_t i = 0; i < n_entries; ++i) {
            string();
            value(number(4));
        }
        for (std::uint64_t i = 0; i < n_tensors; ++i) {
            string();
            const std::uint64_t n_dims = number(4);
            for (std::uint64_t d = 0; d < n_dims; ++d) number(8);
            number(4);
            number(8);
        }
        seed_.head_bytes = at_;
    }

  private:
    std::uint64_t number(std::size_t width) {
        std::uint64_t v = 0;
        if (at_ + width > seed_.bytes.size()) throw std::logic_error(seed_.name + ": not a valid seed");
        std::memcpy(&v, seed_.bytes.data() + at_, width);
        seed_.numbers.push_back({at_, width});
        at_ += width;
        return v;
    }

    void string() { at_ += number(8); }

    void value(std::uint64_t type) {
        constexpr std::size_t kWidths[] = {1, 1, 2, 2, 4, 4, 4, 1, 0, 0, 8, 8, 8};
        if (type == 8) return string();
        if (type != 9) {
            at_ += kWidths[type];
            return;
        }
        const std::uint64_t element = number(4), count = number(8);
        const std::size_t n_known = seed_.numbers.size();
        for (std::uint64_t i = 0; i < count; ++i) value(element);
        // The lengths of thousands of vocabulary entries would drown the other numbers.
        constexpr std::size_t kKept = 8;
        if (seed_.numbers.size() > n_known + kKept) seed_.numbers.resize(n_known + kKept);
    }

    GgufSeed& seed_;
    std::size_t at_ = 0;
};

GgufSeed make_seed(std::string name, std::string bytes) {
    GgufSeed seed{std::move(name), std::move(bytes), 0, {}};
    HeadWalker(seed).walk();
    return seed;
}

std::string read_file(const std::string& path) {
    std::ifstream in(path, std::ios::binary);
    return {std::istreambuf_iterator<char>(in), {}};
}

test::ModelSpec small_model() {
    test::ModelSpec spec;
    test::ModelShape& s = spec.shape;
    s.n_embd = 32;
    s.n_layer = 2;
    s.interval = 2;
    s.n_head = 2;
    s.n_head_kv = 1;
    s.head_dim = 16;
    s.rope_dim = 8;
    s.gdn_n_head_k = 1;
    s.gdn_n_head_v = 2;
    s.gdn_head_dim = 16;
    s.n_expert = 2;
    s.n_expert_used = 1;
    s.n_ff_exp = 32;
    s.n_ff_shexp = 32;
    s.n_vocab = 289;
    spec.mix = "F32";
    return spec;
}

GgufWriter every_value_type() {
    GgufWriter writer(2, 8);
    writer.kv("u8", GgufTyped::u8(1));
    writer.kv("i8", GgufTyped::i8(-1));
    writer.kv("u16", GgufTyped::u16(2));
    writer.kv("i16", GgufTyped::i16(-2));
    writer.kv("u32", GgufTyped::u32(3));
    writer.kv("i32", GgufTyped::i32(-3));
    writer.kv("u64", GgufTyped::u64(4));
    writer.kv("i64", GgufTyped::i64(-4));
    writer.kv("f32", GgufTyped::f32(0.5f));
    writer.kv("f64", GgufTyped::f64(0.25));
    writer.kv("bool", GgufTyped::boolean(true));
    writer.kv("string", GgufTyped::string("text"));
    const std::vector<std::string> words = {"one", "", "three"};
    writer.kv("strings", GgufTyped::strings(words));
    struct NumberType {
        std::uint32_t id;
        std::size_t width;
    };
    constexpr NumberType kNumberTypes[] = {{0, 1}, {1, 1}, {2, 2},  {3, 2},  {4, 4}, {5, 4},
                                           {6, 4}, {7, 1}, {10, 8}, {11, 8}, {12, 8}};
    for (const NumberType& type : kNumberTypes) {
        const std::string key = std::string("array.") + std::to_string(type.id);
        writer.kv(key, GgufTyped::array(type.id, 3, std::string(3 * type.width, '\1')));
    }
    writer.tensor("a", 12, {256, 2}, std::string(288, 'a'));
    writer.tensor("b", 1, {3, 2, 2}, std::string(24, 'b'));
    return writer;
}

std::uint64_t interesting_number(RandomBits& random, std::uint64_t now, std::uint64_t file_bytes) {
    const std::uint64_t kNumbers[] = {0,
                                      1,
                                      2,
                                      4,
                                      5,
                                      13,
                                      40,
                                      255,
                                      ~0ull,
                                      ~0ull >> 1,
                                      1ull << 63,
                                      1ull << 62,
                                      1ull << 40,
                                      1ull << 32,
                                      1ull << 31,
                                      1ull << 30,
                                      file_bytes,
                                      now + 1,
                                      now - 1,
                                      now * 2,
                                      now / 2,
                                      now + 32,
                                      now - 32,
                                      ~now,
                                      now << 32,
                                      random.next(),
                                      random.next() & 0xFF,
                                      random.next() & 0xFFFF};
    return kNumbers[random.next() % std::size(kNumbers)];
}

class Mutator {
  public:
    Mutator(const GgufSeed& seed, std::uint64_t number) : seed_(seed), bytes_(seed.bytes), random_(number) {}

    std::string run() {
        for (std::uint64_t n = 1 + random_.next() % 3; n > 0; --n) mutate();
        return std::move(bytes_);
    }

  private:
    /// A position, mostly in the head, where there is more to break.
    std::size_t position() {
        const std::size_t head = std::min(seed_.head_bytes, bytes_.size());
        const std::size_t n = random_.next() % 4 != 0 && head > 0 ? head : bytes_.size();
        return n == 0 ? 0 : random_.next() % n;
    }
    std::size_t piece_from(std::size_t at) {
        return std::min<std::size_t>(bytes_.size() - at,
                                     1 + random_.next() % (random_.next() % 2 ? 16 : 4096));
    }
    const NumberField* number_field() {
        if (seed_.numbers.empty()) return nullptr;
        const NumberField& f = seed_.numbers[random_.next() % seed_.numbers.size()];
        return f.at + f.width <= bytes_.size() ? &f : nullptr;
    }

    void set_number() {
        const NumberField* f = number_field();
        if (!f) return;
        std::uint64_t v = 0;
        std::memcpy(&v, bytes_.data() + f->at, f->width);
        v = interesting_number(random_, v, bytes_.size());
        std::memcpy(bytes_.data() + f->at, &v, f->width);
    }

    void swap_numbers() {
        const NumberField *a = number_field(), *b = number_field();
        if (!a || !b || a->width != b->width || a == b) return;
        std::swap_ranges(bytes_.begin() + static_cast<std::ptrdiff_t>(a->at),
                         bytes_.begin() + static_cast<std::ptrdiff_t>(a->at + a->width),
                         bytes_.begin() + static_cast<std::ptrdiff_t>(b->at));
    }

    void mutate() {
        if (bytes_.empty()) return;
        const std::size_t at = position();
        switch (random_.next() % 12) {
            case 0:
            case 1:
                bytes_[at] = static_cast<char>(bytes_[at] ^ 1 << random_.next() % 8);
                break;
            case 2:
                bytes_[at] = static_cast<char>(random_.next());
                break;
            case 3:
                bytes_.resize(at);
                break;
            case 4:
                bytes_.erase(at, piece_from(at));
                break;
            case 5:
                bytes_.insert(at, std::string(bytes_, at, piece_from(at)));
                break;
            case 6:
                bytes_.append(1 + random_.next() % 64, static_cast<char>(random_.next()));
                break;
            case 7:
                swap_numbers();
                break;
            default:
                set_number();
                break;
        }
    }

    const GgufSeed& seed_;
    std::string bytes_;
    RandomBits random_;
};

}  // namespace

std::vector<GgufSeed> gguf_seeds() {
    const test::TempDir dir;
    std::vector<GgufSeed> seeds;
    auto add_model = [&](const char* name, const test::ModelSpec& spec) {
        write_model(spec, dir.file(name));
        seeds.push_back(make_seed(name, read_file(dir.file(name))));
    };
    test::ModelSpec spec = small_model();
    add_model("floats.gguf", spec);
    spec.mix = "Q4_0";
    spec.shape.nextn = test::Nextn::present;
    spec.shape.is_tied = true;
    spec.version = 2;
    spec.alignment = 64;
    add_model("quantised.gguf", spec);
    seeds.push_back(make_seed("values.gguf", every_value_type().to_bytes()));
    return seeds;
}

std::vector<GgufSeed> gguf_split_seeds() {
    const test::TempDir dir;
    test::ModelSpec spec = small_model();
    spec.n_files = 2;
    std::vector<GgufSeed> seeds;
    for (const std::string& path : write_model(spec, dir.file("split.gguf")).paths)
        seeds.push_back(make_seed(path.substr(path.rfind('/') + 1), read_file(path)));
    return seeds;
}

std::string mutated_gguf(const GgufSeed& seed, std::uint64_t number) {
    return Mutator(seed, number).run();
}

}  // namespace pantheon::fuzz
