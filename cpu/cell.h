// The equations of recurrent cells for one unit and one step, for vector loops. Internal to cpu/.
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

/// The unit's next h, as in Recurrent. a(g) and b(g) are the sums of gate g over the input and over h, each with its
/// bias. Only LSTMs read and write `c`. `save(gate, value)` receives the gates that training keeps.
template <Cell cell, class C, class A, class B, class Save>
inline C next_h(const A& a, const B& b, C h, C& c, const Save& save) {
    if constexpr (cell == Cell::lstm) {
        const C i = sigmoid_vector(a(0) + b(0)), f = sigmoid_vector(a(1) + b(1));
        const C g = tanh_vector(a(2) + b(2)), o = sigmoid_vector(a(3) + b(3));
        save(0, i), save(1, f), save(2, g), save(3, o);
        c = f * c + i * g;
        return o * tanh_vector(c);
    } else if constexpr (cell == Cell::gru) {
        const C r = sigmoid_vector(a(0) + b(0)), z = sigmoid_vector(a(1) + b(1));
        const C of_n = b(2), n = tanh_vector(a(2) + r * of_n);
        save(0, r), save(1, z), save(2, n), save(3, of_n);
        return (C(1) - z) * n + z * h;
    } else {
        return tanh_vector(a(0) + b(0));
    }
}

/// The unit's backward step, as in Recurrent, given all of dh and `saved(gate)`. `state` is the LSTM's c or the others'
/// h in this step, `before` the same in the step before (0 in the first). `carry` passes to the step before what does
/// not go through the product: an LSTM's dc, a GRU's dh. `put(gate, da, db)` is called for each gate.
template <Cell cell, class C, class Saved, class Put>
inline void step_back(const Saved& saved, C state, C before, C dh, C& carry, const Put& put) {
    if constexpr (cell == Cell::lstm) {
        const C i = saved(0), f = saved(1), g = saved(2), o = saved(3), tanh_c = tanh_vector(state);
        const C dc = carry + o * dh * (C(1) - tanh_c * tanh_c);
        const C di = g * dc * (i * (C(1) - i)), df = before * dc * (f * (C(1) - f));
        const C dg = i * dc * (C(1) - g * g), d_o = dh * tanh_c * (o * (C(1) - o));
        carry = f * dc;
        put(0, di, di), put(1, df, df), put(2, dg, dg), put(3, d_o, d_o);
    } else if constexpr (cell == Cell::gru) {
        const C r = saved(0), z = saved(1), n = saved(2), of_n = saved(3);
        const C dn = dh * (C(1) - z) * (C(1) - n * n), dz = dh * (before - n) * (z * (C(1) - z));
        const C dr = dn * of_n * (r * (C(1) - r));
        carry = dh * z;
        put(0, dr, dr), put(1, dz, dz), put(2, dn, r * dn);
    } else {
        const C da = dh * (C(1) - state * state);
        put(0, da, da);
    }
}

}  // namespace kbench::cpu
