// kbench list providers: who computes, and with --ops what, in which precisions, on this machine.
#include <fmt/format.h>

#include <algorithm>

#include "analysis/table/table.h"
#include "bench/command/command.h"
#include "bench/device/device.h"
#include "bench/plan/device_support.h"
#include "bench/plan/fuse.h"
#include "models/base/error.h"
#include "models/gpt2.h"
#include "models/registry.h"

namespace kbench {
namespace {

constexpr std::size_t unbounded = 10'000;

/// The ops of GPT-2 at sequence length 1024, each a step of its own, in the order of op_kinds.
std::vector<Step> single_ops() {
    std::vector<Step> steps;
    for (const AttentionKind attention : {AttentionKind::fused, AttentionKind::unfused})
        for (Step& step : steps_of(make_gpt2(find_model("gpt2"), 1, 1024, attention), 1, 1))
            if (std::ranges::none_of(steps, [&](const Step& other) { return other.kind == step.kind; }))
                steps.push_back(std::move(step));
    return steps;
}

void add_rows(Table& table, const Device& device) {
    const std::vector<Step> steps = single_ops();
    for (const auto& provider : make_providers(device.kind(), {}))
        for (const OpKind& op : op_kinds) {
            std::vector<std::string> row{std::string(name(device.kind())), std::string(provider->name()),
                                         std::string(op.name)};
            bool computes = false;
            for (const Precision precision : all_precisions) {
                const bool here =
                    unsupported(device, precision).empty() && std::ranges::any_of(steps, [&](const Step& step) {
                        return op_name(step.kind) == op.name && provider->unsupported(step.kind, precision).empty();
                    });
                row.emplace_back(here ? "yes" : "-");
                computes = computes || here;
            }
            if (computes) table.add_row(std::move(row));
        }
}

void list_ops_of_providers() {
    std::vector<TableColumn> columns{{"where", Align::left}, {"provider", Align::left}, {"op", Align::left}};
    for (const Precision precision : all_precisions) columns.push_back({std::string(name(precision))});
    Table table(columns);
    std::string missing;
#ifdef KBENCH_HAVE_CUDA
    if (const std::string why = cuda_unavailable(); why.empty())
        add_rows(table, *make_cuda_device());
    else
        missing = fmt::format("cuda: no usable GPU: {}\n", why);
#endif
    add_rows(table, *make_cpu_device());
    fmt::print("{}{}Shapes of gpt2, every op a step of its own; - where provider or device cannot.\n",
               table.text(0, unbounded), missing);
}

}  // namespace

void list_providers(const std::vector<std::string>& options) {
    if (options.empty()) {
        for (const ProviderRow& row : provider_rows())
            fmt::print("{:<5} {:<15} {}\n", name(row.backend), row.name, row.what);
        return;
    }
    if (options != std::vector<std::string>{"--ops"})
        throw UsageError(fmt::format("list providers '{}': takes --ops", options.front()));
    list_ops_of_providers();
}

}  // namespace kbench
