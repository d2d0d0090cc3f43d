#include "model/chat/output_parser.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <random>
#include <string>
#include <vector>

#include "model/chat/chat_template.h"
#include "model/chat/python_text.h"
#include "model/chat/text_markers.h"
#include "tests/model/tokenizer/small_vocabulary.h"

namespace pantheon::model {
namespace {

const char* const kTools = R"([{"type": "function", "function": {"name": "f", "parameters": {"type": "object",
    "properties": {"s": {"type": "string"}, "i": {"type": "integer"}, "b": {"type": "boolean"}, "n": {"type": "number"},
    "o": {"type": "object"}, "a": {"type": "array"}, "m": {"type": ["string", "null"]}, "e": {"enum": ["1", "2"]},
    "u": {"anyOf": [{"type": "integer"}, {"type": "null"}]}, "any": {}}}}}, {"name": "g"}])";

OutputParserConfig with(bool reasoning, bool tools, std::vector<std::string> stop = {}) {
    OutputParserConfig c;
    c.starts_in_reasoning = reasoning;
    c.parse_tool_calls = tools;
    if (tools) c.tools_json = kTools;
    c.stop = std::move(stop);
    return c;
}

/// All that can be observed, with the pieces joined by kind.
struct Outcome {
    std::string content, reasoning, tool_text, stop;
    std::vector<std::string> calls;  // "f{"a": 1}", with "…" behind an incomplete one
    friend bool operator==(const Outcome&, const Outcome&) = default;
};

void PrintTo(const Outcome& o, std::ostream* out) {
    *out << "content <" << o.content << "> reasoning <" << o.reasoning << "> tool_text <" << o.tool_text
         << "> stop <" << o.stop << "> calls " << testing::PrintToString(o.calls);
}

class Recorder {
  public:
    explicit Recorder(const OutputParserConfig& config) : parser_(config) {}

    void push(std::string_view text) { take(parser_.push(text)); }
    Outcome finish() {
        take(parser_.finish());
        EXPECT_EQ(outcome_.content, parser_.content());
        EXPECT_EQ(outcome_.reasoning, parser_.reasoning());
        outcome_.stop = parser_.stop_match().value_or("");
        for (const ToolCall& call : parser_.tool_calls()) {
            EXPECT_TRUE(Json::accept(call.arguments_json)) << call.arguments_json;
            outcome_.calls.push_back(call.name + call.arguments_json + (call.is_incomplete ? "…" : ""));
        }
        return outcome_;
    }
    OutputParser& parser() { return parser_; }

  private:
    void take(const std::vector<OutputPiece>& pieces) {
        for (const OutputPiece& piece : pieces) {
            EXPECT_FALSE(piece.text.empty());
            (piece.kind == OutputKind::content     ? outcome_.content
             : piece.kind == OutputKind::reasoning ? outcome_.reasoning
                                                   : outcome_.tool_text) += piece.text;
        }
    }
    OutputParser parser_;
    Outcome outcome_;
};

std::vector<std::string> characters(std::string_view text) {
    std::vector<std::string> result;
    while (!text.empty()) {
        result.emplace_back(first_character(text));
        text.remove_prefix(result.back().size());
    }
    return result;
}

Outcome whole(const OutputParserConfig& config, std::string_view text) {
    Recorder run(config);
    run.push(text);
    return run.finish();
}

/// Parses whole, character by character and, when short, for every set of cuts; all must agree.
Outcome parse(const OutputParserConfig& config, std::string_view text) {
    const Outcome expected = whole(config, text);
    const std::vector<std::string> chars = characters(text);
    const std::size_t n_ways = chars.size() <= 11 ? std::size_t{1} << chars.size() : 20;
    std::mt19937 random(1);
    for (std::size_t way = 0; way < n_ways; ++way) {
        Recorder run(config);
        std::string part;
        const auto one_in = static_cast<unsigned>(1 + way % 9);
        for (std::size_t i = 0; i < chars.size(); ++i) {
            part += chars[i];
            const bool is_cut = chars.size() <= 11 ? (way >> i & 1) != 0 : random() % one_in == 0;
            if (!is_cut) continue;
            run.push(part);
            part.clear();
        }
        run.push(part);
        EXPECT_EQ(run.finish(), expected) << text;
    }
    return expected;
}

std::string call_text(const std::string& body) {
    return "<tool_call>\n<function=f>\n" + body + "</function>\n</tool_call>";
}
std::string parameter(const std::string& key, const std::string& value) {
    return "<parameter=" + key + ">\n" + value + "\n</parameter>\n";
}

TEST(OutputParser, ReasoningEndsAtTheFirstCloseAndIsTrimmed) {
    struct Case {
        const char* text;
        const char* reasoning;
        const char* content;
    };
    constexpr Case kCases[] = {
        {"\nab c\n</think>\n\nhi", "ab c", "hi"},
        {" a </think> b", "a", " b"},
        {"a</think>b</think>c", "a", "b</think>c"},
        {"</think>\n\nx", "", "x"},
        {" \n</think>\n\n", "", ""},
        {"a </thi", "a </thi", ""},
        {"a<<</think>x", "a<<", "x"},
        {"a</think</think>x", "a</think", "x"},
        {"only \n", "only", ""},
        {"\u3000é \u00a0z\u3000</think>\n \n", "é \u00a0z", " \n"},
        {"", "", ""},
    };
    for (const Case& c : kCases) {
        const Outcome o = parse(with(true, false), c.text);
        EXPECT_EQ(o.reasoning, c.reasoning) << c.text;
        EXPECT_EQ(o.content, c.content) << c.text;
    }
}

TEST(OutputParser, WithoutReasoningEverythingIsContent) {
    EXPECT_EQ(parse(with(false, false), "\n a<think>b</think> ").content, "\n a<think>b</think> ");
    const std::string call = call_text("");
    EXPECT_EQ(parse(with(false, false), "x " + call).content, "x " + call);
    EXPECT_TRUE(parse(with(false, false), call).calls.empty());
}

TEST(OutputParser, SaysWhetherItIsInReasoning) {
    Recorder run(with(true, false));
    EXPECT_TRUE(run.parser().in_reasoning());
    run.push("a</thin");
    EXPECT_TRUE(run.parser().in_reasoning());
    run.push("k>");
    EXPECT_FALSE(run.parser().in_reasoning());
}

TEST(OutputParser, StreamsTextAsSoonAsItIsKnown) {
    OutputParser p(with(true, true, {"STOP"}));
    const auto only = [](const std::vector<OutputPiece>& pieces) {
        return pieces.size() == 1 ? pieces[0].text : "?";
    };
    EXPECT_EQ(only(p.push("\nab ")), "ab");
    EXPECT_EQ(only(p.push("c</")), " c");
    EXPECT_TRUE(p.push("think>\n").empty());
    EXPECT_EQ(only(p.push("\nhi ST")), "hi");
    EXPECT_EQ(only(p.push("x")), " STx");
    EXPECT_TRUE(p.push("\n\n<tool").empty());
    EXPECT_EQ(only(p.push("_call>\n<fun")), "<tool_call>\n<fun");
    EXPECT_EQ(only(p.push("ction=f>")), "ction=f>");
}

TEST(OutputParser, AStopStringIsNoPartOfTheText) {
    struct Case {
        std::vector<std::string> stop;
        const char* text;
        const char* content;
        const char* match;
    };
    const Case kCases[] = {
        {{"END"}, "abEND", "ab", "END"},
        {{"END"}, "abENx", "abENx", ""},
        {{"END"}, "abEN", "abEN", ""},
        {{"ab"}, "aab rest", "a", "ab"},
        {{"aab"}, "aaab", "a", "aab"},
        {{"abcd", "bc"}, "abcd", "a", "bc"},  // the first to end
        {{"bc", "abc"}, "abc", "", "abc"},    // the longest of those that end together
        {{"abac", "bab"}, "abab", "a", "bab"},
        {{"\n\n"}, "a\n\nb", "a", "\n\n"},
        {{"é", ""}, "aéb", "a", "é"},
        {{"x"}, "x", "", "x"},
        {{"<tool_call>"}, "a <tool_call>", "a ", "<tool_call>"},
        {{}, "abEND", "abEND", ""},
    };
    for (const Case& c : kCases) {
        for (const bool tools : {false, true}) {
            const Outcome o = parse(with(false, tools, c.stop), c.text);
            EXPECT_EQ(o.content, c.content) << c.text;
            EXPECT_EQ(o.stop, c.match) << c.text;
        }
    }
}

TEST(OutputParser, StopStringsAreNotLookedForInReasoningNorInTheNewlinesAfterIt) {
    const Outcome o = parse(with(true, false, {"\n\n", "no"}), "no\n\nno</think>\n\nyes\n\nz");
    EXPECT_EQ(o.reasoning, "no\n\nno");
    EXPECT_EQ(o.content, "yes");
    EXPECT_EQ(o.stop, "\n\n");
}

TEST(OutputParser, IgnoresWhatComesAfterAStop) {
    Recorder run(with(false, true, {"!"}));
    run.push("a!b");
    run.push("c");
    const Outcome o = run.finish();
    EXPECT_EQ(o.content, "a");
    EXPECT_EQ(o.stop, "!");
}

TEST(OutputParser, ReadsToolCallsAndDropsTheSpaceAroundThem) {
    const std::string first = call_text(parameter("s", "x\ny") + parameter("i", "3"));
    const std::string second = call_text("");
    const Outcome o = parse(with(true, true), "r</think>\n\nLet me look.\n\n" + first + "\n" + second + "\n");
    EXPECT_EQ(o.reasoning, "r");
    EXPECT_EQ(o.content, "Let me look.");
    EXPECT_EQ(o.tool_text, first + second);
    EXPECT_EQ(o.calls, (std::vector<std::string>{R"(f{"s": "x\ny", "i": 3})", "f{}"}));
    EXPECT_EQ(parse(with(false, true), "a " + second + " \n b ").content, "a \n b ");
    EXPECT_EQ(parse(with(false, true), "a \n").content, "a \n");
    EXPECT_EQ(parse(with(false, true), "a <tool").content, "a <tool");
}

TEST(OutputParser, DoesNotExecuteACallInReasoning) {
    const std::string call = call_text("");
    const Outcome o = parse(with(true, true), call + "</think>\n\nhi");
    EXPECT_TRUE(o.calls.empty());
    EXPECT_EQ(o.reasoning, call);
    EXPECT_EQ(o.content, "hi");
}

TEST(OutputParser, ArgumentsAreTypedByTheSchema) {
    struct Case {
        const char* key;
        const char* text;
        const char* json;
    };
    constexpr Case kCases[] = {
        {"s", "5", "\"5\""},
        {"s", "true", "\"true\""},
        {"s", "", "\"\""},
        {"s", "\n a \n", "\"\\n a \\n\""},
        {"s", "\"q\\", "\"\\\"q\\\\\""},
        {"i", "5", "5"},
        {"i", " -7 ", "-7"},
        {"i", "123456789012345678901234567890", "123456789012345678901234567890"},
        {"i", "five", "\"five\""},
        {"b", "True", "true"},
        {"b", "false", "false"},
        {"n", "1e-05", "1e-05"},
        {"n", "nan", "\"nan\""},
        {"o", "{\"b\": 1, \"a\": [null]}", "{\"b\": 1, \"a\": [null]}"},
        {"o", "{'a': 1}", "\"{'a': 1}\""},
        {"a", "[1, \"x\"]", "[1, \"x\"]"},
        {"m", "None", "null"},
        {"m", "text", "\"text\""},
        {"m", "7", "\"7\""},
        {"e", "1", "\"1\""},
        {"u", "null", "null"},
        {"u", "4", "4"},
        {"any", "4", "4"},
        {"any", "word", "\"word\""},
        {"unknown", "None", "null"},
    };
    for (const Case& c : kCases)
        EXPECT_EQ(parse(with(false, true), call_text(parameter(c.key, c.text))).calls,
                  std::vector<std::string>{"f{\"" + std::string(c.key) + "\": " + c.json + "}"});
}

TEST(OutputParser, ValuesMayHoldTagsAndMarkup) {
    for (const char* value :
         {"<b>x</b>", "</tool_call>", "<tool_call>\n<function=g>\n</function>\n</tool_call>",
          "a</parameter> b", "a</parameter>", "</function>", "<parameter=s>", "<", "</parameter"})
        EXPECT_EQ(parse(with(false, true), call_text(parameter("s", value) + parameter("i", "1"))).calls,
                  std::vector<std::string>{"f{\"s\": " + Json(value).dump() + ", \"i\": 1}"});
}

TEST(OutputParser, AcceptsSloppyForms) {
    struct Case {
        std::string text;
        std::string call;
    };
    const Case kCases[] = {
        {"<tool_call><function=f><parameter=i>5</parameter></function></tool_call>", "f{\"i\": 5}"},
        {"<tool_call>\n<function=f>\n<parameter=i>5</parameter>\n<parameter=s>x</parameter>\n</function>\n</"
         "tool_call>",
         "f{\"i\": 5, \"s\": \"x\"}"},
        {"<tool_call>\n<function=f>\n<parameter=i>\n5\n</parameter>\n</tool_call>", "f{\"i\": 5}"},
        {"<tool_call>\n<function=f>\n" + parameter("i", "1") + parameter("s", "a") + parameter("i", "2") +
             "</function>\n</tool_call>",
         "f{\"i\": 2, \"s\": \"a\"}"},
    };
    for (const Case& c : kCases)
        EXPECT_EQ(parse(with(false, true), c.text).calls, std::vector<std::string>{c.call}) << c.text;
    EXPECT_EQ(
        parse(with(false, true), "<tool_call><function=f></function><function=g></function></tool_call>")
            .calls,
        (std::vector<std::string>{"f{}", "g{}"}));
}

TEST(OutputParser, MarksACutOffCallIncomplete) {
    const std::string text = call_text(parameter("i", "1") + parameter("s", "long"));
    for (std::size_t n = 12; n <= text.size(); ++n) {
        const Outcome o = whole(with(false, true), text.substr(0, n));
        ASSERT_EQ(o.calls.size(), 1U) << n;
        // With </function> the call is whole, whether or not the block was closed.
        const bool is_whole = text.substr(0, n).find("</function>") != std::string::npos;
        EXPECT_EQ(o.calls[0].ends_with("…"), !is_whole) << n;
        EXPECT_EQ(o.tool_text, text.substr(0, n));
    }
    EXPECT_EQ(
        parse(with(false, true), "<tool_call>\n<function=f>\n" + parameter("i", "1") + "<parameter=s>\nlo")
            .calls,
        std::vector<std::string>{"f{\"i\": 1}…"});
    EXPECT_EQ(parse(with(false, true, {"STOP"}), "<tool_call>\n<function=f>\n<parameter=s>\nloSTOP").calls,
              std::vector<std::string>{"f{}…"});
}

TEST(OutputParser, MarksAMalformedCallIncompleteAndGoesOn) {
    for (const char* body : {"{\"name\": \"f\"}", "<function=f\n>", "", "<parameter=s>", "<function=f>junk"})
        EXPECT_EQ(parse(with(false, true), "<tool_call>" + std::string(body) + "</tool_call>\nafter").content,
                  "\nafter");
    EXPECT_EQ(parse(with(false, true), "<tool_call>{}</tool_call>" + call_text("")).calls,
              (std::vector<std::string>{"{}…", "f{}"}));
}

TEST(OutputParser, SurvivesRandomMixesOfItsMarkers) {
    const std::vector<std::string> kParts = {"<tool_call>",
                                             "</tool_call>",
                                             "<function=f>",
                                             "</function>",
                                             "<parameter=s>",
                                             "</parameter>",
                                             "\n",
                                             " ",
                                             "a",
                                             "<",
                                             "</",
                                             "</think>",
                                             "STOP",
                                             "ST",
                                             "é"};
    std::mt19937 random(2);
    for (int round = 0; round < 300; ++round) {
        std::string text;
        for (int i = 0; i < 25; ++i) text += kParts[random() % kParts.size()];
        const auto config =
            with(round % 2 == 0, round % 3 != 0,
                 round % 5 == 0 ? std::vector<std::string>{"STOP", "\n<"} : std::vector<std::string>{});
        parse(config, text);
        if (HasFailure()) break;
    }
}

// ---- the renderer and the parser are each other's inverse
// --------------------------------------------------------

Json random_value(std::mt19937& random, int depth) {
    switch (random() % (depth > 2 ? 5 : 7)) {
        case 0:
            return random_valid_text(random(), random() % 12);
        case 1:
            return static_cast<std::int64_t>(random()) - (1LL << 31);
        case 2:
            return (static_cast<double>(random()) - 1e9) / 1e4;
        case 3:
            return random() % 2 == 0;
        case 4:
            return nullptr;
        case 5: {
            Json list = Json::array();
            for (unsigned n = random() % 4; n > 0; --n) list.push_back(random_value(random, depth + 1));
            return list;
        }
        default: {
            Json map = Json::object();
            for (unsigned n = random() % 4; n > 0; --n)
                map["k" + std::to_string(n)] = random_value(random, depth + 1);
            return map;
        }
    }
}

const char* type_of(const Json& value) {
    if (value.is_string()) return "string";
    if (value.is_boolean()) return "boolean";
    if (value.is_number_float()) return "number";
    if (value.is_number()) return "integer";
    if (value.is_null()) return "null";
    return value.is_array() ? "array" : "object";
}

TEST(OutputParser, ReadsBackWhatTheTemplateWrites) {
    std::mt19937 random(17);
    for (int round = 0; round < 200; ++round) {
        TemplateOptions options;
        options.family = round % 2 == 0 ? TemplateFamily::qwen35 : TemplateFamily::qwen36;
        Json tools = Json::array();
        Json calls = Json::array();
        for (unsigned n_calls = random() % 4; n_calls > 0; --n_calls) {
            const std::string name = "tool_" + std::to_string(n_calls);
            Json properties = Json::object();
            Json arguments = Json::object();
            for (unsigned n = random() % 5; n > 0; --n) {
                const std::string key = "arg " + std::to_string(n);
                arguments[key] = random_value(random, 0);
                properties[key]["type"] = type_of(arguments[key]);
            }
            calls.push_back({{"function", {{"name", name}, {"arguments", arguments}}}});
            tools.push_back({{"type", "function"},
                             {"function", {{"name", name}, {"parameters", {{"properties", properties}}}}}});
        }
        const std::string reasoning = random_valid_text(random(), random() % 30);
        const std::string content = random_valid_text(random(), random() % 30);
        Json messages = Json::array({{{"role", "user"}, {"content", "q"}}});
        const auto prompt = render_chat(messages, tools, options);
        messages.push_back({{"role", "assistant"},
                            {"content", content},
                            {"reasoning_content", reasoning},
                            {"tool_calls", calls}});
        options.add_generation_prompt = false;
        const auto after = render_chat(messages, tools, options);
        ASSERT_TRUE(prompt && after);
        ASSERT_TRUE(after->text.starts_with(prompt->text));
        std::string generated = after->text.substr(prompt->text.size());
        const std::string end = "<|im_end|>\n";
        ASSERT_TRUE(generated.ends_with(end));
        generated.resize(generated.size() - end.size());

        OutputParserConfig config;
        config.starts_in_reasoning = prompt->starts_in_reasoning;
        config.parse_tool_calls = true;
        config.tools_json = tools.dump();
        const Outcome o = parse(config, generated);
        EXPECT_EQ(o.reasoning, trim(reasoning));
        EXPECT_EQ(o.content, trim(content));
        ASSERT_EQ(o.calls.size(), calls.size()) << generated;
        Recorder run(config);
        run.push(generated);
        run.finish();
        const auto read = run.parser().tool_calls();
        for (std::size_t i = 0; i < calls.size(); ++i) {
            EXPECT_FALSE(read[i].is_incomplete);
            EXPECT_EQ(read[i].name, calls[i]["function"]["name"].get<std::string>());
            EXPECT_EQ(Json::parse(read[i].arguments_json), calls[i]["function"]["arguments"]) << generated;
        }
    }
}

}  // namespace
}  // namespace pantheon::model
