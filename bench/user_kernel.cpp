// The provider around a user's function.
#include "bench/user_kernel.h"

namespace kbench {
namespace {

class UserComputation final : public Computation {
  public:
    UserComputation(const UserKernel& kernel, const StepKind& kind, Precision precision)
        : kernel_(kernel), kind_(kind), precision_(precision) {}
    std::string implementation() const override { return kernel_.name; }
    std::size_t workspace_bytes() const override { return kernel_.workspace_bytes; }
    void run(std::span<void* const> pointers, void* workspace, void* stream) const override {
        kernel_.run(kind_, precision_, OperandCursor(pointers), workspace, stream);
    }

  private:
    UserKernel kernel_;
    StepKind kind_;
    Precision precision_;
};

class UserProvider final : public Provider {
  public:
    explicit UserProvider(UserKernel kernel) : kernel_(std::move(kernel)) {}
    std::string_view name() const override { return kernel_.name; }
    std::string unsupported(const StepKind& kind, Precision precision) const override {
        return kernel_.unsupported(kind, precision);
    }
    std::unique_ptr<Computation> make(const StepKind& kind, Precision precision) override {
        return std::make_unique<UserComputation>(kernel_, kind, precision);
    }
    bool on_request_only() const override { return !kernel_.by_default; }
    std::int64_t workspace_limit() const override { return static_cast<std::int64_t>(kernel_.workspace_bytes); }

  private:
    UserKernel kernel_;
};

}  // namespace

bool register_kernel(UserKernel kernel) {
    ProviderRow row{kernel.name, kernel.backend, kernel.what, {}};
    row.make = [kernel = std::move(kernel)](const ProviderContext&) { return std::make_unique<UserProvider>(kernel); };
    return register_provider(std::move(row));
}

}  // namespace kbench
