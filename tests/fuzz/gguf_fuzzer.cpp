// libFuzzer entry for GGUF files. Run: gguf_corpus DIR, then gguf_fuzzer -max_len=262144 DIR
#include <cstdio>
#include <cstdlib>

#include "tests/fuzz/gguf_check.h"
#include "tests/model/gguf/open_bytes.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    const auto opened = pantheon::test::open_bytes({reinterpret_cast<const char*>(data), size});
    const std::string problem = pantheon::fuzz::problem_with_gguf(opened, "/proc/self/fd/");
    if (!problem.empty()) {
        std::fprintf(stderr, "%s\n", problem.c_str());
        std::abort();
    }
    return 0;
}
