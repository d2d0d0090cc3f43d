// Range checks of what a client asks; the numbers are those of SamplingParams' comments.
#include <cmath>
#include <string>

#include "model/sampler/sampler.h"

namespace pantheon::model {
namespace {

struct FloatRange {
    const char* field;
    float SamplingParams::*value;
    float min, max;
};

constexpr FloatRange kFloatRanges[] = {
    {"temperature", &SamplingParams::temperature, 0.0F, 100.0F},
    {"top_p", &SamplingParams::top_p, 0.0F, 1.0F},
    {"min_p", &SamplingParams::min_p, 0.0F, 1.0F},
    {"repeat_penalty", &SamplingParams::repeat_penalty, 0.0F, 100.0F},
    {"presence_penalty", &SamplingParams::presence_penalty, -100.0F, 100.0F},
    {"frequency_penalty", &SamplingParams::frequency_penalty, -100.0F, 100.0F},
};

std::string number(float x) {
    std::string s = std::to_string(x);  // "nan" and "inf" too
    if (s.find('.') == std::string::npos) return s;
    s.erase(s.find_last_not_of('0') + 1);
    if (s.back() == '.') s.pop_back();
    return s;
}

Error invalid(std::string message) {
    return Error(Code::invalid_argument, std::move(message));
}

}  // namespace

Status validate(const SamplingParams& params, std::int32_t n_vocab) {
    for (const FloatRange& r : kFloatRanges) {
        const float x = params.*r.value;
        if (!(x >= r.min && x <= r.max))  // NaN fails too
            return invalid(std::string(r.field) + ": " + number(x) + " is not in " + number(r.min) + " … " +
                           number(r.max));
    }
    if (params.repeat_penalty == 0.0F) return invalid("repeat_penalty: 0 is not above 0");
    if (params.top_k < 0) return invalid("top_k: " + std::to_string(params.top_k) + " is less than 0");
    if (params.logit_bias.size() > kMaxLogitBias)
        return invalid("logit_bias: " + std::to_string(params.logit_bias.size()) + " entries, at most " +
                       std::to_string(kMaxLogitBias));
    for (std::size_t i = 0; i < params.logit_bias.size(); ++i) {
        const auto& [id, bias] = params.logit_bias[i];
        const std::string where = "logit_bias[" + std::to_string(i) + "]: ";
        if (id < 0 || id >= n_vocab)
            return invalid(where + "token " + std::to_string(id) + " is not in the vocabulary of " +
                           std::to_string(n_vocab));
        if (!std::isfinite(bias)) return invalid(where + number(bias) + " is not finite");
    }
    return {};
}

}  // namespace pantheon::model
