// Kernels and op kinds of the user's own: verified, timed, counted and compared with the roofs like kbench's. A program
// that links kbench::main and registers them is a kbench that has them; docs/user-kernel.md shows a whole one.
//
//     const bool registered = kbench::register_kernel<kbench::LayerNorm>({
//         .name = "mine",
//         .backend = kbench::BackendKind::cuda,
//         .what = "layer norm, one warp a row",
//         .precisions = {kbench::Precision::fp32},
//         .run = [](const kbench::LayerNorm& norm, const kbench::KernelCall& call) { ... },
//     });
#pragma once

#include <cstddef>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "kbench/provider.h"
#include "kbench/reference.h"

namespace kbench {

/// One call of a kernel: what it computes on, and where.
struct KernelCall {
    const Step& step;
    Precision precision;
    /// Hands out the pointers one after another, in the order of the op's operands: device pointers to row-major
    /// arrays of storage_type(precision), aligned to 256 bytes.
    OperandCursor operands;
    void* workspace;  ///< workspace_bytes of scratch memory
    void* stream;     ///< a cudaStream_t; null on a CPU
};

/// A kernel for ops of kind T: one of kbench's own (kbench/ops/) or the user's.
template <OpStruct T>
struct UserKernel {
    std::string name;  ///< what --provider names it by; kernels for several kinds may share it
    BackendKind backend = BackendKind::cuda;
    std::string what = {};                                 ///< one line for `kbench list providers`
    std::vector<Precision> precisions = {};                ///< the precisions that it computes in; empty: all
    std::vector<Direction> directions = {Direction::fwd};  ///< the directions that it computes

    /// Enqueues on the stream, or computes on a CPU. It must neither allocate nor synchronise, because it is captured
    /// into a CUDA graph. An exception from it fails the step.
    std::function<void(const T& op, const KernelCall& call)> run = {};

    /// Op kinds that it computes along with the op, such as {{"bias", "residual"}} in front of a layer norm. kbench
    /// computes all others as steps of their own.
    std::vector<Absorbed> absorbs = {};
    /// Returns "" when it computes `step`, else why not in a few words. Left out: it computes every step of the kind.
    std::function<std::string(const T& op, const Step& step, Precision precision)> unsupported = {};
    std::size_t workspace_bytes = 0;
    /// Whether models also use it without --provider, for steps that no built-in provider computes.
    bool by_default = false;
};

/// A UserKernel whose op type is erased, as the registry keeps it.
struct AnyKernel {
    std::string name;
    BackendKind backend;
    std::string what;
    ProviderOp row;  ///< its `make` calls the two functions below
    std::function<void(const KernelCall& call)> run;
    std::size_t workspace_bytes;
    bool by_default;
};
bool register_any_kernel(AnyKernel kernel);

/// Registers the kernel as register_provider does. Throws std::invalid_argument also where `run` is missing.
template <OpStruct T>
bool register_kernel(UserKernel<T> kernel) {
    ProviderOp row{&op_kind<T>(), std::move(kernel.directions)};
    if (!kernel.precisions.empty()) row.precisions = std::move(kernel.precisions);
    row.absorbs = std::move(kernel.absorbs);
    if (kernel.unsupported)
        row.why_not = [function = std::move(kernel.unsupported)](const Step& step, Precision precision) {
            return function(step.as<T>(), step, precision);
        };
    std::function<void(const KernelCall&)> run;
    if (kernel.run)
        run = [function = std::move(kernel.run)](const KernelCall& call) { function(call.step.as<T>(), call); };
    return register_any_kernel({std::move(kernel.name), kernel.backend, std::move(kernel.what), std::move(row),
                                std::move(run), kernel.workspace_bytes, kernel.by_default});
}

/// An op kind of the user's own: what its outputs should be, so that every provider of it is verified.
template <OpStruct T>
struct UserOp {
    /// Expected values in fp64, in the order of the question's elements; reference.h says what bounds their error.
    std::function<std::vector<reference::Expected>(const T& op, reference::Question question)> expected = {};
    /// The work for one expected value; left out: one multiply-add.
    std::function<reference::ElementCost(const T& op)> cost = {};
};

void register_any_op(const OpKind& kind,
                     std::function<std::vector<reference::Expected>(const reference::Question&)> expected,
                     std::function<reference::ElementCost(const Op&)> cost);

/// Returns true. Throws std::invalid_argument where there is a kind of that name already, `expected` is missing, or
/// --op could not name it.
template <OpStruct T>
bool register_op(UserOp<T> op) {
    std::function<std::vector<reference::Expected>(const reference::Question&)> expected;
    if (op.expected)
        expected = [function = std::move(op.expected)](const reference::Question& question) {
            return function(question.step.as<T>(), question);
        };
    std::function<reference::ElementCost(const Op&)> cost = [](const Op&) { return reference::ElementCost{}; };
    if (op.cost) cost = [function = std::move(op.cost)](const Op& any) { return function(*any.get_if<T>()); };
    register_any_op(op_kind<T>(), std::move(expected), std::move(cost));
    return true;
}

}  // namespace kbench
