#include "kernels/cpu/isa.h"

namespace pantheon::kernels {
namespace {

CpuIsa ask_processor() {
#if defined(__x86_64__)
    // These also ask whether the operating system saves the wide registers.
    if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") && __builtin_cpu_supports("f16c"))
        return CpuIsa::avx2;
#endif
    return CpuIsa::scalar;
}

}  // namespace

CpuIsa host_cpu_isa() {
    static const CpuIsa isa = ask_processor();
    return isa;
}

const char* cpu_isa_name(CpuIsa isa) {
    switch (isa) {
        case CpuIsa::scalar:
            return "scalar";
        case CpuIsa::avx2:
            return "avx2";
    }
    return "scalar";
}

}  // namespace pantheon::kernels
