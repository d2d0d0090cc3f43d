// libFuzzer entry for bytes from clients. Run: message_fuzzer -max_len=65536 tests/fuzz/message_corpus
#include "tests/fuzz/message_check.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    pantheon::fuzz::check_message({reinterpret_cast<const char*>(data), size});
    return 0;
}
