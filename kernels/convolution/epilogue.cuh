// What a convolution kernel does with a finished sum before it is stored.
#pragma once

#include "kbench/lengths.h"
#include "kernels/convolution/conv2d.h"
#include "kernels/types.cuh"

namespace kbench::cuda {

/// Conv2dEpilogue with the kernel's types: T is stored, Arithmetic<T> computed in.
template <typename T>
struct Epilogue {
    using A = Arithmetic<T>;
    const T* bias;
    const T *weight, *shift, *mean, *variance;
    Conv2dMask masks[3];
    double epsilon;
    A low, high;
    bool chain;

    explicit Epilogue(const Conv2dEpilogue& e)
        : bias(static_cast<const T*>(e.bias)),
          weight(static_cast<const T*>(e.weight)),
          shift(static_cast<const T*>(e.shift)),
          mean(static_cast<const T*>(e.mean)),
          variance(static_cast<const T*>(e.variance)),
          masks{e.masks[0], e.masks[1], e.masks[2]},
          epsilon(e.epsilon),
          low(static_cast<A>(e.low)),
          high(static_cast<A>(e.high)),
          chain(e.chain) {}

    /// Its numbers for one filter.
    struct Channel {
        A bias, center, scale, shift;
    };
    __device__ Channel channel(std::int64_t k) const {
        Channel c{bias ? static_cast<A>(bias[k]) : A{0}, A{0}, A{1}, A{0}};
        if (chain) {
            c.center = static_cast<A>(mean[k]);
            c.scale = static_cast<A>(weight[k]) / sqrt(static_cast<A>(variance[k]) + static_cast<A>(epsilon));
            c.shift = static_cast<A>(shift[k]);
        }
        return c;
    }

    /// Its numbers for one image: the column from which on each mask makes zeros.
    struct Ends {
        int masks[3];
    };
    __device__ Ends ends(std::int64_t n, int columns) const {
        Ends e{{columns, columns, columns}};
        if (chain)
#pragma unroll
            for (int i = 0; i < 3; ++i)
                e.masks[i] = static_cast<int>(steps_of(masks[i].lengths[n], masks[i].frames_per_step, columns));
        return e;
    }

    /// NaN stays NaN, because a comparison with it is false.
    __device__ A operator()(A sum, const Channel& c, const Ends& e, int column) const {
        A value = sum + c.bias;
        if (!chain) return value;
        if (column >= e.masks[0]) value = 0;
        value = (value - c.center) * c.scale + c.shift;
        if (column >= e.masks[1]) value = 0;
        value = value < low ? low : value;
        value = value > high ? high : value;
        return column >= e.masks[2] ? A{0} : value;
    }
};

}  // namespace kbench::cuda
