// Writes the valid files that the mutation test starts from into a directory, as the corpus of gguf_fuzzer.
#include <cstdio>
#include <fstream>

#include "tests/fuzz/gguf_mutator.h"

int main(int argc, char** argv) {
    if (argc != 2 || argv[1][0] == '-') {
        std::fprintf(stderr,
                     "usage: gguf_corpus DIR\nWrites the seeds of gguf_fuzzer into an existing directory.\n");
        return 2;
    }
    for (const auto& seed : pantheon::fuzz::gguf_seeds()) {
        const std::string path = std::string(argv[1]) + "/" + seed.name;
        std::ofstream out(path, std::ios::binary);
        out.write(seed.bytes.data(), static_cast<std::streamsize>(seed.bytes.size()));
        if (!out.flush()) {
            std::fprintf(stderr, "gguf_corpus: %s cannot be written\n", path.c_str());
            return 1;
        }
        std::printf("wrote %s\n", path.c_str());
    }
    return 0;
}
