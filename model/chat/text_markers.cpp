#include "model/chat/text_markers.h"

#include <algorithm>

#include "model/chat/python_text.h"
#include "model/tokenizer/utf8.h"

namespace pantheon::model {

std::string_view first_character(std::string_view text) {
    std::size_t n_bytes;
    utf8_step(text, n_bytes);
    return text.substr(0, n_bytes);
}

void MarkerSearch::append_text(std::string_view text, std::string& out) {
    if (!drops_space_) out += space_;
    drops_space_ = false;
    space_.clear();
    out += text;
}

bool MarkerSearch::feed(std::string_view& text, std::string& out) {
    while (!text.empty()) {
        const std::string_view character = first_character(text);
        text.remove_prefix(character.size());
        if (n_matched_ > 0 && character[0] != marker_[n_matched_]) {
            append_text(marker_.substr(0, n_matched_), out);
            n_matched_ = 0;
        }
        if (character[0] == marker_[n_matched_]) {
            if (++n_matched_ < marker_.size()) continue;
            n_matched_ = 0;
            return true;
        }
        if (leading_space(character) != 0)
            space_ += character;
        else
            append_text(character, out);
    }
    return false;
}

void MarkerSearch::end(std::string& out) {
    if (n_matched_ > 0) append_text(marker_.substr(0, n_matched_), out);
    n_matched_ = 0;
}

StopSearch::StopSearch(std::vector<std::string> stops) {
    for (std::string& stop : stops) {
        if (stop.empty()) continue;
        Pattern p{std::move(stop), {}, 0};
        p.border.assign(p.text.size(), 0);
        for (std::size_t i = 1, n = 0; i < p.text.size(); ++i) {
            while (n > 0 && p.text[i] != p.text[n]) n = p.border[n - 1];
            if (p.text[i] == p.text[n]) ++n;
            p.border[i] = n;
        }
        patterns_.push_back(std::move(p));
    }
}

std::optional<std::string> StopSearch::feed(std::string_view text, std::string& out) {
    if (patterns_.empty()) {
        out += text;
        return std::nullopt;
    }
    for (const char c : text) {
        held_ += c;
        const Pattern* found = nullptr;
        std::size_t n_hold = 0;
        for (Pattern& p : patterns_) {
            while (p.n_matched > 0 && c != p.text[p.n_matched]) p.n_matched = p.border[p.n_matched - 1];
            if (c == p.text[p.n_matched]) ++p.n_matched;
            n_hold = std::max(n_hold, p.n_matched);
            if (p.n_matched == p.text.size() && (found == nullptr || p.text.size() > found->text.size()))
                found = &p;
        }
        if (found != nullptr) {
            out.append(held_, 0, held_.size() - found->text.size());
            held_.clear();
            return found->text;
        }
        if (n_hold == 0) {
            out += held_;
            held_.clear();
        }
    }
    std::size_t n_hold = 0;
    for (const Pattern& p : patterns_) n_hold = std::max(n_hold, p.n_matched);
    out.append(held_, 0, held_.size() - n_hold);
    held_.erase(0, held_.size() - n_hold);
    return std::nullopt;
}

void StopSearch::end(std::string& out) {
    out += held_;
    held_.clear();
}

}  // namespace pantheon::model
