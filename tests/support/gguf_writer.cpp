#include "tests/support/gguf_writer.h"

#include <algorithm>
#include <cstdio>
#include <memory>
#include <stdexcept>

namespace pantheon::test {
namespace {

constexpr std::uint32_t kMagic = 0x46554747;  // "GGUF"

enum TypeId : std::uint32_t {
    kU8 = 0,
    kI8 = 1,
    kU16 = 2,
    kI16 = 3,
    kU32 = 4,
    kI32 = 5,
    kF32 = 6,
    kBool = 7,
    kString = 8,
    kArray = 9,
    kU64 = 10,
    kI64 = 11,
    kF64 = 12,
};

template <class T>
GgufTyped number(std::uint32_t type, T value) {
    GgufTyped typed{type, {}};
    append_number(typed.bytes, value);
    return typed;
}

template <class T>
GgufTyped numbers(std::uint32_t type, std::span<const T> values) {
    std::string elements(reinterpret_cast<const char*>(values.data()), values.size_bytes());
    return GgufTyped::array(type, values.size(), std::move(elements));
}

std::uint64_t padded(std::uint64_t n, std::uint64_t alignment) {
    return (n + alignment - 1) / alignment * alignment;
}

/// Counts what passes, so that a data function which writes too little or too much is caught.
class CountingSink : public ByteSink {
  public:
    explicit CountingSink(ByteSink& to) : to_(to) {}
    void write(const void* data, std::size_t n_bytes) override {
        to_.write(data, n_bytes);
        n_bytes_ += n_bytes;
    }
    std::uint64_t n_bytes() const { return n_bytes_; }

  private:
    ByteSink& to_;
    std::uint64_t n_bytes_ = 0;
};

class StringSink : public ByteSink {
  public:
    void write(const void* data, std::size_t n_bytes) override {
        bytes.append(static_cast<const char*>(data), n_bytes);
    }
    std::string bytes;
};

class FileSink : public ByteSink {
  public:
    explicit FileSink(const std::string& path)
        : path_(path), file_(std::fopen(path.c_str(), "wb"), std::fclose) {
        if (!file_) throw std::runtime_error(path + ": cannot be created");
        std::setvbuf(file_.get(), nullptr, _IOFBF, 1 << 20);
    }
    void write(const void* data, std::size_t n_bytes) override {
        if (std::fwrite(data, 1, n_bytes, file_.get()) != n_bytes)
            throw std::runtime_error(path_ + ": write failed");
    }
    void close() {
        if (std::fclose(file_.release()) != 0) throw std::runtime_error(path_ + ": write failed");
    }

  private:
    std::string path_;
    std::unique_ptr<std::FILE, int (*)(std::FILE*)> file_;
};

void write_padding(ByteSink& sink, std::uint64_t from, std::uint64_t to) {
    constexpr char kZeros[4096] = {};
    while (from < to) {
        const std::uint64_t n = std::min<std::uint64_t>(to - from, sizeof kZeros);
        sink.write(kZeros, n);
        from += n;
    }
}

}  // namespace

void append_string(std::string& out, std::string_view text) {
    append_number<std::uint64_t>(out, text.size());
    out += text;
}

GgufTyped GgufTyped::u8(std::uint8_t v) {
    return number(kU8, v);
}
GgufTyped GgufTyped::i8(std::int8_t v) {
    return number(kI8, v);
}
GgufTyped GgufTyped::u16(std::uint16_t v) {
    return number(kU16, v);
}
GgufTyped GgufTyped::i16(std::int16_t v) {
    return number(kI16, v);
}
GgufTyped GgufTyped::u32(std::uint32_t v) {
    return number(kU32, v);
}
GgufTyped GgufTyped::i32(std::int32_t v) {
    return number(kI32, v);
}
GgufTyped GgufTyped::u64(std::uint64_t v) {
    return number(kU64, v);
}
GgufTyped GgufTyped::i64(std::int64_t v) {
    return number(kI64, v);
}
GgufTyped GgufTyped::f32(float v) {
    return number(kF32, v);
}
GgufTyped GgufTyped::f64(double v) {
    return number(kF64, v);
}
GgufTyped GgufTyped::boolean(bool v) {
    return number<std::uint8_t>(kBool, v ? 1 : 0);
}

GgufTyped GgufTyped::string(std::string_view v) {
    GgufTyped typed{kString, {}};
    append_string(typed.bytes, v);
    return typed;
}

GgufTyped GgufTyped::strings(std::span<const std::string> v) {
    std::string elements;
    for (const std::string& text : v) append_string(elements, text);
    return array(kString, v.size(), std::move(elements));
}

GgufTyped GgufTyped::i32s(std::span<const std::int32_t> v) {
    return numbers(kI32, v);
}
GgufTyped GgufTyped::f32s(std::span<const float> v) {
    return numbers(kF32, v);
}

GgufTyped GgufTyped::array(std::uint32_t element_type, std::uint64_t count, std::string elements) {
    GgufTyped typed{kArray, {}};
    append_number(typed.bytes, element_type);
    append_number(typed.bytes, count);
    typed.bytes += elements;
    return typed;
}

GgufWriter::GgufWriter(std::uint32_t version, std::uint32_t alignment)
    : version_(version), alignment_(alignment) {
    if (alignment != 32) kv("general.alignment", GgufTyped::u32(alignment));
}

void GgufWriter::tensor(std::string name, std::uint32_t type, std::vector<std::int64_t> ne,
                        std::string data) {
    const std::uint64_t n_bytes = data.size();
    tensor({std::move(name), type, std::move(ne), n_bytes,
            [data = std::move(data)](ByteSink& sink) { sink.write(data.data(), data.size()); },
            std::nullopt});
}

void GgufWriter::f32_tensor(std::string name, std::vector<std::int64_t> ne, std::span<const float> data) {
    tensor(std::move(name), 0, std::move(ne),
           std::string(reinterpret_cast<const char*>(data.data()), data.size_bytes()));
}

void GgufWriter::write(ByteSink& to) const {
    CountingSink sink(to);
    std::string head;
    append_number(head, magic.value_or(kMagic));
    append_number(head, version_);
    append_number(head, claimed_tensors.value_or(static_cast<std::int64_t>(tensors_.size())));
    append_number(head, claimed_entries.value_or(static_cast<std::int64_t>(entries_.size())));
    for (const auto& [key, value] : entries_) {
        append_string(head, key);
        append_number(head, value.type);
        head += value.bytes;
    }
    std::uint64_t offset = 0;
    for (const Tensor& t : tensors_) {
        append_string(head, t.name);
        append_number(head, static_cast<std::uint32_t>(t.ne.size()));
        for (const std::int64_t ne : t.ne) append_number(head, ne);
        append_number(head, t.type);
        append_number(head, t.offset.value_or(offset));
        offset += padded(t.n_bytes, alignment_);
    }
    sink.write(head.data(), head.size());
    for (const Tensor& t : tensors_) {
        write_padding(sink, sink.n_bytes(), padded(sink.n_bytes(), alignment_));
        const std::uint64_t start = sink.n_bytes();
        t.data(sink);
        if (sink.n_bytes() - start != t.n_bytes)
            throw std::logic_error(t.name + ": data function wrote another size");
    }
    if (!trims_tail) write_padding(sink, sink.n_bytes(), padded(sink.n_bytes(), alignment_));
}

std::string GgufWriter::to_bytes() const {
    StringSink sink;
    write(sink);
    return std::move(sink.bytes);
}

void GgufWriter::write_file(const std::string& path) const {
    FileSink sink(path);
    write(sink);
    sink.close();
}

std::vector<std::string> GgufWriter::write_split(const std::string& prefix, int n_files) const {
    std::vector<std::string> paths;
    const auto n = static_cast<std::size_t>(n_files);
    for (std::size_t i = 0; i < n; ++i) {
        GgufWriter part(version_, alignment_);
        if (i == 0) part.entries_ = entries_;
        part.kv("split.no", GgufTyped::u16(static_cast<std::uint16_t>(i)));
        part.kv("split.count", GgufTyped::u16(static_cast<std::uint16_t>(n)));
        part.kv("split.tensors.count", GgufTyped::i32(static_cast<std::int32_t>(tensors_.size())));
        const auto first = static_cast<std::ptrdiff_t>(tensors_.size() * i / n);
        const auto last = static_cast<std::ptrdiff_t>(tensors_.size() * (i + 1) / n);
        part.tensors_.assign(tensors_.begin() + first, tensors_.begin() + last);
        char ending[40];
        std::snprintf(ending, sizeof ending, "-%05d-of-%05d.gguf", static_cast<int>(i + 1), n_files);
        paths.push_back(prefix + ending);
        part.write_file(paths.back());
    }
    return paths;
}

}  // namespace pantheon::test
