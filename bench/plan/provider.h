// Who computes a step: the interface of providers, and the table that lists them.
// A provider is one file under provider/ (CPU) or cuda/ (GPU) and one row in provider.cpp: docs/adding-a-provider.md.
#pragma once

#include <cstddef>
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "bench/device/device.h"
#include "bench/plan/step.h"

namespace kbench {

/// A step made ready on this device: descriptors, algorithm, packed layouts. Owns no operand memory.
class Computation {
  public:
    virtual ~Computation() = default;

    /// The kernel or library implementation that runs, such as "attention_mma<...>" or "brg:avx512_core_amx".
    virtual std::string implementation() const = 0;
    virtual std::size_t workspace_bytes() const { return 0; }

    /// How often a result is rounded to the type it is stored in: 2 where a second pass reads what a first has stored.
    virtual int roundings() const { return 1; }

    /// Bytes of the layout this computation wants operand `index` (a weight) in; nothing when plain will do.
    virtual std::optional<std::size_t> packed_bytes(std::size_t /*index*/) const { return std::nullopt; }
    virtual void pack(std::size_t /*index*/, const void* /*plain*/, void* /*packed*/) const {}

    /// Enqueues on `stream` (a cudaStream_t; null on a CPU, where it computes). `pointers` is parallel to
    /// operands(kind).
    virtual void run(std::span<void* const> pointers, void* workspace, void* stream) const = 0;
};

class Provider {
  public:
    virtual ~Provider() = default;
    virtual std::string_view name() const = 0;

    /// Empty when this provider can compute `kind` in `precision` here; otherwise why not, in a few words.
    virtual std::string unsupported(const StepKind& kind, Precision precision) const = 0;
    /// Throws Unsupported when the library refuses after all.
    virtual std::unique_ptr<Computation> make(const StepKind& kind, Precision precision) = 0;
    /// Whether it computes only what `--provider` gives it.
    virtual bool on_request_only() const { return false; }
    /// Whether weights of products are kept in a packed copy of about their own size.
    virtual bool packs_weights() const { return false; }
    /// The largest workspace that a computation of this provider asks for.
    virtual std::int64_t workspace_limit() const { return 0; }
    /// One line each about what went on while making computations (an ignored cache file, for example).
    virtual std::vector<std::string> warnings() const { return {}; }
};

/// What providers may need to know when they are made.
struct ProviderContext {
    std::filesystem::path algorithm_cache;  ///< file of measured GEMM algorithms
    bool retune = false;
};

/// One row for each provider of this build, preferred first within a backend; registered ones come last.
struct ProviderRow {
    std::string name;
    BackendKind backend;
    std::string what;
    std::function<std::unique_ptr<Provider>(const ProviderContext&)> make;
};
std::span<const ProviderRow> provider_rows();

/// Adds a provider from outside kbench, before main or at its beginning; see user_kernel.h for a kernel of one's own.
/// Returns true, so that a constant may be initialised with it. Throws std::invalid_argument where its backend has a
/// provider of that name, or --provider could not name it.
bool register_provider(ProviderRow row);

/// The providers of one backend, in the order of the table.
std::vector<std::unique_ptr<Provider>> make_providers(BackendKind backend, const ProviderContext& context);

/// Takes the pointers of a step's operands one after another, skipping those the step does not have. One `next` a
/// statement: C++ may evaluate the arguments of a call in any order.
class OperandCursor {
  public:
    explicit OperandCursor(std::span<void* const> pointers) : pointers_(pointers) {}
    template <class T = void>
    T* next() {
        return static_cast<T*>(pointers_[index_++]);
    }
    void* next_if(bool present) { return present ? next() : nullptr; }

  private:
    std::span<void* const> pointers_;
    std::size_t index_ = 0;
};

/// A computation from two functions, for providers whose calls need no state of their own.
template <class Run>
std::unique_ptr<Computation> make_computation(std::string implementation, Run run, int roundings = 1) {
    class Simple final : public Computation {
      public:
        Simple(std::string text, Run function, int roundings)
            : text_(std::move(text)), run_(std::move(function)), roundings_(roundings) {}
        std::string implementation() const override { return text_; }
        int roundings() const override { return roundings_; }
        void run(std::span<void* const> pointers, void* workspace, void* stream) const override {
            run_(OperandCursor(pointers), workspace, stream);
        }

      private:
        std::string text_;
        Run run_;
        int roundings_;
    };
    return std::make_unique<Simple>(std::move(implementation), std::move(run), roundings);
}

}  // namespace kbench
