// The classes of positions that a convolution's dx falls into, and the convolution of dy that makes each. Internal to
// kernels/convolution/.
#pragma once

#include <cuda_runtime.h>

#include "models/ops/conv2d.h"

namespace kbench::cuda::convolution {

/// Elements index + stride i (i < count) of one dimension of x. Tap first_tap + stride j meets position i + offset - j.
struct Class {
    int index, count, first_tap, taps, offset;

    __host__ __device__ static Class of(int index, int size, int kernel, int stride, int pad) {
        const int first = (index + pad) % stride;
        return {index, index < size ? (size - index + stride - 1) / stride : 0, first,
                first < kernel ? (kernel - first + stride - 1) / stride : 0, (index + pad) / stride};
    }
};
inline Class rows_class(const Conv2d& op, std::int64_t index) {
    return Class::of(static_cast<int>(index), static_cast<int>(op.height), static_cast<int>(op.kernel_h),
                     static_cast<int>(op.stride_h), static_cast<int>(op.pad_h));
}

/// The convolution of dy that makes class `index` of the rows of dx.
inline Conv2d forward_of(const Conv2d& op, std::int64_t index) {
    const Class rows = rows_class(op, index);
    return {op.batch,
            op.out_channels,
            op.out_height(),
            op.out_width(),
            op.in_channels,
            rows.taps,
            op.kernel_w,
            1,
            1,
            rows.taps - 1 - rows.offset,
            op.kernel_w - 1 - op.pad_w};
}

/// Whether those convolutions exist and pad equally on both sides.
inline bool has_forwards(const Conv2d& op) {
    if (op.stride_w != 1 || op.kernel_w - 1 < op.pad_w || op.stride_h > op.height || op.stride_h > 4) return false;
    for (std::int64_t index = 0; index < op.stride_h; ++index) {
        const Conv2d forward = forward_of(op, index);
        if (forward.kernel_h < 1 || forward.pad_h < 0) return false;
        if (forward.height + 2 * forward.pad_h < forward.kernel_h || forward.width + 2 * forward.pad_w < op.kernel_w)
            return false;
        if (forward.out_height() != rows_class(op, index).count || forward.out_width() != op.width) return false;
    }
    return true;
}

}  // namespace kbench::cuda::convolution
