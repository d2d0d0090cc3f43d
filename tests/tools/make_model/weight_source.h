// Random weights in any type: uniform floats, or blocks of random quants whose scales give the wanted
// magnitude.
#pragma once

#include <cstddef>
#include <cstdint>

#include "kernels/quant/weight_type.h"
#include "tests/support/gguf_writer.h"
#include "tests/tools/make_model/random_bits.h"

namespace pantheon::test {

/// Uniform in mean ± amplitude. Quantised types ignore the mean and match the standard deviation.
struct Distribution {
    double mean = 0;
    double amplitude = 0;
};

class WeightSource {
  public:
    WeightSource(kernels::WeightType type, Distribution distribution);

    /// n_elems elements, a multiple of the type's block, in pieces of bounded size.
    void write(RandomBits& random, std::int64_t n_elems, ByteSink& sink) const;

  private:
    void fill_floats(RandomBits& random, std::byte* out, std::int64_t n) const;
    void fill_blocks(RandomBits& random, std::byte* out, std::int64_t n_blocks) const;

    kernels::WeightType type_;
    const kernels::WeightTypeInfo& info_;
    Distribution distribution_;
    double scale_ = 1;  // of a block, about
};

/// Encodes one float as F32, F16 or BF16 (nearest, ties to even); returns the bytes written.
std::size_t encode_float(kernels::WeightType type, float value, std::byte* out);

}  // namespace pantheon::test
