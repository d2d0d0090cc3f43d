#include "kernels/cpu/isa.h"

namespace pantheon::kernels {
namespace {

CpuIsa ask_processor() {
#if defined(__x86_64__)
    // These also ask whether the operating system saves the wide registers.
    const bool has_avx2 =
        __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") && __builtin_cpu_supports("f16c");
    if (!has_avx2) return CpuIsa::scalar;
    if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
        __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl") &&
        __builtin_cpu_supports("avx512vnni"))
        return CpuIsa::avx512;
    return CpuIsa::avx2;
#else
    return CpuIsa::scalar;
#endif
}

}  // namespace

CpuIsa host_cpu_isa() {
    static const CpuIsa isa = ask_processor();
    return isa;
}

bool host_has(CpuIsa isa) {
    return static_cast<int>(isa) <= static_cast<int>(host_cpu_isa());
}

const char* cpu_isa_name(CpuIsa isa) {
    switch (isa) {
        case CpuIsa::scalar:
            return "scalar";
        case CpuIsa::avx2:
            return "avx2";
        case CpuIsa::avx512:
            return "avx512";
    }
    return "scalar";
}

}  // namespace pantheon::kernels
