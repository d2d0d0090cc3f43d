#include "model/chat/python_text.h"

#include <array>
#include <charconv>
#include <cmath>
#include <nlohmann/json.hpp>

#include "model/tokenizer/unicode.h"
#include "model/tokenizer/utf8.h"

namespace pantheon::model {
namespace {

/// str.isspace: White_Space and the four information separators.
bool is_python_space(std::uint32_t c) {
    return (c >= 0x1C && c <= 0x1F) || char_class(c) == CharClass::white_space;
}

Error invalid(std::string message) {
    return Error(Code::invalid_argument, std::move(message));
}

void append_quoted(std::string& out, std::string_view text) {
    out += '"';
    for (const char c : text) {
        switch (c) {
            case '"':
                out += "\\\"";
                break;
            case '\\':
                out += "\\\\";
                break;
            case '\n':
                out += "\\n";
                break;
            case '\r':
                out += "\\r";
                break;
            case '\t':
                out += "\\t";
                break;
            case '\b':
                out += "\\b";
                break;
            case '\f':
                out += "\\f";
                break;
            default:
                if (static_cast<unsigned char>(c) < 0x20) {
                    constexpr char kHex[] = "0123456789abcdef";
                    out += "\\u00";
                    out += kHex[c >> 4];
                    out += kHex[c & 15];
                } else {
                    out += c;
                }
        }
    }
    out += '"';
}

class JsonWriter {
  public:
    Status write(const Json& value, int depth) {
        if (depth > kMaxJsonDepth)
            return invalid("nested more than " + std::to_string(kMaxJsonDepth) + " deep");
        switch (value.type()) {
            case Json::value_t::null:
                out_ += "null";
                return {};
            case Json::value_t::boolean:
                out_ += value.get<bool>() ? "true" : "false";
                return {};
            case Json::value_t::number_integer:
                out_ += std::to_string(value.get<std::int64_t>());
                return {};
            case Json::value_t::number_unsigned:
                out_ += std::to_string(value.get<std::uint64_t>());
                return {};
            case Json::value_t::number_float:
                write_float(value.get<double>());
                return {};
            case Json::value_t::string:
                return write_string(value.get_ref<const std::string&>());
            case Json::value_t::array:
                return write_array(value, depth);
            case Json::value_t::object:
                return write_object(value, depth);
            default:
                return invalid("is binary, which a prompt cannot hold");
        }
    }

    std::string take() { return std::move(out_); }

  private:
    void write_float(double x) {
        if (std::isnan(x))
            out_ += "NaN";
        else if (std::isinf(x))
            out_ += x > 0 ? "Infinity" : "-Infinity";
        else
            out_ += python_float(x);
    }

    Status write_string(const std::string& text) {
        if (!is_valid_utf8(text)) return invalid("is not valid UTF-8");
        append_quoted(out_, text);
        return {};
    }

    Status write_array(const Json& value, int depth) {
        out_ += '[';
        std::size_t i = 0;
        for (const Json& element : value) {
            if (i != 0) out_ += ", ";
            if (Status s = write(element, depth + 1); !s)
                return std::move(s).error().with_context("[" + std::to_string(i) + "]");
            ++i;
        }
        out_ += ']';
        return {};
    }

    Status write_object(const Json& value, int depth) {
        out_ += '{';
        bool is_first = true;
        for (const auto& [key, element] : value.items()) {
            if (!is_first) out_ += ", ";
            is_first = false;
            if (Status s = write_string(key); !s) return std::move(s).error().with_context("a key");
            out_ += ": ";
            if (Status s = write(element, depth + 1); !s)
                return std::move(s).error().with_context(clip_utf8(key, 40));
        }
        out_ += '}';
        return {};
    }

    std::string out_;
};

}  // namespace

std::size_t leading_space(std::string_view text) {
    if (text.empty()) return 0;
    std::size_t n_bytes;
    if (utf8_step(text, n_bytes) != Utf8Step::character) return 0;
    std::size_t end = 0;
    return is_python_space(next_code_point(text, end)) ? n_bytes : 0;
}

std::string_view trim(std::string_view text) {
    while (const std::size_t n = leading_space(text)) text.remove_prefix(n);
    while (!text.empty()) {
        std::size_t last = text.size() - 1;
        while (last > 0 && (static_cast<unsigned char>(text[last]) & 0xC0) == 0x80) --last;
        if (leading_space(text.substr(last)) != text.size() - last) break;
        text.remove_suffix(text.size() - last);
    }
    return text;
}

std::string python_float(double x) {
    if (std::isnan(x)) return "nan";
    if (std::isinf(x)) return x > 0 ? "inf" : "-inf";
    // The shortest digits, d.ddde±xx; then laid out as repr does: an exponent below −4 or from 16 on is
    // written out.
    std::array<char, 40> buffer;
    const auto end =
        std::to_chars(buffer.data(), buffer.data() + buffer.size(), x, std::chars_format::scientific).ptr;
    std::string_view text(buffer.data(), static_cast<std::size_t>(end - buffer.data()));
    std::string out;
    if (text[0] == '-') {
        out += '-';
        text.remove_prefix(1);
    }
    const std::size_t e = text.find('e');
    std::string digits(text.substr(0, 1));
    if (e > 2) digits += text.substr(2, e - 2);
    int exponent = 0;
    const std::string_view power = text.substr(text[e + 1] == '+' ? e + 2 : e + 1);
    std::from_chars(power.data(), power.data() + power.size(), exponent);

    const int n_digits = static_cast<int>(digits.size());
    if (exponent < -4 || exponent >= 16) {
        out += digits[0];
        if (n_digits > 1) out.append(".").append(digits, 1);
        out += exponent < 0 ? "e-" : "e+";
        const std::string magnitude = std::to_string(std::abs(exponent));
        if (magnitude.size() < 2) out += '0';
        return out += magnitude;
    }
    if (exponent < 0)
        return out.append("0.").append(static_cast<std::size_t>(-exponent - 1), '0').append(digits);
    const std::size_t n_whole = static_cast<std::size_t>(exponent) + 1;
    if (digits.size() <= n_whole) return out.append(digits).append(n_whole - digits.size(), '0').append(".0");
    return out.append(digits, 0, n_whole).append(".").append(digits, n_whole);
}

Result<std::string> python_json(const Json& value) {
    JsonWriter writer;
    if (Status s = writer.write(value, 1); !s) return std::move(s).error();
    return writer.take();
}

Result<std::string> python_str(const Json& value) {
    switch (value.type()) {
        case Json::value_t::string: {
            const auto& text = value.get_ref<const std::string&>();
            if (!is_valid_utf8(text)) return invalid("is not valid UTF-8");
            return text;
        }
        case Json::value_t::null:
            return std::string("None");
        case Json::value_t::boolean:
            return std::string(value.get<bool>() ? "True" : "False");
        case Json::value_t::number_float:
            return python_float(value.get<double>());
        default:
            return python_json(value);
    }
}

}  // namespace pantheon::model
