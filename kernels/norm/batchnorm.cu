// Batch norm in training and its backward, both bound by memory: blocks sum parts of each channel, a small kernel adds
// up their sums in a fixed order, and a second pass reads the input again. x is read twice and y written once;
// backward reads x and dy twice and writes dx once.
// A block takes the variance around its own mean or a number near it, and blocks are merged as in Chan, Golub and
// LeVeque (American Statistician 37(3), 1983), so that a mean far from zero costs the variance no accuracy.
#include "kernels/norm/batchnorm.h"

#include <algorithm>

#include "kernels/check.h"
#include "kernels/programmatic.cuh"
#include "kernels/types.cuh"
#include "kernels/widen.cuh"

namespace kbench::cuda {
namespace {

constexpr int warp = 32, threads_per_block = 256, at_once = 4;

/// How blocks share the elements of a channel: `each` of `all` per block, in rows where channels are columns, in
/// elements for NCHW. It does not depend on alignment or device.
struct Parts {
    std::int64_t all, each, count;
};

Parts parts_of(DataType type, const BatchNorm& op) {
    // Four or eight blocks for each of an H100's 132 SMs run at once; each thread has at least four loads.
    constexpr std::int64_t blocks = 8 * 132, most = 512, least_rows = 32;
    constexpr std::int64_t least_elements = threads_per_block * at_once * 8;
    const auto parts = [](std::int64_t all, std::int64_t count, std::int64_t least) {
        const std::int64_t each = divide_up(std::max(least, divide_up(all, count)), 8) * 8;  // whole vectors
        return Parts{all, each, divide_up(all, each)};
    };
    if (op.channels > 0)
        return parts(op.count(), std::clamp<std::int64_t>(blocks / op.channels, 1, most), least_elements);
    const std::int64_t across = divide_up(op.width * static_cast<std::int64_t>(size_of(type)), 16 * warp);
    return parts(op.rows, std::clamp<std::int64_t>(blocks / 2 / across, 1, most), least_rows);
}

/// Walks a thread through the vectors of an NCHW channel, one image after another.
template <int N>
struct ChannelWalk {
    std::int64_t channels, channel, segment;  ///< segment: in vectors of N
    std::int64_t image, offset;

    __device__ ChannelWalk(std::int64_t of_channels, std::int64_t of, std::int64_t vectors, std::int64_t index)
        : channels(of_channels), channel(of), segment(vectors), image(index / vectors), offset(index % vectors) {}
    __device__ std::int64_t element() const { return ((image * channels + channel) * segment + offset) * N; }
    __device__ void advance(std::int64_t images, std::int64_t vectors) {
        image += images;
        offset += vectors;
        if (offset < segment) return;
        offset -= segment;
        ++image;
    }
};

/// Sums each of two numbers over the block's threads, into thread 0.
template <typename A>
__device__ void sum_over_block(A& first, A& second) {
    __shared__ A sums[2][threads_per_block / warp];
    const auto sum_warp = [&] {
#pragma unroll
        for (int distance = warp / 2; distance > 0; distance /= 2) {
            first += __shfl_xor_sync(0xffffffffu, first, distance);
            second += __shfl_xor_sync(0xffffffffu, second, distance);
        }
    };
    sum_warp();
    if (threadIdx.x % warp == 0) {
        sums[0][threadIdx.x / warp] = first;
        sums[1][threadIdx.x / warp] = second;
    }
    __syncthreads();
    if (threadIdx.x >= warp) return;
    const bool has = threadIdx.x < threads_per_block / warp;
    first = has ? sums[0][threadIdx.x] : A{0};
    second = has ? sums[1][threadIdx.x] : A{0};
    sum_warp();
}

/// NCHW: writes part blockIdx.x / channels of channel blockIdx.x % channels to partial [parts, 2, channels]: the mean
/// and the sum of squares around it; backward, the sums of dy and of dy (x - mean).
template <typename T, int N, bool backward>
__global__ void __launch_bounds__(threads_per_block)
    image_sums_kernel(const T* x, const T* dy, const Arithmetic<T>* mean, Arithmetic<T>* partial, std::int64_t channels,
                      std::int64_t segment, Parts parts) {
    using A = Arithmetic<T>;
    const std::int64_t channel = blockIdx.x % channels, part = blockIdx.x / channels;
    const std::int64_t begin = part * parts.each / N, end = min(parts.all, (part + 1) * parts.each) / N;
    const std::int64_t vectors = segment / N;
    A center;
    if constexpr (backward) {
        center = mean[channel];
    } else {  // a number near the mean: that of 32 elements, which all warps read
        const std::int64_t index = begin + static_cast<std::int64_t>(threadIdx.x % warp) % (end - begin);
        center = static_cast<A>(x[ChannelWalk<N>(channels, channel, vectors, index).element()]);
#pragma unroll
        for (int distance = warp / 2; distance > 0; distance /= 2)
            center += __shfl_xor_sync(0xffffffffu, center, distance);
        center /= warp;
    }
    const std::int64_t images = threads_per_block / vectors, rest = threads_per_block % vectors;
    std::int64_t index = begin + threadIdx.x;
    ChannelWalk<N> walk(channels, channel, vectors, index);
    A first{0}, second{0};
    for (; index < end; index += at_once * threads_per_block) {
        Vector<T, N> values[at_once], gradients[at_once];
#pragma unroll
        for (int j = 0; j < at_once; ++j) {
            if (index + j * threads_per_block < end) {
                values[j] = Vector<T, N>::load_once(x + walk.element());
                if constexpr (backward) gradients[j] = Vector<T, N>::load_once(dy + walk.element());
            }
            walk.advance(images, rest);
        }
#pragma unroll
        for (int j = 0; j < at_once; ++j) {
            if (index + j * threads_per_block >= end) continue;
            A wide[N], other[N];
            widen(values[j], wide);
            if constexpr (backward) widen(gradients[j], other);
#pragma unroll
            for (int i = 0; i < N; ++i) {
                const A distance = wide[i] - center, factor = backward ? other[i] : distance;
                first += factor;
                second += factor * distance;
            }
        }
    }
    let_next_launch();
    sum_over_block(first, second);
    if (threadIdx.x > 0) return;
    if constexpr (!backward) {
        const A off = first / static_cast<A>((end - begin) * N);
        second -= off * first;
        first = center + off;
    }
    partial[2 * part * channels + channel] = first;
    partial[(2 * part + 1) * channels + channel] = second;
}

/// Channels are columns: the same for rows [blockIdx.y parts.each, ...). A thread has N columns of every blockDim.y-th
/// row and computes their moments as Welford does (Technometrics 4(3), 1962).
template <typename T, int N, bool backward>
__global__ void __launch_bounds__(threads_per_block, 2)
    column_sums_kernel(const T* x, const T* dy, const Arithmetic<T>* mean, Arithmetic<T>* partial, std::int64_t width,
                       Parts parts) {
    using A = Arithmetic<T>;
    __shared__ A scratch[2][threads_per_block * N];
    const std::int64_t column = (std::int64_t{blockIdx.x} * blockDim.x + threadIdx.x) * N;
    const std::int64_t begin = blockIdx.y * parts.each, end = min(parts.all, begin + parts.each);
    const int together = static_cast<int>(blockDim.y);
    A first[N] = {}, second[N] = {}, centers[N] = {};
    if (column < width) {
        if constexpr (backward) {
#pragma unroll
            for (int i = 0; i < N; ++i) centers[i] = mean[column + i];
        }
        A counted{0};
        for (std::int64_t row = begin + threadIdx.y; row < end; row += at_once * together) {
            Vector<T, N> values[at_once], gradients[at_once];
#pragma unroll
            for (int j = 0; j < at_once; ++j) {
                if (row + j * together >= end) continue;
                const std::int64_t at = (row + j * together) * width + column;
                values[j] = Vector<T, N>::load_once(x + at);
                if constexpr (backward) gradients[j] = Vector<T, N>::load_once(dy + at);
            }
#pragma unroll
            for (int j = 0; j < at_once; ++j) {
                if (row + j * together >= end) continue;
                A wide[N];
                widen(values[j], wide);
                if constexpr (backward) {
                    A other[N];
                    widen(gradients[j], other);
#pragma unroll
                    for (int i = 0; i < N; ++i) {
                        first[i] += other[i];
                        second[i] += other[i] * (wide[i] - centers[i]);
                    }
                } else {
                    counted += 1;
                    const A share = A{1} / counted;
#pragma unroll
                    for (int i = 0; i < N; ++i) {
                        const A distance = wide[i] - first[i];
                        first[i] += distance * share;
                        second[i] += distance * (wide[i] - first[i]);
                    }
                }
            }
        }
    }
    let_next_launch();
    const int own = static_cast<int>(threadIdx.y * blockDim.x + threadIdx.x) * N;
#pragma unroll
    for (int i = 0; i < N; ++i) {
        scratch[0][own + i] = first[i];
        scratch[1][own + i] = second[i];
    }
    __syncthreads();
    if (threadIdx.y > 0 || column >= width) return;
    const auto rows_of = [&](int y) {
        const std::int64_t left = end - begin - y;
        return left > 0 ? static_cast<A>((left + together - 1) / together) : A{0};
    };
    A counted = rows_of(0);
    for (int y = 1; y < together; ++y) {
        const A rows = rows_of(y);
        if (rows == 0) break;
        const A share = rows / (counted + rows), weight = counted * share;
        const int other = own + y * static_cast<int>(blockDim.x) * N;
#pragma unroll
        for (int i = 0; i < N; ++i) {
            if constexpr (backward) {
                first[i] += scratch[0][other + i];
                second[i] += scratch[1][other + i];
            } else {
                const A distance = scratch[0][other + i] - first[i];
                first[i] += distance * share;
                second[i] += scratch[1][other + i] + distance * distance * weight;
            }
        }
        counted += rows;
    }
    A* const to = partial + 2 * blockIdx.y * width + column;
#pragma unroll
    for (int i = 0; i < N; ++i) {
        to[i] = first[i];
        to[width + i] = second[i];
    }
}

constexpr int adding_warps = 8;

/// Sums `terms(part, sums)` over the parts, for 32 channels per block; the first warp's threads get the sums.
template <int kinds, typename Terms>
__device__ void sum_over_parts(double (&sums)[kinds], int parts, bool inside, Terms terms) {
    __shared__ double scratch[kinds][adding_warps][warp];
#pragma unroll
    for (int k = 0; k < kinds; ++k) sums[k] = 0;
    if (inside)
        for (int part = static_cast<int>(threadIdx.y); part < parts; part += adding_warps) terms(part, sums);
#pragma unroll
    for (int k = 0; k < kinds; ++k) scratch[k][threadIdx.y][threadIdx.x] = sums[k];
    __syncthreads();
    if (threadIdx.y > 0) return;
    for (int y = 1; y < adding_warps; ++y)
#pragma unroll
        for (int k = 0; k < kinds; ++k) sums[k] += scratch[k][y][threadIdx.x];
}

/// Computes mean and rstd of all channels from their parts, and updates the running ones.
template <typename T>
__global__ void __launch_bounds__(warp* adding_warps)
    statistics_kernel(const Arithmetic<T>* partial, std::int64_t channels, Parts parts, double epsilon, double momentum,
                      double elements, T* running_mean, T* running_var, Arithmetic<T>* mean, Arithmetic<T>* rstd) {
    using A = Arithmetic<T>;
    wait_for_previous();
    let_next_launch();
    const std::int64_t channel = std::int64_t{blockIdx.x} * warp + threadIdx.x;
    const bool inside = channel < channels;
    const double near = inside ? static_cast<double>(partial[channel]) : 0;
    // Weights are shares of the whole instead of counts, because a part is counted in rows where channels are columns.
    double sums[3];  // means minus the first mean; their squares; squares within parts
    sum_over_parts(sums, static_cast<int>(parts.count), inside, [&](int part, double(&to)[3]) {
        const std::int64_t size = min(parts.each, parts.all - part * parts.each);
        const double share = static_cast<double>(size) / static_cast<double>(parts.all);
        const double distance = static_cast<double>(partial[2 * part * channels + channel]) - near;
        to[0] += share * distance;
        to[1] += share * distance * distance;
        to[2] += static_cast<double>(partial[(2 * part + 1) * channels + channel]);
    });
    if (threadIdx.y > 0 || !inside) return;
    const double of_batch = near + sums[0];
    const double variance = max(0.0, sums[2] / elements + (sums[1] - sums[0] * sums[0]));
    mean[channel] = static_cast<A>(of_batch);
    rstd[channel] = static_cast<A>(1 / sqrt(variance + epsilon));
    const auto move = [&](T* running, double batch) {
        const auto before = static_cast<double>(static_cast<A>(running[channel]));
        running[channel] = static_cast<T>(static_cast<A>(before + momentum * (batch - before)));
    };
    move(running_mean, of_batch);
    move(running_var, variance * (elements / (elements - 1)));
}

/// dw and db from the parts' sums; to `of_dx` [2, channels] the mean of dy, and rstd times the mean of dy n.
template <typename T>
__global__ void __launch_bounds__(warp* adding_warps)
    gradient_sums_kernel(const Arithmetic<T>* partial, std::int64_t channels, int parts, double elements,
                         const Arithmetic<T>* rstd, T* dw, T* db, bool accumulates, Arithmetic<T>* of_dx) {
    using A = Arithmetic<T>;
    wait_for_previous();
    let_next_launch();
    const std::int64_t channel = std::int64_t{blockIdx.x} * warp + threadIdx.x;
    const bool inside = channel < channels;
    double sums[2];
    sum_over_parts(sums, parts, inside, [&](int part, double(&to)[2]) {
        to[0] += static_cast<double>(partial[2 * part * channels + channel]);
        to[1] += static_cast<double>(partial[(2 * part + 1) * channels + channel]);
    });
    if (threadIdx.y > 0 || !inside) return;
    const double scale = static_cast<double>(rstd[channel]), of_dyn = sums[1] * scale;
    const auto add = [&](T* to, double sum) {
        if (accumulates) sum += static_cast<double>(static_cast<A>(to[channel]));
        to[channel] = static_cast<T>(static_cast<A>(sum));
    };
    add(dw, of_dyn);
    add(db, sums[0]);
    of_dx[channel] = static_cast<A>(sums[0] / elements);
    of_dx[channels + channel] = static_cast<A>(of_dyn * scale / elements);
}

/// The numbers applied to a channel's elements. Forward: y = (x - center) scale + shift. Backward: dx = scale (dy -
/// shift - (x - center) through).
template <typename T, bool backward>
struct ChannelMap {
    using A = Arithmetic<T>;
    struct Source {
        const T *weight, *bias;
        const A *mean, *rstd, *of_dx;
        std::int64_t channels;
    };
    A center, scale, shift, through;

    __device__ void read(const Source& from, std::int64_t channel) {
        center = from.mean[channel];
        scale = static_cast<A>(from.weight[channel]) * from.rstd[channel];
        if constexpr (backward) {
            shift = from.of_dx[channel];
            through = from.of_dx[from.channels + channel];
        } else {
            shift = static_cast<A>(from.bias[channel]);
        }
    }
    __device__ A operator()(A x, A dy) const {
        if constexpr (backward)
            return scale * (dy - shift - (x - center) * through);
        else
            return (x - center) * scale + shift;
    }
};

/// NCHW, with the parts of image_sums_kernel. out may be x or dy: each thread overwrites only what it has read.
template <typename T, int N, bool backward>
__global__ void __launch_bounds__(threads_per_block, 4)
    image_map_kernel(const T* x, const T* dy, typename ChannelMap<T, backward>::Source source, T* out,
                     std::int64_t segment, Parts parts) {
    using A = Arithmetic<T>;
    wait_for_previous();
    const std::int64_t channels = source.channels, channel = blockIdx.x % channels, part = blockIdx.x / channels;
    const std::int64_t begin = part * parts.each / N, end = min(parts.all, (part + 1) * parts.each) / N;
    const std::int64_t vectors = segment / N;
    const std::int64_t images = threads_per_block / vectors, rest = threads_per_block % vectors;
    ChannelMap<T, backward> map;
    map.read(source, channel);
    std::int64_t index = begin + threadIdx.x;
    ChannelWalk<N> walk(channels, channel, vectors, index);
    for (; index < end; index += at_once * threads_per_block) {
        Vector<T, N> values[at_once], gradients[at_once];
        std::int64_t at[at_once];
#pragma unroll
        for (int j = 0; j < at_once; ++j) {
            at[j] = walk.element();
            if (index + j * threads_per_block < end) {
                values[j] = Vector<T, N>::load_once(x + at[j]);
                if constexpr (backward) gradients[j] = Vector<T, N>::load_once(dy + at[j]);
            }
            walk.advance(images, rest);
        }
#pragma unroll
        for (int j = 0; j < at_once; ++j) {
            if (index + j * threads_per_block >= end) continue;
            A wide[N], other[N] = {};
            widen(values[j], wide);
            if constexpr (backward) widen(gradients[j], other);
            Vector<T, N> made;
#pragma unroll
            for (int i = 0; i < N; ++i) made.elements[i] = static_cast<T>(map(wide[i], other[i]));
            made.store_whole(out + at[j]);
        }
    }
}

/// Channels are columns: a thread keeps to its N columns.
template <typename T, int N, bool backward>
__global__ void __launch_bounds__(threads_per_block, backward ? 2 : 3)
    column_map_kernel(const T* x, const T* dy, typename ChannelMap<T, backward>::Source source, T* out, Parts parts) {
    using A = Arithmetic<T>;
    wait_for_previous();
    const std::int64_t width = source.channels;
    const std::int64_t column = (std::int64_t{blockIdx.x} * blockDim.x + threadIdx.x) * N;
    if (column >= width) return;
    const std::int64_t begin = blockIdx.y * parts.each, end = min(parts.all, begin + parts.each);
    const int together = static_cast<int>(blockDim.y);
    ChannelMap<T, backward> maps[N];
#pragma unroll
    for (int i = 0; i < N; ++i) maps[i].read(source, column + i);
    for (std::int64_t row = begin + threadIdx.y; row < end; row += at_once * together) {
        Vector<T, N> values[at_once], gradients[at_once];
#pragma unroll
        for (int j = 0; j < at_once; ++j) {
            if (row + j * together >= end) continue;
            const std::int64_t at = (row + j * together) * width + column;
            values[j] = Vector<T, N>::load_once(x + at);
            if constexpr (backward) gradients[j] = Vector<T, N>::load_once(dy + at);
        }
#pragma unroll
        for (int j = 0; j < at_once; ++j) {
            if (row + j * together >= end) continue;
            A wide[N], other[N] = {};
            widen(values[j], wide);
            if constexpr (backward) widen(gradients[j], other);
            Vector<T, N> made;
#pragma unroll
            for (int i = 0; i < N; ++i) made.elements[i] = static_cast<T>(maps[i](wide[i], other[i]));
            made.store_whole(out + (row + j * together) * width + column);
        }
    }
}

/// Calls function.operator()<N>() with the widest vector (16 or 8 bytes, or one element) that divides `length` and that
/// `pointers` are aligned to.
template <typename T, typename Function>
void dispatch_width(std::int64_t length, std::initializer_list<const void*> pointers, const Function& function) {
    constexpr int widest = vector_width<T>;
    const auto fits = [&](int elements) {
        bool whole = length % elements == 0;
        for (const void* pointer : pointers)
            whole &= reinterpret_cast<std::uintptr_t>(pointer) % (static_cast<std::size_t>(elements) * sizeof(T)) == 0;
        return whole;
    };
    if (fits(widest)) return function.template operator()<widest>();
    if constexpr (widest > 2)
        if (fits(widest / 2)) return function.template operator()<widest / 2>();
    function.template operator()<1>();
}

/// Runs both passes; `add_up(partial)` launches the kernel between them.
template <typename T, bool backward, typename AddUp>
void run(DataType type, const BatchNorm& op, const T* x, const T* dy,
         const typename ChannelMap<T, backward>::Source& source, T* out, Arithmetic<T>* partial, cudaStream_t stream,
         const AddUp& add_up) {
    const Parts parts = parts_of(type, op);
    const auto count = static_cast<unsigned>(parts.count);
    const std::int64_t segment = op.channels > 0 ? op.height * op.width : op.width;
    dispatch_width<T>(segment, {x, dy, out}, [&]<int N>() {
        if (op.channels > 0) {
            const dim3 grid(static_cast<unsigned>(op.channels) * count), block(threads_per_block);
            image_sums_kernel<T, N, backward>
                <<<grid, block, 0, stream>>>(x, dy, source.mean, partial, op.channels, segment, parts);
            KBENCH_CUDA_LAUNCHED("image_sums_kernel");
            add_up(parts);
            launch_behind(image_map_kernel<T, N, backward>, grid, block, stream, x, dy, source, out, segment, parts);
            return;
        }
        const std::int64_t vectors = divide_up(op.width, N);
        unsigned columns = 1;
        while (columns < warp && columns < vectors) columns *= 2;
        const dim3 block(columns, threads_per_block / columns);
        const dim3 grid(static_cast<unsigned>(divide_up(vectors, columns)), count);
        column_sums_kernel<T, N, backward><<<grid, block, 0, stream>>>(x, dy, source.mean, partial, op.width, parts);
        KBENCH_CUDA_LAUNCHED("column_sums_kernel");
        add_up(parts);
        launch_behind(column_map_kernel<T, N, backward>, grid, block, stream, x, dy, source, out, parts);
    });
}

dim3 adding_grid(const BatchNorm& op) { return dim3(static_cast<unsigned>(divide_up(op.channel_count(), warp))); }

}  // namespace

std::size_t batch_norm_workspace_bytes(DataType type, const BatchNorm& op) {
    const std::size_t arithmetic = type == DataType::fp64 ? sizeof(double) : sizeof(float);
    return arithmetic * static_cast<std::size_t>(2 * (parts_of(type, op).count + 1) * op.channel_count());
}

void batch_norm_in_training(DataType type, const BatchNorm& op, In<"x"> x, In<"weight"> weight, In<"bias"> bias,
                            Out<"running_mean"> running_mean, Out<"running_var"> running_var, Out<"mean"> mean,
                            Out<"rstd"> rstd, Out<"out"> out, void* workspace, cudaStream_t stream) {
    dispatch(type, [&]<typename T>() {
        using A = Arithmetic<T>;
        auto *partial = static_cast<A*>(workspace), *means = static_cast<A*>(mean), *rstds = static_cast<A*>(rstd);
        const std::int64_t channels = op.channel_count();
        const typename ChannelMap<T, false>::Source source{
            static_cast<const T*>(weight), static_cast<const T*>(bias), means, rstds, nullptr, channels};
        run<T, false>(type, op, static_cast<const T*>(x), nullptr, source, static_cast<T*>(out), partial, stream,
                      [&](const Parts& parts) {
                          launch_behind(statistics_kernel<T>, adding_grid(op), dim3(warp, adding_warps), stream,
                                        partial, channels, parts, op.epsilon, op.momentum,
                                        static_cast<double>(op.count()), static_cast<T*>(running_mean),
                                        static_cast<T*>(running_var), means, rstds);
                      });
    });
}

void batch_norm_backward(DataType type, const BatchNorm& op, In<"x"> x, In<"dy"> dy, In<"weight"> weight,
                         In<"mean"> mean, In<"rstd"> rstd, Out<"dx"> dx, Out<"dw"> dw, Out<"db"> db, void* workspace,
                         cudaStream_t stream) {
    dispatch(type, [&]<typename T>() {
        using A = Arithmetic<T>;
        const std::int64_t channels = op.channel_count();
        A *of_dx = static_cast<A*>(workspace), *partial = of_dx + 2 * channels;
        const A *means = static_cast<const A*>(mean), *rstds = static_cast<const A*>(rstd);
        const typename ChannelMap<T, true>::Source source{
            static_cast<const T*>(weight), nullptr, means, rstds, of_dx, channels};
        run<T, true>(type, op, static_cast<const T*>(x), static_cast<const T*>(dy), source, static_cast<T*>(dx),
                     partial, stream, [&](const Parts& parts) {
                         launch_behind(gradient_sums_kernel<T>, adding_grid(op), dim3(warp, adding_warps), stream,
                                       partial, channels, static_cast<int>(parts.count),
                                       static_cast<double>(op.count()), rstds, static_cast<T*>(dw), static_cast<T*>(db),
                                       op.accumulates, of_dx);
                     });
    });
}

}  // namespace kbench::cuda
