#include "model/chat/output_parser.h"

#include <algorithm>
#include <utility>

#include "model/chat/text_markers.h"
#include "model/chat/tool_call_reader.h"
#include "model/chat/tool_schema.h"

namespace pantheon::model {
namespace {

constexpr std::string_view kThinkEnd = "</think>";
constexpr std::string_view kToolCall = "<tool_call>";

enum class Phase { reasoning, content, stopped };

}  // namespace

/// Three stages, each a stream of its own: reasoning ends at a marker, what follows passes the stop strings,
/// and what they let through is split into content and tool calls.
struct OutputParser::Impl {
    explicit Impl(OutputParserConfig c)
        : config(std::move(c)),
          phase(config.starts_in_reasoning ? Phase::reasoning : Phase::content),
          strips_newlines(config.starts_in_reasoning),
          stops(config.stop),
          schemas(config.tools_json) {}

    void push(std::string_view text) {
        if (phase == Phase::reasoning) push_reasoning(text);
        if (phase != Phase::content) return;
        if (strips_newlines) {
            text.remove_prefix(std::min(text.find_first_not_of('\n'), text.size()));
            if (text.empty()) return;
            strips_newlines = false;
        }
        std::string passed;
        stop_match = stops.feed(text, passed);
        push_content(passed);
        if (stop_match) {
            finish_content();
            phase = Phase::stopped;
        }
    }

    void finish() {
        if (phase == Phase::reasoning) {
            std::string rest;
            think_end.end(rest);
            emit(OutputKind::reasoning, rest);
        } else if (phase == Phase::content) {
            std::string rest;
            stops.end(rest);
            push_content(rest);
            finish_content();
        }
        phase = Phase::stopped;
    }

    void push_reasoning(std::string_view& text) {
        std::string passed;
        const bool is_over = think_end.feed(text, passed);
        emit(OutputKind::reasoning, passed);
        if (is_over) phase = Phase::content;
    }

    void push_content(std::string_view text) {
        while (!text.empty()) {
            if (reader) {
                const std::string_view before = text;
                const bool is_whole = reader->feed(text);
                emit(OutputKind::tool_call, before.substr(0, before.size() - text.size()));
                if (is_whole) close_call();
                continue;
            }
            if (!config.parse_tool_calls) {
                emit(OutputKind::content, text);
                return;
            }
            std::string passed;
            const bool is_call = tool_call.feed(text, passed);
            emit(OutputKind::content, passed);
            if (!passed.empty()) is_after_call = false;
            if (!is_call) return;
            tool_call.drop_space();
            emit(OutputKind::tool_call, kToolCall);
            reader.emplace(schemas);
        }
    }

    void finish_content() {
        if (reader) {
            close_call();
            return;
        }
        std::string rest;
        tool_call.end(rest);
        if (!rest.empty()) is_after_call = false;
        if (!is_after_call) rest += tool_call.space();
        tool_call.drop_space();
        emit(OutputKind::content, rest);
    }

    void close_call() {
        for (ToolCall& call : reader->calls()) calls.push_back(std::move(call));
        reader.reset();
        is_after_call = true;
    }

    void emit(OutputKind kind, std::string_view text) {
        if (text.empty()) return;
        if (kind == OutputKind::content) content += text;
        if (kind == OutputKind::reasoning) reasoning += text;
        if (!pieces.empty() && pieces.back().kind == kind)
            pieces.back().text += text;
        else
            pieces.push_back({kind, std::string(text)});
    }

    std::vector<OutputPiece> take() { return std::exchange(pieces, {}); }

    OutputParserConfig config;
    Phase phase;
    bool strips_newlines;
    MarkerSearch think_end{kThinkEnd, /*drops_leading_space=*/true};
    StopSearch stops;
    MarkerSearch tool_call{kToolCall, /*drops_leading_space=*/false};
    ToolSchemas schemas;
    std::optional<ToolCallReader> reader;  // inside a block
    bool is_after_call = false;            // and nothing but white space has come since

    std::optional<std::string> stop_match;
    std::string content, reasoning;
    std::vector<ToolCall> calls;
    std::vector<OutputPiece> pieces;  // of the push under way
};

OutputParser::OutputParser(OutputParserConfig config) : impl_(std::make_unique<Impl>(std::move(config))) {}
OutputParser::~OutputParser() = default;
OutputParser::OutputParser(OutputParser&&) noexcept = default;

std::vector<OutputPiece> OutputParser::push(std::string_view text) {
    impl_->push(text);
    return impl_->take();
}

std::vector<OutputPiece> OutputParser::finish() {
    impl_->finish();
    return impl_->take();
}

const std::optional<std::string>& OutputParser::stop_match() const {
    return impl_->stop_match;
}
bool OutputParser::in_reasoning() const {
    return impl_->phase == Phase::reasoning;
}
const std::string& OutputParser::content() const {
    return impl_->content;
}
const std::string& OutputParser::reasoning() const {
    return impl_->reasoning;
}
std::vector<ToolCall> OutputParser::tool_calls() const {
    return impl_->calls;
}

}  // namespace pantheon::model
