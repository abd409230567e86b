// Who computes a step. A provider is a table of rows, one for each op kind that it computes: in which directions and
// precisions, what along with it, what not, and how. That table is the one place that decides.
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

/// A step made ready on this device: descriptors, algorithm, packed layouts. Owns no operand memory.
class Computation {
  public:
    virtual ~Computation() = default;

    /// The kernel or library implementation that runs, such as "attention_mma<...>" or "brg:avx512_core_amx".
    virtual std::string implementation() const = 0;
    virtual std::size_t workspace_bytes() const { return 0; }

    /// FLOPs of the step's cost that its algorithm does without, such as those of a convolution by Winograd's.
    virtual double spared_flops() const { return 0; }

    /// How often a result is rounded to the type it is stored in: 2 where a second pass reads what a first has stored.
    virtual int roundings() const { return 1; }

    /// Bytes of the layout this computation wants operand `index` (a weight) in; nothing when plain will do.
    virtual std::optional<std::size_t> packed_bytes(std::size_t /*index*/) const { return std::nullopt; }
    virtual void pack(std::size_t /*index*/, const void* /*plain*/, void* /*packed*/) const {}

    /// Enqueues on `stream` (a cudaStream_t; null on a CPU, where it computes). `pointers` is parallel to
    /// operands(step). Where the last op of the step adds what it reads besides (a residual), that operand and the
    /// output may be the same memory.
    virtual void run(std::span<void* const> pointers, void* workspace, void* stream) const = 0;

    /// Where a dependent step's time goes, measured by running the same work again on the same operands; waits for the
    /// device. Nothing where no kernel has clocks for it.
    virtual std::optional<StepAccount> account(std::span<void* const> /*pointers*/, void* /*workspace*/,
                                               void* /*stream*/) const {
        return std::nullopt;
    }
};

/// A computation from a function, for providers whose calls need no state of their own but a workspace.
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
        void run(std::span<void* const> pointers, void* workspace, void* stream) const override {
            run_(OperandCursor(pointers), workspace, stream);
        }

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

/// Kinds that are computed along with the one that names the step, in order of execution.
using Absorbed = std::vector<std::string_view>;

/// A row of a provider's table: one op kind as it computes it. A kind may have several rows, say for precisions that
/// absorb differently.
struct ProviderOp {
    const OpKind* kind = nullptr;
    std::vector<Direction> directions = {Direction::fwd};
    std::vector<Precision> precisions = {all_precisions.begin(), all_precisions.end()};
    std::vector<Absorbed> absorbs = {};  ///< besides nothing
    bool absorbs_anything = false;
    /// Also steps that keep what the head makes, or an op behind it (Step::keeps_results).
    bool leaves_results = false;
    /// Steps that a plan has only where `--provider` names the provider: as a rule they are faster apart.
    bool on_request_only = false;
    /// Empty when it computes this step, else why not, in a few words; for what the fields above cannot say.
    std::function<std::string(const Step& step, Precision precision)> why_not = {};
    /// Called for steps that the row takes. Throws Unsupported when the library refuses after all.
    std::function<std::unique_ptr<Computation>(const Step& step, Precision precision)> make = {};
};

/// A row whose functions are given the op itself, too: `Computes<LayerNorm>{.absorbs = {{"residual"}}, .make = ...}`.
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
    /// Empty when it can compute in `precision` here at all, else why not.
    std::function<std::string(Precision precision)> lacks = {};
    bool on_request_only = false;      ///< computes only what `--provider` gives it
    bool packs_weights = false;        ///< weights of products are kept in a packed copy of about their own size
    std::int64_t workspace_limit = 0;  ///< the largest workspace that a computation of it asks for
    /// One line each about what went on while making computations (an ignored cache file, for example).
    std::function<std::vector<std::string>()> warnings = {};

    /// Empty when some row takes the step; otherwise why the one that comes nearest does not, in a few words.
    std::string unsupported(const Step& step, Precision precision) const;
    /// Whether it takes the step only where `--provider` names it.
    bool takes_on_request_only(const Step& step, Precision precision) const;
    /// Throws Unsupported.
    std::unique_ptr<Computation> make(const Step& step, Precision precision) const;

  private:
    const ProviderOp* row_of(const Step& step, Precision precision) const;
};

/// What providers may need to know when they are made.
struct ProviderContext {
    std::filesystem::path algorithm_cache = {};  ///< file of measured GEMM algorithms
    bool retune = false;
    bool deterministic = false;  ///< no choice may hang on a time, and sums are made in one order
    int multiprocessors = 0;     ///< of a GPU that it may use; 0: all
};

/// One row for each provider of this build, preferred first within a backend; registered ones come last.
struct ProviderRow {
    std::string name;
    BackendKind backend;
    std::string what;
    std::function<std::unique_ptr<Provider>(const ProviderContext&)> make;
};

/// Adds a provider from outside kbench, before main or at its beginning; kernel.h has a shorter way for a single
/// kernel. Returns true, so that a constant may be initialised with it. Throws std::invalid_argument where its backend
/// has a provider of that name, or --provider could not name it.
bool register_provider(ProviderRow row);

}  // namespace kbench
