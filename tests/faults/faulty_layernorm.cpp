// A right layer norm for the CPU, provider `faulty`, that fails as fault.h says: as a user's kernel or the kernel's
// killer of processes would.
#include <signal.h>

#include <cmath>
#include <cstdint>
#include <cstring>
#include <memory>
#include <stdexcept>

#include "kbench/kernel.h"
#include "models/ops/layernorm.h"
#include "tests/faults/fault.h"

namespace kbench::faults {
namespace {

/// What a test's control group lets nobody have; no more, in case there is none.
constexpr std::size_t too_much = std::size_t{3} << 29;

/// Volatile: of what it knows to be no address a compiler makes what it likes.
volatile std::uintptr_t nowhere = 16;

void fail(std::int64_t rows) {
    if (is_due(rows, "throw")) throw std::runtime_error("as asked for");
    if (is_due(rows, "kill")) raise(SIGKILL);
    if (is_due(rows, "segfault")) *reinterpret_cast<volatile int*>(nowhere) = 1;
    if (is_due(rows, "memory")) {
        static std::unique_ptr<char[]> kept;
        kept = std::make_unique_for_overwrite<char[]>(too_much);
        std::memset(kept.get(), 1, too_much);
    }
}

void run(const LayerNorm& norm, const KernelCall& call) {
    fail(norm.rows);
    OperandCursor operands = call.operands;
    const auto* x = operands.next<const float>();
    const auto* weight = operands.next<const float>();
    const auto* bias = operands.next<const float>();
    auto* out = operands.next<float>();
    for (std::int64_t row = 0; row < norm.rows; ++row, x += norm.width, out += norm.width) {
        double sum = 0, squares = 0;
        for (std::int64_t i = 0; i < norm.width; ++i) sum += static_cast<double>(x[i]);
        const double mean = sum / static_cast<double>(norm.width);
        for (std::int64_t i = 0; i < norm.width; ++i) squares += std::pow(static_cast<double>(x[i]) - mean, 2);
        const double rstd = 1 / std::sqrt(squares / static_cast<double>(norm.width) + norm.epsilon);
        for (std::int64_t i = 0; i < norm.width; ++i)
            out[i] = static_cast<float>((static_cast<double>(x[i]) - mean) * rstd * static_cast<double>(weight[i]) +
                                        static_cast<double>(bias[i]));
    }
}

const bool registered = register_kernel<LayerNorm>({
    .name = "faulty",
    .backend = BackendKind::cpu,
    .what = "layer norm that fails on request",
    .precisions = {Precision::fp32},
    .run = run,
});

}  // namespace
}  // namespace kbench::faults
