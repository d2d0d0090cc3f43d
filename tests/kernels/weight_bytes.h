// Random weight matrices of any type, and the values they stand for.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <vector>

#include "kernels/linear/weight_matrix.h"
#include "kernels/linear/weight_panels.h"
#include "kernels/quant/dequantize.h"
#include "tests/kernels/kernel_test.h"

namespace pantheon::kernels::test {

class WeightBytes {
  public:
    /// n_rows rows of n_in elements; the bytes lie at an odd address, as they may in a file.
    WeightBytes(WeightType type, std::int64_t n_in, std::int64_t n_rows, std::uint64_t seed)
        : type_(type), n_in_(n_in), n_rows_(n_rows), row_bytes_(row_bytes(*weight_type_info(type), n_in)) {
        const std::size_t n_bytes = static_cast<std::size_t>(row_bytes_ * n_rows);
        storage_.resize(n_bytes + 1);
        const std::size_t n = static_cast<std::size_t>(n_in * n_rows);
        const auto values = random_values(n, seed);
        if (type == WeightType::f32) {
            std::memcpy(data(), values.data(), n_bytes);
        } else if (type == WeightType::f16 || type == WeightType::bf16) {
            for (std::size_t i = 0; i < n; ++i) {
                std::uint32_t bits;
                std::memcpy(&bits, &values[i], sizeof bits);
                const std::uint16_t half = type == WeightType::f16 ? float_to_half(values[i])
                                                                   : static_cast<std::uint16_t>(bits >> 16);
                std::memcpy(data() + 2 * i, &half, 2);
            }
        } else {
            fill_blocks(seed);
        }
        values_.resize(n);
        for (std::int64_t r = 0; r < n_rows; ++r)
            dequantize_row(type, data() + r * row_bytes_, values_.data() + r * n_in, n_in);
    }

    WeightMatrix matrix() const {
        return {type_, const_cast<WeightBytes*>(this)->data(), n_in_, n_rows_, row_bytes_};
    }
    float value(std::int64_t row, std::int64_t i) const {
        return values_[static_cast<std::size_t>(row * n_in_ + i)];
    }

  private:
    std::byte* data() { return storage_.data() + 1; }

    /// Random bytes, with sane scales where the format keeps them.
    void fill_blocks(std::uint64_t seed) {
        const WeightTypeInfo& info = *weight_type_info(type_);
        const std::size_t n_bytes = storage_.size() - 1;
        const auto noise = random_values(n_bytes, seed + 99, 0, 256);
        for (std::size_t i = 0; i < n_bytes; ++i) data()[i] = static_cast<std::byte>(noise[i]);
        const std::size_t block = static_cast<std::size_t>(info.block_bytes);
        for (std::size_t b = 0; b < n_bytes; b += block)
            set_scales(data() + b, 0.01f + 0.001f * static_cast<float>(b % 7));
    }

    void set_scales(std::byte* block, float scale) {
        const auto put = [&](std::size_t at, float value) {
            const std::uint16_t half = float_to_half(value);
            std::memcpy(block + at, &half, 2);
        };
        switch (type_) {
            case WeightType::mxfp4:  // an exponent
                block[0] = static_cast<std::byte>(120 + static_cast<int>(scale * 1000) % 5);
                return;
            case WeightType::iq1_m:  // a half's nibbles, on top of four scale words
                for (std::size_t i = 0; i < 4; ++i) {
                    std::byte& top = block[48 + 2 * i + 1];
                    top = (top & std::byte{0x0F}) |
                          static_cast<std::byte>(float_to_half(scale) >> 4 * i << 4 & 0xF0);
                }
                return;
            case WeightType::q2_k:
                put(80, scale);
                return put(82, -0.5f * scale);
            case WeightType::q3_k:
                return put(108, scale);
            case WeightType::q6_k:
                return put(208, scale);
            case WeightType::q4_k:
            case WeightType::q5_k:
            case WeightType::q4_1:
            case WeightType::q5_1:
                put(0, scale);
                return put(2, 3 * scale);
            default:
                return put(0, scale);
        }
    }

    WeightType type_;
    std::int64_t n_in_, n_rows_, row_bytes_;
    std::vector<std::byte> storage_;
    std::vector<float> values_;
};

/// Panels of a matrix for an instruction set, on a cache line.
class PackedBytes {
  public:
    PackedBytes(const WeightMatrix& matrix, CpuIsa isa) : matrix_(matrix) {
        const PanelLayout layout = panel_layout(matrix.type, panel_rows(isa), matrix.n_in);
        const std::int64_t n_panels = layout.n_panels(matrix.n_out);
        storage_.resize(static_cast<std::size_t>(n_panels * layout.bytes) + kCacheLine);
        const auto past = reinterpret_cast<std::uintptr_t>(storage_.data()) % kCacheLine;
        std::byte* panels = storage_.data() + (kCacheLine - past) % kCacheLine;
        for (std::int64_t i = 0; i < n_panels; ++i) {
            const std::int64_t first = i * layout.n_rows;
            pack_panel(matrix.type, layout, matrix.row(first), matrix.row_bytes,
                       static_cast<int>(std::min<std::int64_t>(layout.n_rows, matrix.n_out - first)),
                       panels + i * layout.bytes);
        }
        matrix_.panels = panels;
        matrix_.panel_rows = layout.n_rows;
    }
    WeightMatrix matrix() const { return matrix_; }

  private:
    static constexpr std::size_t kCacheLine = 64;
    WeightMatrix matrix_;
    std::vector<std::byte> storage_;
};

}  // namespace pantheon::kernels::test
