#include "tests/fuzz/gguf_check.h"

#include "kernels/quant/weight_type.h"

namespace pantheon::fuzz {
namespace {

std::string problem_with_error(const Error& error, const std::string& path) {
    switch (error.code()) {
        case Code::data_loss:
        case Code::invalid_argument:
        case Code::unimplemented:
        case Code::not_found:
            break;
        default:
            return "unexpected code: " + error.to_string();
    }
    const std::string directory = path.substr(0, path.rfind('/'));
    if (error.message().find(directory) == std::string::npos) return "names no file: " + error.to_string();
    if (error.message().size() > 1000) return "an endless message: " + error.message();
    return {};
}

std::string problem_with_file(const model::GgufFile& file) {
    for (const model::GgufTensor& tensor : file.tensors()) {
        const kernels::WeightTypeInfo* info = kernels::weight_type_info(tensor.type);
        if (!info) return tensor.name + ": a type without a size";
        std::uint64_t n_bytes = static_cast<std::uint64_t>(kernels::row_bytes(*info, tensor.ne[0]));
        for (int d = 1; d < 4; ++d)
            n_bytes *= static_cast<std::uint64_t>(tensor.ne[static_cast<std::size_t>(d)]);
        const auto bytes = file.bytes(tensor);
        if (bytes.size() != n_bytes || n_bytes == 0) return tensor.name + ": a view of the wrong size";
        for (const volatile std::byte& b : bytes) (void)static_cast<std::byte>(b);
        if (file.find_tensor(tensor.name) != &tensor) return tensor.name + ": not found by its name";
    }
    for (const auto& entry : file.metadata().entries())
        if (file.metadata().find(entry.key) != &entry.value) return entry.key + ": not found by its name";
    if (file.fingerprint().size() != 16) return "a bad fingerprint";
    return {};
}

}  // namespace

std::string problem_with_gguf(const OpenedGguf& opened, const std::string& path) {
    return opened ? problem_with_file(**opened) : problem_with_error(opened.error(), path);
}

}  // namespace pantheon::fuzz
