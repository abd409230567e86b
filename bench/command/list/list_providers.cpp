// kbench list providers: who computes, and with --ops what, in which precisions, on this machine.
#include <fmt/format.h>

#include <algorithm>

#include "analysis/table/table.h"
#include "bench/command/command.h"
#include "bench/device/console.h"
#include "bench/device/device.h"
#include "bench/plan/device_support.h"
#include "bench/plan/provider.h"
#include "kbench/error.h"
#include "models/ops/table.h"
#include "models/problem.h"

namespace kbench {
namespace {

constexpr std::size_t unbounded = 10'000;

/// Every op kind alone, in the shape of its example.
std::vector<Step> single_ops() {
    std::vector<Step> steps;
    for (const OpKind* kind : op_kinds()) steps.push_back(parse_problem(kind->name, example_shape(*kind)));
    return steps;
}

void add_rows(Table& table, const Device& device) {
    const std::vector<Step> steps = single_ops();
    for (const auto& provider : make_providers(device.kind(), {}))
        for (const Step& step : steps) {
            std::vector<std::string> row{std::string(name(device.kind())), provider->name, std::string(op_name(step))};
            bool computes = false;
            for (const Precision precision : all_precisions) {
                const bool here =
                    unsupported(device, precision).empty() && provider->unsupported(step, precision).empty();
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
    try {
        add_rows(table, *make_cuda_device());
    } catch (const DeviceError& error) {
        missing = fmt::format("cuda: {}\n", error.what());
    }
#endif
    add_rows(table, *make_cpu_device());
    put("{}{}Shapes of `kbench list ops`, every op a step of its own; - where provider or device cannot.\n",
        table.text(0, unbounded), missing);
}

}  // namespace

void list_providers(const std::vector<std::string>& options) {
    if (options.empty()) {
        for (const ProviderRow& row : provider_rows()) put("{:<5} {:<15} {}\n", name(row.backend), row.name, row.what);
        return;
    }
    if (options != std::vector<std::string>{"--ops"})
        throw UsageError(fmt::format("list providers '{}': takes --ops", options.front()));
    list_ops_of_providers();
}

}  // namespace kbench
