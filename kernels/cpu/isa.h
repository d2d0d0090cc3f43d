// Which instruction set the cpu backend's inner loops use on this host.
#pragma once

namespace pantheon::kernels {

/// Each has its own build of the same inner loops (kernels/cpu/leaves.h).
enum class CpuIsa {
    scalar,  // plain C++: any host
    avx2,    // AVX2, FMA and F16C
};

/// The best one that this host and its operating system can run, asked of the processor once.
CpuIsa host_cpu_isa();

const char* cpu_isa_name(CpuIsa isa);

}  // namespace pantheon::kernels
