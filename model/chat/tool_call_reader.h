// Reads one <tool_call> block as it streams in:
//   <tool_call>\n<function=NAME>\n<parameter=KEY>\nVALUE\n</parameter>\n … </function>\n</tool_call>
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "model/chat/output_parser.h"
#include "model/chat/tool_schema.h"

namespace pantheon::model {

class ToolCallReader {
  public:
    /// What follows <tool_call> is fed. `schemas` outlives the reader.
    explicit ToolCallReader(const ToolSchemas& schemas) : schemas_(&schemas) {}

    /// Takes text from the front up to the end of </tool_call>, or all. True when the block is complete.
    bool feed(std::string_view& text);

    /// The calls read so far; the one under way too, marked incomplete, with the parameters that are whole.
    /// Text that is no call in this form gives one incomplete call.
    std::vector<ToolCall> calls() const;

  private:
    enum class State {
        before_function,
        function_name,
        before_parameter,
        parameter_name,
        value,
        malformed,
        done
    };

    /// Advances by one construct; false when more text is needed.
    bool step();
    bool step_tag();
    bool step_name(State next);
    bool step_value();
    bool is_value_end(std::size_t tag, bool& needs_more) const;
    void add_parameter(std::string_view text);
    void close_call();
    std::string_view rest() const { return std::string_view(buffer_).substr(consumed_); }
    void consume(std::size_t n_bytes);

    const ToolSchemas* schemas_;
    State state_ = State::before_function;
    std::string buffer_;
    std::size_t consumed_ = 0;  // of buffer_
    std::size_t scanned_ = 0;   // of rest(): searched in vain for what ends the construct
    std::vector<ToolCall> calls_;
    bool is_open_ = false;  // inside a <function=…>
    std::string name_, key_;
    std::vector<std::pair<std::string, std::string>> parameters_;  // key and JSON, in order
    std::unordered_map<std::string, std::size_t> positions_;       // of a key in parameters_
};

}  // namespace pantheon::model
