// The provider around a user's function.
#include "bench/plan/user_kernel.h"

#include <fmt/format.h>

#include <algorithm>
#include <stdexcept>

#include "models/base/error.h"

namespace kbench {
namespace {

class UserComputation final : public Computation {
  public:
    UserComputation(const AnyKernel& kernel, const StepKind& kind, Precision precision)
        : kernel_(kernel), kind_(kind), precision_(precision) {}
    std::string implementation() const override { return kernel_.name; }
    std::size_t workspace_bytes() const override { return kernel_.workspace_bytes; }
    void run(std::span<void* const> pointers, void* workspace, void* stream) const override {
        try {
            kernel_.run(kind_, precision_, OperandCursor(pointers), workspace, stream);
        } catch (const Error&) {
            throw;
        } catch (const std::exception& error) {
            throw MeasurementError(fmt::format("{} {} by {}, {}: {}", op_name(kind_), shape_text(kind_), kernel_.name,
                                               kbench::name(precision_), error.what()));
        }
    }

  private:
    AnyKernel kernel_;
    StepKind kind_;
    Precision precision_;
};

class UserProvider final : public Provider {
  public:
    explicit UserProvider(AnyKernel kernel) : kernel_(std::move(kernel)) {}
    std::string_view name() const override { return kernel_.name; }
    std::string unsupported(const StepKind& kind, Precision precision) const override {
        if (!kernel_.is_kind(kind)) return fmt::format("has no {}", op_name(kind));
        if (!kernel_.precisions.empty() && std::ranges::count(kernel_.precisions, precision) == 0)
            return fmt::format("has no {} in {}", op_name(kind), kbench::name(precision));
        return kernel_.unsupported ? kernel_.unsupported(kind, precision) : "";
    }
    std::unique_ptr<Computation> make(const StepKind& kind, Precision precision) override {
        return std::make_unique<UserComputation>(kernel_, kind, precision);
    }
    bool on_request_only() const override { return !kernel_.by_default; }
    std::int64_t workspace_limit() const override { return static_cast<std::int64_t>(kernel_.workspace_bytes); }

  private:
    AnyKernel kernel_;
};

}  // namespace

bool register_any_kernel(AnyKernel kernel) {
    if (!kernel.run) throw std::invalid_argument(fmt::format("kernel '{}' has no function `run`", kernel.name));
    ProviderRow row{kernel.name, kernel.backend, kernel.what, {}};
    row.make = [kernel = std::move(kernel)](const ProviderContext&) { return std::make_unique<UserProvider>(kernel); };
    return register_provider(std::move(row));
}

}  // namespace kbench
