// Sums that several blocks make parts of, for problems of too few blocks. Internal to kernels/convolution/.
#pragma once

#include "kernels/convolution/conv2d.h"

namespace kbench::cuda::convolution {

/// Into how many parts to cut each block's taps so that the whole ends soonest, each part leaving fp32 sums that
/// combine_splits adds up. `resident`: blocks that run at once; `block_us`: what an uncut one takes among them.
int best_splits(const Conv2d& op, std::int64_t blocks, int resident, double block_us, int most);

/// " in 6 parts", for names of kernels; nothing where there is one.
std::string of_parts(int splits);

/// Bytes of the parts' sums; none where there is one.
std::size_t split_bytes(const Conv2d& op, int splits);

/// out = epilogue(sum over parts of parts [splits][elements of out]), in their order.
void combine_splits(const Conv2d& op, DataType type, const float* parts, int splits, void* out,
                    const Conv2dEpilogue& epilogue, cudaStream_t stream);

}  // namespace kbench::cuda::convolution
