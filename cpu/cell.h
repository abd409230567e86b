// The equations of recurrent cells, of one unit in one step, for vector loops. Internal to cpu/.
#pragma once

#include "cpu/vector.h"
#include "models/ops/recurrent.h"

namespace kbench::cpu {

template <class C>
inline C sigmoid_vector(C x) {
    return C(1) / (C(1) + exp2_vector(-log2_e<C> * x));
}
template <class C>
inline C tanh_vector(C x) {
    return C(2) / (C(1) + exp2_vector(C(-2) * log2_e<C> * x)) - C(1);
}

/// The unit's next h, as Recurrent has it: a(g) and b(g) are what gate g adds up of the input and of h, both with their
/// bias. `c` is read and written by LSTMs alone.
template <Cell cell, class C, class A, class B>
inline C next_h(const A& a, const B& b, C h, C& c) {
    if constexpr (cell == Cell::lstm) {
        const C i = sigmoid_vector(a(0) + b(0)), f = sigmoid_vector(a(1) + b(1));
        const C g = tanh_vector(a(2) + b(2)), o = sigmoid_vector(a(3) + b(3));
        c = f * c + i * g;
        return o * tanh_vector(c);
    } else if constexpr (cell == Cell::gru) {
        const C r = sigmoid_vector(a(0) + b(0)), z = sigmoid_vector(a(1) + b(1));
        const C n = tanh_vector(a(2) + r * b(2));
        return (C(1) - z) * n + z * h;
    } else {
        return tanh_vector(a(0) + b(0));
    }
}

}  // namespace kbench::cpu
