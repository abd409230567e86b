// Adds up what blocks have summed of the same elements.
#include "kernels/convolution/splits.h"

#include "kernels/check.h"
#include "kernels/convolution/epilogue.cuh"

namespace kbench::cuda::convolution {
namespace {

constexpr int threads = 256;

std::int64_t elements_of(const Conv2d& op) { return op.batch * op.out_channels * op.out_height() * op.out_width(); }

template <class T>
__global__ void conv2d_combine(const float* __restrict__ parts, int splits, T* __restrict__ out, std::int64_t count,
                               int width, int height, int channels, Epilogue<T> epilogue) {
    const std::int64_t i = std::int64_t{blockIdx.x} * threads + threadIdx.x;
    if (i >= count) return;
    Arithmetic<T> sum = 0;
    for (int part = 0; part < splits; ++part) sum += static_cast<Arithmetic<T>>(__ldcs(parts + part * count + i));
    const std::int64_t row = i / width, plane = row / height;
    out[i] = static_cast<T>(epilogue(sum, epilogue.channel(plane % channels), epilogue.ends(plane / channels, width),
                                     static_cast<int>(i - row * width)));
}

}  // namespace

int best_splits(const Conv2d& op, std::int64_t blocks, int resident, double block_us, int most) {
    // Parts are written and read once, at about 3 TB/s as L2 holds some; a launch more takes 3 us.
    constexpr double bytes_per_us = 3e6, launch_us = 3;
    int best = 1;
    double least = 0;
    for (int splits = 1; splits <= most; ++splits) {
        const auto waves = static_cast<double>(divide_up(blocks * splits, resident));
        const double parts_us = 2.0 * sizeof(float) * splits * static_cast<double>(elements_of(op)) / bytes_per_us;
        const double us = waves * block_us / splits + (splits > 1 ? launch_us + parts_us : 0);
        if (splits == 1 || us < least) least = us, best = splits;
    }
    return best;
}

std::string of_parts(int splits) { return splits == 1 ? "" : " in " + std::to_string(splits) + " parts"; }

std::size_t split_bytes(const Conv2d& op, int splits) {
    return splits == 1 ? 0 : static_cast<std::size_t>(splits) * static_cast<std::size_t>(elements_of(op)) * 4;
}

void combine_splits(const Conv2d& op, DataType type, const float* parts, int splits, void* out,
                    const Conv2dEpilogue& epilogue, cudaStream_t stream) {
    const std::int64_t count = elements_of(op);
    dispatch(type, [&]<typename T>() {
        conv2d_combine<T><<<static_cast<unsigned>(divide_up(count, threads)), threads, 0, stream>>>(
            parts, splits, static_cast<T*>(out), count, static_cast<int>(op.out_width()),
            static_cast<int>(op.out_height()), static_cast<int>(op.out_channels), Epilogue<T>(epilogue));
    });
    KBENCH_CUDA_LAUNCHED("conv2d_combine");
}

}  // namespace kbench::cuda::convolution
