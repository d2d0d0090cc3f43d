// Expands weight blocks for the oracle test: `dequantize_stdin TYPE` reads blocks from stdin, writes f32 to
// stdout.
#include <cstddef>
#include <cstdio>
#include <iterator>
#include <vector>

#include "kernels/quant/dequantize.h"

int main(int argc, char** argv) {
    using namespace pantheon::kernels;
    const WeightTypeInfo* info = argc == 2 ? weight_type_by_name(argv[1]) : nullptr;
    if (info == nullptr || !info->is_supported) {
        std::fprintf(stderr, "usage: dequantize_stdin TYPE < blocks > f32\n");
        return 2;
    }
    std::vector<std::byte> blocks;
    std::byte buffer[65536];
    while (const std::size_t n = std::fread(buffer, 1, sizeof buffer, stdin)) {
        blocks.insert(blocks.end(), buffer, buffer + n);
    }
    if (blocks.size() % static_cast<std::size_t>(info->block_bytes) != 0) {
        std::fprintf(stderr, "dequantize_stdin: %zu bytes are no whole number of blocks\n", blocks.size());
        return 1;
    }
    std::vector<float> values(blocks.size() / static_cast<std::size_t>(info->block_bytes) *
                              static_cast<std::size_t>(info->block_elems));
    dequantize_row(static_cast<WeightType>(info->id), blocks.data(), values.data(),
                   static_cast<std::int64_t>(values.size()));
    return std::fwrite(values.data(), sizeof(float), values.size(), stdout) == values.size() ? 0 : 1;
}
