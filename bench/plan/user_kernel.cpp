// Makes providers of functions from outside, and adds rows for them and for op kinds to the tables.
#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <stdexcept>

#include "cpu/reference/reference.h"
#include "kbench/error.h"
#include "kbench/kernel.h"
#include "models/ops/table.h"

namespace kbench {
namespace {

class UserComputation final : public Computation {
  public:
    UserComputation(const AnyKernel& kernel, Step step, Precision precision)
        : name_(kernel.name),
          run_(kernel.run),
          workspace_bytes_(kernel.workspace_bytes),
          step_(std::move(step)),
          precision_(precision) {}
    std::string implementation() const override { return name_; }
    std::size_t workspace_bytes() const override { return workspace_bytes_; }
    void run(const Call& call) const override {
        try {
            run_({step_, precision_, OperandCursor(call.operands), call.workspace, call.stream});
        } catch (const Error&) {
            throw;
        } catch (const std::exception& error) {
            throw MeasurementError(fmt::format("{} {} by {}, {}: {}", op_name(step_), shape_text(step_), name_,
                                               name(precision_), error.what()));
        }
    }

  private:
    std::string name_;
    std::function<void(const KernelCall&)> run_;
    std::size_t workspace_bytes_;
    Step step_;
    Precision precision_;
};

/// Kernels that share a name are one provider.
using KernelsByName = std::map<std::pair<std::string, BackendKind>, std::vector<AnyKernel>>;
KernelsByName& registered() {
    static KernelsByName kernels;
    return kernels;
}

std::unique_ptr<Provider> make_user_provider(const std::vector<AnyKernel>& kernels) {
    Provider provider{.name = kernels.front().name, .ops = {}, .on_request_only = true};
    for (const AnyKernel& kernel : kernels) {
        ProviderOp& row = provider.ops.emplace_back(kernel.row);
        row.make = [kernel](const Step& step, Precision precision) {
            return std::make_unique<UserComputation>(kernel, step, precision);
        };
        if (kernel.by_default) provider.on_request_only = false;
        provider.workspace_limit =
            std::max(provider.workspace_limit, static_cast<std::int64_t>(kernel.workspace_bytes));
    }
    return std::make_unique<Provider>(std::move(provider));
}

}  // namespace

bool register_any_kernel(AnyKernel kernel) {
    if (!kernel.run) throw std::invalid_argument(fmt::format("kernel '{}' has no function `run`", kernel.name));
    const std::pair key{kernel.name, kernel.backend};
    const auto known = registered().find(key);
    if (known == registered().end()) {
        register_provider({kernel.name, kernel.backend, kernel.what,
                           [key](const ProviderContext&) { return make_user_provider(registered().at(key)); }});
        registered()[key].push_back(std::move(kernel));
        return true;
    }
    for (const AnyKernel& other : known->second)
        if (other.row.kind == kernel.row.kind)
            throw std::invalid_argument(fmt::format("{} has a kernel '{}' for {} already", name(kernel.backend),
                                                    kernel.name, kernel.row.kind->name));
    known->second.push_back(std::move(kernel));
    return true;
}

void register_any_op(const OpKind& kind,
                     std::function<std::vector<reference::Expected>(const reference::Question&)> expected,
                     std::function<reference::ElementCost(const Op&)> cost) {
    if (!expected) throw std::invalid_argument(fmt::format("op kind '{}' has no function `expected`", kind.name));
    add_op_kind(kind);
    reference::add_row(
        {&kind, std::move(expected), [cost = std::move(cost)](const Op& op, Direction) { return cost(op); }});
}

}  // namespace kbench
