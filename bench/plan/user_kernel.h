// A kernel of the user's own as a provider: verified, timed, counted and set against the roofs like kbench's own. It
// computes one kind of step; what computes several is a Provider (provider.h). docs/user-kernel.md shows all of it.
//
//     const bool registered = kbench::register_kernel<kbench::NormStep>({
//         .name = "mine",
//         .backend = kbench::BackendKind::cuda,
//         .what = "layer norm, one warp a row",
//         .precisions = {kbench::Precision::fp32},
//         .run = [](const kbench::NormStep& step, kbench::Precision precision, kbench::OperandCursor operands, void*,
//                   void* stream) { ... },
//     });
#pragma once

#include <cstddef>
#include <functional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "bench/plan/provider.h"

namespace kbench {

/// A kernel for steps of type `Kind`, one of StepKind (step.h).
template <class Kind>
struct UserKernel {
    std::string name;  ///< for --provider
    BackendKind backend = BackendKind::cuda;
    std::string what = {};                   ///< one line for `kbench list providers`
    std::vector<Precision> precisions = {};  ///< those that it computes in; empty: all

    /// Enqueues on `stream` (a cudaStream_t; null on a CPU, where it computes). `operands` gives the pointers one after
    /// another, in the order of the comment at `Kind` in step.h: the device's, row-major, 256-byte aligned, elements of
    /// storage_type(precision). `workspace` has `workspace_bytes`. Neither allocates nor synchronises: it is captured
    /// into a CUDA graph. What it throws fails the step.
    std::function<void(const Kind& step, Precision precision, OperandCursor operands, void* workspace, void* stream)>
        run = {};

    /// Empty when it computes `step`, else why not, in a few words; may be left out. A step with more fused to it than
    /// is wanted is best refused: kbench then computes those ops apart.
    std::function<std::string(const Kind& step, Precision precision)> unsupported = {};
    std::size_t workspace_bytes = 0;
    /// Whether models use it without --provider too, where no built-in provider computes a step.
    bool by_default = false;
};

/// A UserKernel without its type.
struct AnyKernel {
    std::string name;
    BackendKind backend;
    std::string what;
    std::vector<Precision> precisions;
    std::function<bool(const StepKind&)> is_kind;
    std::function<std::string(const StepKind&, Precision)> unsupported;
    std::function<void(const StepKind&, Precision, OperandCursor, void* workspace, void* stream)> run;
    std::size_t workspace_bytes;
    bool by_default;
};
bool register_any_kernel(AnyKernel kernel);

/// As register_provider. Throws std::invalid_argument also where `run` is missing.
template <class Kind>
bool register_kernel(UserKernel<Kind> kernel) {
    AnyKernel any{
        std::move(kernel.name), kernel.backend,   std::move(kernel.what), std::move(kernel.precisions), {}, {}, {},
        kernel.workspace_bytes, kernel.by_default};
    any.is_kind = [](const StepKind& kind) { return std::holds_alternative<Kind>(kind); };
    if (kernel.unsupported)
        any.unsupported = [function = std::move(kernel.unsupported)](const StepKind& kind, Precision precision) {
            return function(std::get<Kind>(kind), precision);
        };
    if (kernel.run)
        any.run = [function = std::move(kernel.run)](const StepKind& kind, Precision precision, OperandCursor operands,
                                                     void* workspace, void* stream) {
            function(std::get<Kind>(kind), precision, operands, workspace, stream);
        };
    return register_any_kernel(std::move(any));
}

}  // namespace kbench
