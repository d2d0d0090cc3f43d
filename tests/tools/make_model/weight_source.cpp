#include "tests/tools/make_model/weight_source.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <stdexcept>
#include <vector>

#include "kernels/quant/dequantize.h"

namespace pantheon::test {
namespace {

using kernels::WeightType;

constexpr int kNone = -1;

/// Where a block keeps its scale, and what its offset has to be for values of mean zero.
struct ScaleLayout {
    WeightType type;
    int scale_at;
    int offset_at = kNone;
    double offset_per_scale = 0;    // Q4_1 and Q5_1 add the offset, the K types subtract it
    bool has_signed_scale = false;  // types whose quants are not symmetric around zero
};

constexpr ScaleLayout kLayouts[] = {
    {WeightType::q4_0, 0, kNone, 0, true},
    {WeightType::q4_1, 0, 2, -7.5},
    {WeightType::q5_0, 0, kNone, 0, true},
    {WeightType::q5_1, 0, 2, -15.5},
    {WeightType::q8_0, 0},
    {WeightType::q2_k, 80, 82, 1.5},
    {WeightType::q3_k, 108},
    {WeightType::q4_k, 0, 2, 7.5},
    {WeightType::q5_k, 0, 2, 15.5},
    {WeightType::q6_k, 208},
    {WeightType::iq2_xxs, 0},
    {WeightType::iq2_xs, 0},
    {WeightType::iq2_s, 0},
    {WeightType::iq3_xxs, 0},
    {WeightType::iq3_s, 0},
    {WeightType::iq1_s, 0},
    {WeightType::iq4_nl, 0, kNone, 0, true},
    {WeightType::iq4_xs, 0},
};

const ScaleLayout* layout_of(WeightType type) {
    for (const ScaleLayout& layout : kLayouts)
        if (layout.type == type) return &layout;
    return nullptr;
}

void put_half(std::byte* at, double value) {
    const std::uint16_t bits = kernels::float_to_half(static_cast<float>(value));
    std::memcpy(at, &bits, sizeof bits);
}

/// IQ1_M has no scale field: the four nibbles of the half are the top nibbles of its four scale words.
void put_iq1_m_scale(std::byte* block, double value) {
    const unsigned bits = kernels::float_to_half(static_cast<float>(value));
    for (int i = 0; i < 4; ++i) {
        std::byte& high = block[48 + 2 * i + 1];
        high = (high & std::byte{0x0F}) | static_cast<std::byte>((bits >> 4 * i & 15) << 4);
    }
}

void put_mxfp4_scale(std::byte* block, double value, unsigned spread) {
    constexpr int kSteps[4] = {-1, 0, 0, 1};
    const int exponent = 128 + static_cast<int>(std::lround(std::log2(value))) + kSteps[spread & 3];
    block[0] = static_cast<std::byte>(std::clamp(exponent, 0, 254));
}

void put_scale(WeightType type, std::byte* block, double scale, unsigned spread) {
    if (type == WeightType::mxfp4) return put_mxfp4_scale(block, scale, spread);
    if (type == WeightType::iq1_m) return put_iq1_m_scale(block, scale);
    const ScaleLayout* layout = layout_of(type);
    put_half(block + layout->scale_at, scale);
    if (layout->offset_at != kNone) put_half(block + layout->offset_at, scale * layout->offset_per_scale);
}

void make_quants_valid(WeightType type, std::byte* block) {
    if (type != WeightType::q8_0) return;
    for (int i = 2; i < 34; ++i)  // -128 does not occur in real files
        if (block[i] == std::byte{0x80}) block[i] = std::byte{0x81};
}

/// Root mean square of the values of random blocks with a scale of 1.
double unit_rms(WeightType type, const kernels::WeightTypeInfo& info) {
    constexpr int kBlocks = 256;
    RandomBits random(1);
    std::vector<std::byte> block(static_cast<std::size_t>(info.block_bytes));
    std::vector<float> values(static_cast<std::size_t>(info.block_elems));
    double sum = 0;
    for (int i = 0; i < kBlocks; ++i) {
        random.fill(block.data(), block.size());
        make_quants_valid(type, block.data());
        put_scale(type, block.data(), 1.0, static_cast<unsigned>(i));
        kernels::dequantize_row(type, block.data(), values.data(), info.block_elems);
        for (const float v : values) sum += static_cast<double>(v) * v;
    }
    return std::sqrt(sum / (static_cast<double>(kBlocks) * info.block_elems));
}

}  // namespace

std::size_t encode_float(WeightType type, float value, std::byte* out) {
    if (type == WeightType::f32) {
        std::memcpy(out, &value, 4);
        return 4;
    }
    std::uint16_t half;
    if (type == WeightType::f16) {
        half = kernels::float_to_half(value);
    } else {
        std::uint32_t bits;
        std::memcpy(&bits, &value, 4);
        half = static_cast<std::uint16_t>((bits + 0x7FFF + (bits >> 16 & 1)) >> 16);
    }
    std::memcpy(out, &half, 2);
    return 2;
}

WeightSource::WeightSource(WeightType type, Distribution distribution)
    : type_(type), info_(*kernels::weight_type_info(type)), distribution_(distribution) {
    if (info_.block_elems == 1) return;
    if (distribution_.mean != 0)
        throw std::invalid_argument("only float types can hold a tensor whose mean is not 0");
    scale_ = distribution_.amplitude / std::sqrt(3.0) / unit_rms(type, info_);
}

void WeightSource::fill_floats(RandomBits& random, std::byte* out, std::int64_t n) const {
    const double step = 2 * distribution_.amplitude * 0x1p-32,
                 low = distribution_.mean - distribution_.amplitude;
    for (std::int64_t i = 0; i < n; i += 2) {
        const std::uint64_t bits = random.next();
        out +=
            encode_float(type_, static_cast<float>(low + step * static_cast<double>(bits & 0xFFFFFFFF)), out);
        if (i + 1 < n)
            out += encode_float(type_, static_cast<float>(low + step * static_cast<double>(bits >> 32)), out);
    }
}

void WeightSource::fill_blocks(RandomBits& random, std::byte* out, std::int64_t n_blocks) const {
    const ScaleLayout* layout = layout_of(type_);
    const bool has_signed_scale = layout && layout->has_signed_scale;
    for (std::int64_t i = 0; i < n_blocks; ++i, out += info_.block_bytes) {
        random.fill(out, static_cast<std::size_t>(info_.block_bytes));
        make_quants_valid(type_, out);
        const std::uint64_t bits = random.next();
        // Scales differ from block to block by a factor of up to 1.67, as a stuck scale index must not go
        // unseen.
        const double factor = 0.75 + 0.5 * static_cast<double>(bits >> 40) * 0x1p-24;
        const bool is_negative = has_signed_scale && (bits & 4);
        put_scale(type_, out, is_negative ? -scale_ * factor : scale_ * factor,
                  static_cast<unsigned>(bits & 3));
    }
}

void WeightSource::write(RandomBits& random, std::int64_t n_elems, ByteSink& sink) const {
    constexpr std::int64_t kPieceElems = 256 * 1024;
    std::vector<std::byte> piece;
    while (n_elems > 0) {
        const std::int64_t n = std::min(n_elems, kPieceElems);
        piece.resize(static_cast<std::size_t>(kernels::row_bytes(info_, n)));
        if (info_.block_elems == 1) {
            fill_floats(random, piece.data(), n);
        } else {
            fill_blocks(random, piece.data(), n / info_.block_elems);
        }
        sink.write(piece.data(), piece.size());
        n_elems -= n;
    }
}

}  // namespace pantheon::test
