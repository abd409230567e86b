// OpenMP threads share rows, or chunks where rows do not matter. Each is one vectorised call.
#include "cpu/native/activation.h"

#include <algorithm>

namespace kbench::cpu {
namespace {

/// Elements per chunk where rows do not matter: enough to amortise the call, few enough to share among threads.
constexpr std::int64_t chunk = 4096;

struct Same {
    template <class T>
    static T of(T x) {
        return x;
    }
};
template <Activation f>
struct Activated {
    template <class T>
    static T of(T x) {
        return activated_vector<f>(x);
    }
};

template <class Function, bool has_bias, class T>
void row_of(std::int64_t width, const T* x, const T* bias, T* out) {
#pragma omp simd
    for (std::int64_t c = 0; c < width; ++c) {
        Compute<T> value = load(x[c]);
        if constexpr (has_bias) value += load(bias[c]);
        store(out[c], Function::of(value));
    }
}

template <class Function>
void rows_of(DataType type, std::int64_t rows, std::int64_t width, const void* x, const void* bias, void* out) {
    with_element(type, [&]<class T>(T) {
#pragma omp parallel for schedule(static)
        for (std::int64_t row = 0; row < rows; ++row) {
            const T* from = static_cast<const T*>(x) + row * width;
            const T* b = static_cast<const T*>(bias);
            T* to = static_cast<T*>(out) + row * width;
            if (b)
                vectorised([=] { row_of<Function, true>(width, from, b, to); });
            else
                vectorised([=] { row_of<Function, false>(width, from, b, to); });
        }
    });
}

template <Activation f>
void gradient(DataType type, std::int64_t count, const void* x, const void* dy, void* dx) {
    with_element(type, [&]<class T>(T) {
#pragma omp parallel for schedule(static)
        for (std::int64_t begin = 0; begin < count; begin += chunk) {
            const std::int64_t size = std::min(chunk, count - begin);
            const T* at = static_cast<const T*>(x) + begin;
            const T* from = static_cast<const T*>(dy) + begin;
            T* to = static_cast<T*>(dx) + begin;
            vectorised([=] {
#pragma omp simd
                for (std::int64_t i = 0; i < size; ++i) store(to[i], load(from[i]) * slope_vector<f>(load(at[i])));
            });
        }
    });
}

}  // namespace

void bias_activation(DataType type, std::int64_t rows, std::int64_t width, In<"x"> x, In<"bias?"> bias,
                     std::optional<Activation> function, Out<"out"> out) {
    if (!function) return rows_of<Same>(type, rows, width, x, bias, out);
    with_activation(*function, [&]<Activation f>() { rows_of<Activated<f>>(type, rows, width, x, bias, out); });
}

void activation_gradient(DataType type, Activation function, std::int64_t count, In<"x"> x, In<"dy"> dy, Out<"dx"> dx) {
    with_activation(function, [&]<Activation f>() { gradient<f>(type, count, x, dy, dx); });
}

void swiglu(DataType type, const SwiGlu& op, In<"gate_up"> gate_up, Out<"out"> out) {
    // A row alone is a token that is generated: it is shared among threads, too.
    const std::int64_t chunks = (op.width + chunk - 1) / chunk;
    with_element(type, [&]<class T>(T) {
#pragma omp parallel for schedule(static)
        for (std::int64_t task = 0; task < op.rows * chunks; ++task) {
            const std::int64_t row = task / chunks, first = task % chunks * chunk;
            const std::int64_t count = std::min(chunk, op.width - first);
            const T* gate = static_cast<const T*>(gate_up) + row * 2 * op.width + first;
            const T* up = gate + op.width;
            T* to = static_cast<T*>(out) + row * op.width + first;
            vectorised([=] {
#pragma omp simd
                for (std::int64_t c = 0; c < count; ++c)
                    store(to[c], activated_vector<Activation::silu>(load(gate[c])) * load(up[c]));
            });
        }
    });
}

}  // namespace kbench::cpu
