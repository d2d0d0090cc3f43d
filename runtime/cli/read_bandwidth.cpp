#include "runtime/cli/read_bandwidth.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <cstring>
#include <new>
#include <thread>
#include <vector>

namespace pantheon::cli {
namespace {

constexpr std::size_t kStreams = 4;
constexpr std::size_t kWordsPerThread = std::size_t{48} << 20;  // 384 MiB: more than any last-level cache
constexpr std::size_t kLine = 8;                                // words of a cache line
constexpr int kPasses = 5;

/// Adds up four parts of a buffer side by side.
std::uint64_t read_streams(const std::uint64_t* words, std::size_t n) {
    const std::size_t part = n / kStreams;
    std::uint64_t sums[kStreams][kLine] = {};
    for (std::size_t i = 0; i + kLine <= part; i += kLine)
        for (std::size_t s = 0; s < kStreams; ++s)
            for (std::size_t j = 0; j < kLine; ++j) sums[s][j] += words[s * part + i + j];
    std::uint64_t sum = 0;
    for (const auto& stream : sums)
        for (const std::uint64_t word : stream) sum += word;
    return sum;
}

}  // namespace

double measure_read_bandwidth(int n_threads) try {
    std::vector<std::vector<std::uint64_t>> buffers(static_cast<std::size_t>(n_threads));
    std::atomic<std::uint64_t> sink{0};  // so that nothing is left out
    const auto on_all = [&](auto&& work) {
        std::vector<std::thread> threads;
        for (std::vector<std::uint64_t>& buffer : buffers) threads.emplace_back([&] { work(buffer); });
        for (std::thread& thread : threads) thread.join();
    };
    // All at once: an allocation that fails in a thread would end the program.
    for (std::vector<std::uint64_t>& buffer : buffers) buffer.reserve(kWordsPerThread);
    on_all([](std::vector<std::uint64_t>& buffer) { buffer.assign(kWordsPerThread, 1); });
    double best = 0;
    for (int pass = 0; pass < kPasses; ++pass) {
        const auto start = std::chrono::steady_clock::now();
        on_all(
            [&](std::vector<std::uint64_t>& buffer) { sink += read_streams(buffer.data(), buffer.size()); });
        const std::chrono::duration<double> elapsed = std::chrono::steady_clock::now() - start;
        best = std::max(
            best, static_cast<double>(kWordsPerThread * sizeof(std::uint64_t)) * n_threads / elapsed.count());
    }
    return best;
} catch (const std::bad_alloc&) {
    return 0;
}

}  // namespace pantheon::cli
