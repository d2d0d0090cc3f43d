#include "model/chat/tool_call_reader.h"

#include <algorithm>
#include <array>

#include "model/chat/python_text.h"

namespace pantheon::model {
namespace {

constexpr std::string_view kFunction = "<function=";
constexpr std::string_view kFunctionEnd = "</function>";
constexpr std::string_view kParameter = "<parameter=";
constexpr std::string_view kParameterEnd = "</parameter>";
constexpr std::string_view kCallEnd = "</tool_call>";

/// White space that is looked past to tell whether </parameter> on the same line as its value ends it.
constexpr std::size_t kLookAhead = 64;

std::string object_of(const std::vector<std::pair<std::string, std::string>>& parameters) {
    std::string out = "{";
    for (const auto& [key, value] : parameters) {
        if (out.size() > 1) out += ", ";
        out += quote_json(key);
        out += ": ";
        out += value;
    }
    return out += '}';
}

bool is_prefix_of(std::string_view text, std::string_view tag) {
    return tag.starts_with(text);
}

}  // namespace

bool ToolCallReader::feed(std::string_view& text) {
    buffer_.erase(0, consumed_);
    consumed_ = 0;
    buffer_ += text;
    while (state_ != State::done && step()) {
    }
    if (state_ != State::done) {
        text = {};
        return false;
    }
    // The block's last byte came just now, so what is left of the buffer is the end of `text`.
    text.remove_prefix(text.size() - std::min(rest().size(), text.size()));
    return true;
}

bool ToolCallReader::step() {
    switch (state_) {
        case State::before_function:
        case State::before_parameter:
            return step_tag();
        case State::function_name:
            return step_name(State::before_parameter);
        case State::parameter_name:
            return step_name(State::value);
        case State::value:
            return step_value();
        case State::malformed: {
            const std::size_t end = rest().find(kCallEnd, scanned_);
            if (end == std::string::npos) {
                scanned_ = rest().size() - std::min(rest().size(), kCallEnd.size() - 1);
                return false;
            }
            consume(end + kCallEnd.size());
            state_ = State::done;
            return true;
        }
        case State::done:
            return false;
    }
    return false;
}

/// Between constructs: white space, then one of the tags that may come here.
bool ToolCallReader::step_tag() {
    std::size_t n_space = 0;
    while (const std::size_t n = leading_space(rest().substr(n_space))) n_space += n;
    consume(n_space);
    struct Way {
        std::string_view tag;
        State next;
    };
    const std::array<Way, 3> outside = {{{kFunction, State::function_name}, {kCallEnd, State::done}, {}}};
    const std::array<Way, 3> inside = {{{kParameter, State::parameter_name},
                                        {kFunctionEnd, State::before_function},
                                        {kCallEnd, State::done}}};
    bool needs_more = false;
    for (const Way& way : is_open_ ? inside : outside) {
        if (way.tag.empty()) continue;
        if (!rest().starts_with(way.tag)) {
            needs_more = needs_more || is_prefix_of(rest(), way.tag);
            continue;
        }
        consume(way.tag.size());
        // A block that ends before anything was called is no call.
        if (way.next == State::done && !is_open_ && calls_.empty()) calls_.push_back({"", "{}", true});
        if (is_open_ && way.next != State::parameter_name) close_call();
        state_ = way.next;
        return true;
    }
    if (!needs_more) {
        state_ = State::malformed;
        return true;
    }
    return false;
}

/// A name up to '>' on the same line.
bool ToolCallReader::step_name(State next) {
    const std::size_t end = rest().find_first_of(">\n", scanned_);
    if (end == std::string::npos) {
        scanned_ = rest().size();
        return false;
    }
    if (rest()[end] == '\n') {
        state_ = State::malformed;
        scanned_ = 0;
        return true;
    }
    std::string name = std::string(rest().substr(0, end));
    consume(end + 1);
    if (state_ == State::function_name) {
        name_ = std::move(name);
        is_open_ = true;
    } else {
        key_ = std::move(name);
    }
    state_ = next;
    return true;
}

bool ToolCallReader::step_value() {
    for (;;) {
        const std::size_t tag = rest().find(kParameterEnd, scanned_);
        if (tag == std::string::npos) {
            const std::size_t tail = std::min(rest().size(), kParameterEnd.size() - 1);
            scanned_ = std::max(scanned_, rest().size() - tail);
            return false;
        }
        scanned_ = tag;
        bool needs_more = false;
        if (is_value_end(tag, needs_more)) {
            add_parameter(rest().substr(0, tag));
            consume(tag + kParameterEnd.size());
            state_ = State::before_parameter;
            return true;
        }
        if (needs_more) return false;
        scanned_ = tag + 1;
    }
}

/// The template puts </parameter> on its own line. One at the end of a line of text ends the value only if a
/// tag that can follow it does; else it is part of the value.
bool ToolCallReader::is_value_end(std::size_t tag, bool& needs_more) const {
    if (tag == 0 || rest()[tag - 1] == '\n') return true;
    std::string_view next = rest().substr(tag + kParameterEnd.size());
    for (std::size_t n = 0; n < kLookAhead; ++n) {
        const std::size_t space = leading_space(next);
        if (space == 0) break;
        next.remove_prefix(space);
    }
    if (leading_space(next) != 0) return false;
    if (next.starts_with(kParameter) || next.starts_with(kFunctionEnd)) return true;
    needs_more = is_prefix_of(next, kParameter) || is_prefix_of(next, kFunctionEnd);
    return false;
}

void ToolCallReader::add_parameter(std::string_view text) {
    if (text.starts_with('\n')) text.remove_prefix(1);
    if (text.ends_with('\n')) text.remove_suffix(1);
    std::string value = schemas_->to_json(name_, key_, text);
    const auto [it, is_new] = positions_.emplace(key_, parameters_.size());
    if (is_new)
        parameters_.emplace_back(key_, std::move(value));
    else
        parameters_[it->second].second = std::move(value);
}

void ToolCallReader::close_call() {
    calls_.push_back({std::move(name_), object_of(parameters_), false});
    name_.clear();
    parameters_.clear();
    positions_.clear();
    is_open_ = false;
}

void ToolCallReader::consume(std::size_t n_bytes) {
    consumed_ += n_bytes;
    scanned_ = 0;
}

std::vector<ToolCall> ToolCallReader::calls() const {
    std::vector<ToolCall> result = calls_;
    if (is_open_)
        result.push_back({name_, object_of(parameters_), true});
    else if (result.empty())
        result.push_back({"", "{}", true});
    return result;
}

}  // namespace pantheon::model
