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

/// Routers with wide gaps read these first channels of the residual stream and no others, and no layer writes
/// them: they hold the token's embedding through all layers, untouched by what was rounded on the way, so
/// that two computations of one model choose the same experts even where quantisation moves everything else.
std::int64_t n_route_channels(const ModelShape& shape) {
    return std::max<std::int64_t>(1, shape.n_embd / 8);
}

bool writes_residual(std::string_view name) {
    return ends_with(name, "attn_output.weight") || ends_with(name, "ssm_out.weight") ||
           ends_with(name, "ffn_down_exps.weight") || ends_with(name, "ffn_down_shexp.weight");
}

void write_wide_router(const PlannedTensor& tensor, WeightType type, const ModelShape& shape,
                       const WeightOptions& options, ByteSink& sink) {
    constexpr double kGain =
        4;  // logits spread less with depth: the other channels grow, and the norm with them
    const std::int64_t n_routing = n_route_channels(shape);
    const double amplitude = kGain * std::sqrt(3.0 / static_cast<double>(n_routing));
    std::vector<std::byte> row(static_cast<std::size_t>(shape.n_embd) * 4);
    RandomBits random(stream_seed(options, tensor.name, 0));
    for (int e = 0; e < shape.n_expert; ++e) {
        std::byte* out = row.data();
        for (std::int64_t i = 0; i < shape.n_embd; ++i)
            out += encode_float(
                type, i < n_routing ? static_cast<float>(amplitude * (2 * random.uniform() - 1)) : 0.0F, out);
        sink.write(row.data(), static_cast<std::size_t>(out - row.data()));
    }
}

/// Passes a tensor's bytes on, those of the first rows of each of its matrices as zeros. A block of zero
/// bytes is a block of zero weights in every type: its scale is 0.
class ZeroFirstRows final : public ByteSink {
  public:
    ZeroFirstRows(ByteSink& sink, std::size_t row_bytes, std::size_t n_rows, std::size_t n_zero)
        : sink_(sink), matrix_bytes_(row_bytes * n_rows), zero_bytes_(row_bytes * n_zero) {}

    void write(const void* data, std::size_t n) override {
        const auto* bytes = static_cast<const std::byte*>(data);
        while (n > 0) {
            const std::size_t at = position_ % matrix_bytes_;
            const bool is_zero = at < zero_bytes_;
            const std::size_t now = std::min(n, (is_zero ? zero_bytes_ : matrix_bytes_) - at);
            if (is_zero) {
                zeros_.resize(std::max(zeros_.size(), now));
                sink_.write(zeros_.data(), now);
            } else {
                sink_.write(bytes, now);
            }
            bytes += now;
            n -= now;
            position_ += now;
        }
    }

  private:
    ByteSink& sink_;
    std::size_t matrix_bytes_, zero_bytes_, position_ = 0;
    std::vector<std::byte> zeros_;
};

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
    auto write = [tensor, source = WeightSource(type, d), options](ByteSink& sink) {
        for (const StreamRun& run : tensor.runs) {
            RandomBits random(stream_seed(options, run.stream, run.slice));
            source.write(random, run.n_elems, sink);
        }
    };
    if (options.router_gap == RouterGap::wide && writes_residual(tensor.name)) {
        const std::int64_t row_bytes = kernels::row_bytes(*kernels::weight_type_info(type), tensor.ne[0]);
        return [write, row_bytes, n_rows = tensor.ne[1], n_zero = n_route_channels(shape)](ByteSink& sink) {
            ZeroFirstRows zeroing(sink, static_cast<std::size_t>(row_bytes), static_cast<std::size_t>(n_rows),
                                  static_cast<std::size_t>(n_zero));
            write(zeroing);
        };
    }
    return write;
}

}  // namespace pantheon::test
