#include "tests/tools/make_model/weight_values.h"

#include <algorithm>
#include <cmath>
#include <stdexcept>
#include <string_view>
#include <vector>

#include "tests/tools/make_model/random_bits.h"
#include "tests/tools/make_model/weight_source.h"

namespace pantheon::test {
namespace {

using kernels::WeightType;

bool ends_with(std::string_view name, std::string_view ending) {
    return name.ends_with(ending);
}

bool is_router(std::string_view name) {
    return ends_with(name, "ffn_gate_inp.weight");
}

/// Tensors whose values do not depend on the number of inputs: the same for random models and for the
/// fixture.
bool fixed_distribution(std::string_view name, Distribution& d) {
    if (ends_with(name, "ssm_a"))
        d = {-0.75, 0.5};
    else if (ends_with(name, "ssm_dt.bias"))
        d = {-1, 1};
    else if (ends_with(name, "attn_q_norm.weight") || ends_with(name, "attn_k_norm.weight"))
        d = {1.5, 0.5};
    else if (ends_with(name, "norm.weight"))
        d = {1, 0.5};
    else if (ends_with(name, "ssm_conv1d.weight"))
        d = {0, 0.75};
    else
        return false;
    return true;
}

Distribution fixture_distribution(std::string_view name) {
    Distribution d;
    if (fixed_distribution(name, d)) return d;
    if (name == "token_embd.weight") return {0, 1};
    if (ends_with(name, "attn_q.weight") || ends_with(name, "attn_k.weight") || is_router(name))
        return {0, 0.5};
    return {0, 0.25};
}

Distribution random_distribution(std::string_view name, std::int64_t n_in, bool is_tied) {
    Distribution d;
    if (fixed_distribution(name, d)) return d;
    constexpr double kSqrt3 =
        1.7320508075688772;  // amplitude of a uniform variable with standard deviation 1
    const double unit = kSqrt3 / std::sqrt(static_cast<double>(n_in));
    // The head spreads logits by a few units, so that sampling has something to choose; as a tied head the
    // embedding has to be as small as that, or the softmax saturates.
    constexpr double kHeadGain = 2.5;
    if (name == "token_embd.weight") return is_tied ? Distribution{0, kHeadGain * unit} : Distribution{0, 1};
    if (name == "output.weight") return {0, kHeadGain * unit};
    if (ends_with(name, "attn_q.weight") || ends_with(name, "attn_k.weight") || is_router(name))
        return {0, 2.3 * unit};
    return {0, 1.15 * unit};
}

std::uint64_t stream_seed(const WeightOptions& options, std::string_view stream, int slice) {
    return splitmix64(splitmix64(options.seed ^ fnv1a_64(stream)) + static_cast<std::uint64_t>(slice));
}

void write_fixture_run(const StreamRun& run, WeightType type, ByteSink& sink) {
    const Distribution d = fixture_distribution(run.stream);
    const std::uint64_t hash = fnv1a_64(run.stream);
    std::vector<std::byte> bytes(static_cast<std::size_t>(run.n_elems) * 4);
    std::byte* out = bytes.data();
    for (std::int64_t i = 0; i < run.n_elems; ++i) {
        const std::uint64_t z = splitmix64(hash + static_cast<std::uint64_t>(run.first + i));
        const double u = static_cast<double>(z >> 40) / 16777216.0;
        out += encode_float(type, static_cast<float>(d.mean + d.amplitude * (2 * u - 1)), out);
    }
    sink.write(bytes.data(), static_cast<std::size_t>(out - bytes.data()));
}

/// Experts in groups of n_expert_used that share one direction, up to a factor of a few per cent: whichever
/// group points most along the input is taken whole, and leads the next group by a multiple of what separates
/// experts of plain random routers. Experts that fill no group follow a direction at half strength, so they
/// never lead.
void write_wide_router(const PlannedTensor& tensor, WeightType type, const ModelShape& shape,
                       const WeightOptions& options, ByteSink& sink) {
    constexpr double kGain = 8, kSpread = 0.02;
    const auto n_embd = static_cast<std::size_t>(shape.n_embd);
    const int k = shape.n_expert_used, n_groups = std::max(1, shape.n_expert / k);
    const double amplitude = kGain * std::sqrt(3.0 / static_cast<double>(shape.n_embd));
    std::vector<double> direction(n_embd);
    std::vector<std::byte> row(n_embd * 4);
    for (int e = 0; e < shape.n_expert; ++e) {
        const int group = e / k;
        RandomBits random(stream_seed(options, tensor.name, group % n_groups));
        for (double& v : direction) v = amplitude * (2 * random.uniform() - 1);
        const double factor = group < n_groups ? 1 - kSpread * (e % k) / k : 0.5;
        std::byte* out = row.data();
        for (const double v : direction) out += encode_float(type, static_cast<float>(factor * v), out);
        sink.write(row.data(), static_cast<std::size_t>(out - row.data()));
    }
}

}  // namespace

GgufWriter::DataFn weight_data(const PlannedTensor& tensor, WeightType type, const ModelShape& shape,
                               const WeightOptions& options) {
    const bool is_float = kernels::weight_type_info(type)->block_elems == 1;
    if (options.kind == WeightKind::fixture) {
        if (!is_float)
            throw std::invalid_argument(tensor.name + ": the fixture's weights exist in float types only");
        return [tensor, type](ByteSink& sink) {
            for (const StreamRun& run : tensor.runs) write_fixture_run(run, type, sink);
        };
    }
    if (options.router_gap == RouterGap::wide && is_router(tensor.name) && is_float) {
        return [tensor, type, &shape, options](ByteSink& sink) {
            write_wide_router(tensor, type, shape, options, sink);
        };
    }
    const Distribution d = random_distribution(tensor.runs.front().stream, tensor.ne[0], shape.is_tied);
    if (!is_float && d.mean != 0)
        throw std::invalid_argument(tensor.name + ": only float types can hold values whose mean is not 0");
    return [tensor, source = WeightSource(type, d), options](ByteSink& sink) {
        for (const StreamRun& run : tensor.runs) {
            RandomBits random(stream_seed(options, run.stream, run.slice));
            source.write(random, run.n_elems, sink);
        }
    };
}

}  // namespace pantheon::test
