// Which instruction set the cpu backend's inner loops use.
#pragma once

namespace pantheon::kernels {

enum class CpuIsa {
    scalar,  // plain C++; exists everywhere
    avx2,    // AVX2, FMA and F16C
    avx512,  // the above with AVX-512 F, BW, DQ, VL and VNNI
};

/// The best one that this processor and its operating system offer; asked once.
CpuIsa host_cpu_isa();
/// Whether this host can run it.
bool host_has(CpuIsa isa);
const char* cpu_isa_name(CpuIsa isa);

}  // namespace pantheon::kernels
