#include "actors/canary.h"

#include <algorithm>
#include <cmath>
#include <sstream>
#include <string_view>
#include <vector>

namespace pantheon::actors {
namespace {

// Bytes are tokens at worst, and a slot holds at least 16.
constexpr std::string_view kPrompts[] = {"The sky is", "1 + 2 = 3"};
constexpr SlotId kSlot{0};

Error failure(std::string_view what) {
    return {Code::data_loss, "the canary failed: " + std::string(what)};
}

/// The logits after the last token of a prompt.
Result<std::vector<float>> last_row(model::Executor& executor, const std::vector<TokenId>& prompt) {
    if (Status status = executor.bind(kSlot); !status) return status.error();
    const model::StepRun run{kSlot, 0, prompt, model::WantLogits::last};
    const auto logits = executor.step({&run, 1});
    std::vector<float> row;
    if (logits) row.assign(logits->row(0).begin(), logits->row(0).end());
    executor.release(kSlot);
    if (!logits) return logits.error();
    return row;
}

double standard_deviation(const std::vector<float>& row) {
    double sum = 0, sum_of_squares = 0;
    for (const float x : row) sum += x;
    const double mean = sum / static_cast<double>(row.size());
    for (const float x : row) sum_of_squares += (x - mean) * (x - mean);
    return std::sqrt(sum_of_squares / static_cast<double>(row.size()));
}

}  // namespace

Status run_canary(model::Executor& executor, const model::Tokenizer& tokenizer) {
    std::vector<float> previous;
    for (const std::string_view prompt : kPrompts) {
        auto row = last_row(executor, tokenizer.encode(prompt, /*special=*/false));
        if (!row) return std::move(row).error().with_context("the canary failed");
        if (!std::all_of(row->begin(), row->end(), [](float x) { return std::isfinite(x); }))
            return failure("the model gives logits that are not finite");
        if (const double deviation = standard_deviation(*row); deviation <= kCanaryMinDeviation) {
            std::ostringstream text;
            text << "the model gives flat logits, standard deviation " << deviation << ", want more than "
                 << kCanaryMinDeviation;
            return failure(text.str());
        }
        if (*row == previous) return failure("the model gives the same logits for different prompts");
        previous = *std::move(row);
    }
    return {};
}

}  // namespace pantheon::actors
