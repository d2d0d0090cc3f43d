// What types a request's tools declare for their parameters, and how a parameter's text becomes JSON by them.
#pragma once

#include <string>
#include <string_view>
#include <unordered_map>

namespace pantheon::model {

class ToolSchemas {
  public:
    /// `tools_json`: an array of OpenAI tool objects. What cannot be read declares nothing.
    explicit ToolSchemas(std::string_view tools_json);

    /// A string parameter's text is taken raw. Any other is parsed as JSON, with True, False and None as
    /// Python writes them; what does not parse is a string after all. Returns JSON.
    std::string to_json(std::string_view function, std::string_view parameter, std::string_view text) const;

  private:
    struct Type {
        bool allows_string = false;
        bool allows_null = false;
    };
    std::unordered_map<std::string, Type> types_;  // key: function, NUL, parameter
};

/// The text as a JSON string.
std::string quote_json(std::string_view text);

}  // namespace pantheon::model
