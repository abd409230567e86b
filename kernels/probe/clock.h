// A kernel that reads the SMs' clocks where it stands in a stream or in a graph, and does nothing else.
#pragma once

#include <cuda_runtime.h>

#include "kernels/probe/clock_reading.h"

namespace kbench::cuda::probe {

/// Loads the kernel as its first launch would, which a capture may not do.
void load_clock_reader();

/// `blocks` blocks of one warp each write what the clocks of their SM say to readings[%smid]. As many blocks as SMs
/// come to one on each where the GPU is idle before, as it is behind any kernel of the stream; where an SM gets none,
/// its reading stays as it was. Of several blocks on an SM one writes last, and its reading is whole. SMs of a number
/// of `sms` and above are not read.
void read_clocks(ClockReading* readings, int sms, int blocks, cudaStream_t stream);

}  // namespace kbench::cuda::probe
