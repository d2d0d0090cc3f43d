#include "runtime/config/manual.h"

#include <map>
#include <sstream>
#include <utility>

#include "runtime/config/schema.h"

namespace pantheon::config {
namespace {

constexpr std::string_view kHead = R"(.\" Made from the key table in runtime/config/schema.cpp; do not edit.
.Dd June 1, 2026
.Dt PANTHEOND.TOML 5
.Os
.Sh NAME
.Nm pantheond.toml
.Nd configuration of the pantheond language model server
.Sh DESCRIPTION
.Nm
is a TOML file.
Dotted keys and tables mean the same.
Every key is optional.
A key that is unknown, misplaced, set twice, of the wrong type or out of range makes the whole file invalid, and each
such key is reported with its line and column; so is a value that needs a feature which this version does not have.
.Pp
There is either one
.Li [engine]
table or an array of
.Li [[engine]]
tables, never both.
In messages the engines of an array are counted from 0, as in
.Li engine[0].dies .
.Pp
.Em live
keys take effect on a reload,
.Em restart
keys when the daemon starts again.
)";

constexpr std::string_view kTail = R"(.Sh FILES
.Bl -tag -width indent
.It Pa /etc/pantheon/pantheond.toml
what the system service reads
.El
.Sh EXAMPLES
.Bd -literal -offset indent
[model]
path = "/var/lib/pantheon/model.gguf"

[kv]
n_ctx = 32768
.Ed
.Pp
Check a file without starting anything:
.Dl pantheond \-\-config pantheond.toml \-\-check-config
.Sh SEE ALSO
.Xr pantheon 1 ,
.Xr pantheond 8
)";

/// Backslashes, and a dot or quote at the start of a line, mean something to roff; it reads no UTF-8.
std::string roff(std::string_view text) {
    static constexpr std::pair<std::string_view, std::string_view> kSpelled[] = {
        {"\\", "\\e"}, {"…", "..."}, {"×", "\\(mu"}};
    std::string out = text.starts_with('.') || text.starts_with('\'') ? "\\&" : "";
    while (!text.empty()) {
        std::string_view from = text.substr(0, 1);
        std::string_view to = from;
        for (const auto& [character, spelling] : kSpelled)
            if (text.starts_with(character)) {
                from = character;
                to = spelling;
            }
        out += to;
        text.remove_prefix(from.size());
    }
    return out;
}

std::string sentence(std::string_view text) {
    std::string out = roff(text);
    if (out[0] >= 'a' && out[0] <= 'z') out[0] = static_cast<char>(out[0] - 'a' + 'A');
    return out + ".";
}

std::string_view stripped(std::string_view text) {
    while (!text.empty() && (text.front() == ' ' || text.front() == '\t')) text.remove_prefix(1);
    while (!text.empty() && (text.back() == ' ' || text.back() == '\t' || text.back() == '\r'))
        text.remove_suffix(1);
    return text;
}

}  // namespace

std::string manual_page() {
    std::ostringstream out;
    out << kHead;
    std::string_view table;
    for (const KeyRow& row : schema()) {
        if (row.table() != table) {
            if (!table.empty()) out << ".El\n";
            table = row.table();
            out << ".Sh [" << table << "]\n.Bl -tag -width indent\n";
        }
        out << ".It Cm " << roff(row.leaf()) << "\n"
            << sentence(row.help) << "\n.br\nTakes " << roff(value_description(row))
            << ".\nDefault: " << roff(row.fallback);
        if (!row.auto_meaning.empty()) out << ": " << roff(row.auto_meaning);
        out << " (" << (row.reload == Reload::live ? "live" : "restart") << ").\n";
        if (!row.awaits.empty())
            out << "Any other value needs " << roff(row.awaits) << " and is refused in this version.\n";
    }
    out << ".El\n" << kTail;
    return out.str();
}

std::vector<std::string> check_annotated_file(std::string_view text) {
    std::vector<std::string> problems;
    std::map<std::string, std::string, std::less<>> shown;
    std::string table;
    std::istringstream lines{std::string(text)};
    for (std::string line; std::getline(lines, line);) {
        std::string_view rest = line;
        if (rest.starts_with("[")) {
            table = rest.substr(1, rest.find(']') - 1);
            continue;
        }
        if (rest.empty() || rest.starts_with("# ") || rest == "#") continue;
        if (rest.front() == '#') rest.remove_prefix(1);
        const std::size_t equals = rest.find('=');
        if (equals == std::string_view::npos) {
            problems.push_back("neither prose nor a key: " + line);
            continue;
        }
        const std::string path = table + "." + std::string(stripped(rest.substr(0, equals)));
        if (!shown.emplace(path, stripped(rest.substr(equals + 1))).second)
            problems.push_back(path + ": shown twice");
        if (find_row(path) == nullptr) problems.push_back(path + ": is no key");
    }
    for (const KeyRow& row : schema()) {
        const auto entry = shown.find(row.path);
        if (entry == shown.end())
            problems.push_back(std::string(row.path) + ": is not shown");
        else if (entry->second != row.fallback)
            problems.push_back(std::string(row.path) + ": shown as " + entry->second + ", the default is " +
                               std::string(row.fallback));
    }
    return problems;
}

}  // namespace pantheon::config
