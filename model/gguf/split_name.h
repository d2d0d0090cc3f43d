// The names of the files of a split set: <prefix>-00002-of-00005.gguf.
#pragma once

#include <optional>
#include <string>

namespace pantheon::model {

struct SplitName {
    std::string prefix;  // with the directories
    int number = 0;      // from 1
    int count = 0;

    std::string path_of(int other_number) const;
};

/// Nothing when the path does not end like that.
std::optional<SplitName> parse_split_name(const std::string& path);

}  // namespace pantheon::model
