// The two searches of the output parser that work as text streams by: for a marker, and for a stop string.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace pantheon::model {

/// The first character of non-empty text, whole; an invalid byte counts as one.
std::string_view first_character(std::string_view text);

/// Passes text on until a marker such as </think>. Held back are the beginning of a marker and the white
/// space before it, for which the owner decides: it belongs to the text if more of it follows.
class MarkerSearch {
  public:
    /// The marker begins with a character that does not occur in it again, and is not white space.
    MarkerSearch(std::string_view marker, bool drops_leading_space)
        : marker_(marker), drops_space_(drops_leading_space) {}

    /// Takes characters from the front of `text` up to the end of the marker, or all. What is known to be
    /// text is appended to `out`. True when the marker is complete; space() is then what stood before it.
    bool feed(std::string_view& text, std::string& out);
    /// At the end: a begun marker was text. White space stays held.
    void end(std::string& out);

    const std::string& space() const { return space_; }
    void drop_space() { space_.clear(); }

  private:
    void append_text(std::string_view text, std::string& out);

    std::string_view marker_;
    bool drops_space_;  // so far nothing but white space has come, and it is not wanted
    std::size_t n_matched_ = 0;
    std::string space_;
};

/// Looks for several strings at once, Knuth–Morris–Pratt for each: linear in the text whatever the strings.
class StopSearch {
  public:
    /// Empty strings are ignored.
    explicit StopSearch(std::vector<std::string> stops);

    /// Appends what can no longer belong to a stop string. Returns the string that ended first, the longest
    /// of those that end at one place; nothing after that is looked at.
    std::optional<std::string> feed(std::string_view text, std::string& out);
    /// At the end: what was held back.
    void end(std::string& out);

  private:
    struct Pattern {
        std::string text;
        std::vector<std::size_t> border;  // of each prefix: its longest proper prefix that is also its suffix
        std::size_t n_matched = 0;
    };

    std::vector<Pattern> patterns_;
    std::string held_;
};

}  // namespace pantheon::model
