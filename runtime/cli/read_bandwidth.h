// What this host's memory gives to readers: the yardstick of a benchmark's gigabytes a second.
#pragma once

namespace pantheon::cli {

/// Bytes a second that n_threads threads read together from memory that no cache holds, each four streams at
/// once; the best of a few passes, about half a second in all. 0: no memory for it.
double measure_read_bandwidth(int n_threads);

}  // namespace pantheon::cli
