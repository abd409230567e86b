// A kernel of the user's own as a provider: verified, timed, counted and set against the roofs like kbench's own.
//
//     const bool registered = kbench::register_kernel({
//         .name = "mine",
//         .backend = kbench::BackendKind::cuda,
//         .what = "one warp a row",
//         .unsupported = [](const kbench::StepKind& kind, kbench::Precision) -> std::string {
//             return std::holds_alternative<kbench::NormStep>(kind) ? "" : "computes layer norm only";
//         },
//         .run = [](const kbench::StepKind& kind, kbench::Precision precision, kbench::OperandCursor operands, void*,
//                   void* stream) { ... },
//     });
#pragma once

#include <cstddef>
#include <functional>
#include <string>

#include "bench/provider.h"

namespace kbench {

struct UserKernel {
    std::string name;  ///< for --provider
    BackendKind backend = BackendKind::cuda;
    std::string what;  ///< one line for `kbench list providers`

    /// Empty when it computes `kind` in `precision`, else why not, in a few words. Step kinds: step.h.
    std::function<std::string(const StepKind& kind, Precision precision)> unsupported;
    /// Enqueues on `stream` (a cudaStream_t; null on a CPU, where it computes). `operands` gives the pointers in the
    /// order of operands(kind), step.h; they are the device's, row-major, rows `stride` elements apart. `workspace` has
    /// `workspace_bytes`.
    std::function<void(const StepKind& kind, Precision precision, OperandCursor operands, void* workspace,
                       void* stream)>
        run;
    std::size_t workspace_bytes = 0;
    /// Whether models use it without --provider too, where no built-in provider computes a step.
    bool by_default = false;
};

/// As register_provider.
bool register_kernel(UserKernel kernel);

}  // namespace kbench
