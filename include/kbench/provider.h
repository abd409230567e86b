// Who computes a step. A provider is a table of rows, one per op kind: the directions and precisions that it computes,
// what it fuses, what it refuses and how it runs. That table is the one place that decides.
//
//     const bool registered = kbench::register_provider({
//         .name = "mine",
//         .backend = kbench::BackendKind::cpu,
//         .what = "layer norm in plain C++",
//         .make = [](const kbench::ProviderContext&) {
//             auto mine = std::make_unique<kbench::Provider>();
//             // make_layer_norm returns make_computation("my_layer_norm", [=](const kbench::Call& call) { ... })
//             mine->ops.push_back(kbench::Computes<kbench::LayerNorm>{.make = make_layer_norm});
//             return mine;
//         },
//     });
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "kbench/backend.h"
#include "kbench/step.h"
#include "kbench/step_account.h"

namespace kbench {

/// What a computation works on in one call.
struct Call {
    std::span<void* const> operands;  ///< parallel to operands(step)
    void* workspace = nullptr;        ///< workspace_bytes of scratch memory
    void* stream = nullptr;           ///< a cudaStream_t; null on a CPU
};

/// A step made ready on this device, with its descriptors, algorithm and packed layouts. Owns no operand memory.
class Computation {
  public:
    virtual ~Computation() = default;

    /// The kernel or library implementation that runs, such as "attention_mma<...>" or "brg:avx512_core_amx".
    virtual std::string implementation() const = 0;
    virtual std::size_t workspace_bytes() const { return 0; }

    /// FLOPs in the step's cost that its algorithm does not execute, such as those that Winograd convolution saves.
    virtual double spared_flops() const { return 0; }

    /// How often a result is rounded to its storage type: 2 where a second pass reads what the first one stored.
    virtual int roundings() const { return 1; }

    /// Bytes of operand `index` (a weight) in the packed layout of this computation; nothing when plain will do.
    virtual std::optional<std::size_t> packed_bytes(std::size_t /*index*/) const { return std::nullopt; }
    virtual void pack(std::size_t /*index*/, const void* /*plain*/, void* /*packed*/) const {}

    /// Enqueues on the call's stream; on a CPU it computes. Where the step's last op adds another operand (a residual),
    /// that operand and the output may be the same memory.
    virtual void run(const Call& call) const = 0;

    /// Where the time of a time step goes, measured by running the same work again on the same operands. Waits for
    /// the device. Nothing where no kernel has clocks for it.
    virtual std::optional<StepAccount> account(const Call& /*call*/) const { return std::nullopt; }

    /// The computation of `grown`, a larger step of the same kind, by the very same algorithm: tiles, stages and parts
    /// of a sum. Null: what the provider makes of it is the same where its implementation() is. Throws Unsupported
    /// where the algorithm cannot be kept.
    virtual std::unique_ptr<Computation> resized(const Step& /*grown*/, Precision /*precision*/) const {
        return nullptr;
    }
};

/// Makes a computation from a function of a Call, for providers that keep no state but a workspace.
template <class Run>
std::unique_ptr<Computation> make_computation(std::string implementation, Run run, int roundings = 1,
                                              std::size_t workspace_bytes = 0, double spared_flops = 0) {
    class Simple final : public Computation {
      public:
        Simple(std::string text, Run function, int times, std::size_t bytes, double spared)
            : text_(std::move(text)),
              run_(std::move(function)),
              roundings_(times),
              workspace_bytes_(bytes),
              spared_flops_(spared) {}
        std::string implementation() const override { return text_; }
        std::size_t workspace_bytes() const override { return workspace_bytes_; }
        int roundings() const override { return roundings_; }
        double spared_flops() const override { return spared_flops_; }
        void run(const Call& call) const override { run_(call); }

      private:
        std::string text_;
        Run run_;
        int roundings_;
        std::size_t workspace_bytes_;
        double spared_flops_;
    };
    return std::make_unique<Simple>(std::move(implementation), std::move(run), roundings, workspace_bytes,
                                    spared_flops);
}

/// Op kinds that are computed along with the head op, in order of execution.
using Absorbed = std::vector<std::string_view>;

/// A row of a provider's table: how it computes one op kind. A kind may have several rows, for example for precisions
/// that fuse different kinds.
struct ProviderOp {
    const OpKind* kind = nullptr;
    std::vector<Direction> directions = {Direction::fwd};
    std::vector<Precision> precisions = {all_precisions.begin(), all_precisions.end()};
    std::vector<Absorbed> absorbs = {};  ///< the fusions that it computes; the op alone always is one
    bool absorbs_anything = false;
    /// Whether it also takes steps that store what the head, or an op after it, makes (Step::keeps_results).
    bool leaves_results = false;
    /// Whether plans use the row only where `--provider` names the provider: these steps are usually faster apart.
    bool on_request_only = false;
    /// Returns "" when it computes this step, else why not in a few words. For limits that the fields above cannot say.
    std::function<std::string(const Step& step, Precision precision)> why_not = {};
    /// Called only for steps that the row takes. Throws Unsupported when the library refuses after all.
    std::function<std::unique_ptr<Computation>(const Step& step, Precision precision)> make = {};
};

/// A row whose functions also receive the op itself: `Computes<LayerNorm>{.absorbs = {{"residual"}}, .make = ...}`.
template <OpStruct T>
struct Computes {
    std::vector<Direction> directions = {Direction::fwd};
    std::vector<Precision> precisions = {all_precisions.begin(), all_precisions.end()};
    std::vector<Absorbed> absorbs = {};
    bool leaves_results = false;
    bool on_request_only = false;
    std::function<std::string(const T& op, const Step& step, Precision precision)> why_not = {};
    std::function<std::unique_ptr<Computation>(const T& op, const Step& step, Precision precision)> make;

    operator ProviderOp() && {
        ProviderOp row{&op_kind<T>(), std::move(directions), std::move(precisions), std::move(absorbs)};
        row.leaves_results = leaves_results;
        row.on_request_only = on_request_only;
        if (why_not)
            row.why_not = [function = std::move(why_not)](const Step& step, Precision precision) {
                return function(step.as<T>(), step, precision);
            };
        row.make = [function = std::move(make)](const Step& step, Precision precision) {
            return function(step.as<T>(), step, precision);
        };
        return row;
    }
};

struct Provider {
    std::string name;
    std::vector<ProviderOp> ops;
    /// Returns "" when it can compute in `precision` on this machine at all, else why not.
    std::function<std::string(Precision precision)> lacks = {};
    bool on_request_only = false;      ///< computes only what `--provider` gives it
    bool packs_weights = false;        ///< keeps a packed copy of the products' weights, about as large as they are
    std::int64_t workspace_limit = 0;  ///< the largest workspace that any of its computations asks for
    /// One line for each incident while computations were made (an ignored cache file, for example).
    std::function<std::vector<std::string>()> warnings = {};

    /// "" when some row takes the step; otherwise why the row that comes closest does not, in a few words.
    std::string unsupported(const Step& step, Precision precision) const;
    /// Whether it takes the step only when `--provider` names it.
    bool takes_on_request_only(const Step& step, Precision precision) const;
    /// Makes the computation; throws Unsupported where no row takes the step.
    std::unique_ptr<Computation> make(const Step& step, Precision precision) const;

  private:
    const ProviderOp* row_of(const Step& step, Precision precision) const;
};

/// What a provider may need to know when it is made.
struct ProviderContext {
    std::filesystem::path algorithm_cache = {};  ///< file of measured GEMM algorithms
    bool retune = false;
    bool deterministic = false;  ///< timings must not influence any choice, and sums have a fixed order
    int multiprocessors = 0;     ///< SMs of the GPU that it may use; 0: all
    void* stream = nullptr;      ///< where its work will run (a cudaStream_t); null on a CPU
};

/// One row per provider of this build, preferred first within a backend. Registered ones come last.
struct ProviderRow {
    std::string name;
    BackendKind backend;
    std::string what;
    std::function<std::unique_ptr<Provider>(const ProviderContext&)> make;
};

/// Adds a provider from outside kbench, before main or at its beginning; kernel.h has a shorter way for a single
/// kernel. Always returns true, so that a global constant can call it. Throws std::invalid_argument where the backend
/// already has a provider of that name, or where --provider could not name it.
bool register_provider(ProviderRow row);

}  // namespace kbench
