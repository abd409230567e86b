// A recurrent layer of both directions as cuDNN has it, with the product of its input: its numbers on the host, and
// what the fp64 reference makes of them. Knows no device.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "kbench/op.h"
#include "kbench/precision.h"
#include "models/ops/recurrent.h"

namespace kbench::cudnn {

struct RecurrentProblem {
    Cell cell = Cell::lstm;
    Precision precision = Precision::fp16;
    std::int64_t hidden = 1024, batch = 1, steps = 100, input = 8;
};

/// A matrix of normal numbers, of the type that the problem stores.
struct HostMatrix {
    DataType type;
    std::int64_t rows, columns;
    std::vector<std::byte> data;

    HostMatrix(DataType stored, std::int64_t r, std::int64_t c, double deviation, const std::string& name);
    std::vector<double> wide() const;
};

/// What a direction of the op makes, in parts that are compared one by one. fwd: h [steps * batch, 2 hidden]. bwd: dx
/// [steps * batch, input]. wgrad: dweight_ih, dweight_hh, dbias_ih and dbias_hh, forward, then reverse.
using Parts = std::vector<std::vector<double>>;

/// The largest ||a - b|| / ||b|| of a part; infinity where it is no number.
double largest_error(const Parts& a, const Parts& b);

struct RecurrentLayer {
    explicit RecurrentLayer(const RecurrentProblem& of);
    /// The gradient of h; made when it is asked for, as it is large.
    HostMatrix dy() const;
    Parts reference(Direction direction) const;

    struct Weights {
        HostMatrix ih, hh, bias_ih, bias_hh;
    };
    RecurrentProblem problem;
    HostMatrix x;                  ///< has twice the steps
    std::vector<Weights> weights;  ///< forward, reverse
};

}  // namespace kbench::cudnn
