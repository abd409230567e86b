// kbench list: what there is to choose from.
#include <fmt/format.h>

#include <cstdio>

#include "analysis/machine/ceilings.h"
#include "analysis/table/columns.h"
#include "bench/command/command.h"
#include "bench/command/options.h"
#include "models/base/error.h"
#include "models/registry.h"

namespace kbench {
namespace {

void list_models() {
    fmt::print("{:<22} {:>14} {:>7} {:>6} {:>6} {:>6} {:>10}\n", "model", "parameters", "layers", "width", "heads",
               "n_ctx", "vocabulary");
    for (const Gpt2Config& c : builtin_models())
        fmt::print("{:<22} {:>14} {:>7} {:>6} {:>6} {:>6} {:>10}\n", c.name,
                   make_gpt2(c, 1, 1, AttentionKind::fused).parameter_count(), c.n_layer, c.n_embd, c.n_head, c.n_ctx,
                   c.vocab_size);
}

void list_ops() {
    for (const OpKind& kind : op_kinds) fmt::print("{:<18} {}\n", kind.name, kind.what);
}

void list_options() {
    for (const Option& o : run_options())
        fmt::print("{:<14} {:<12} {}{}\n", o.name, o.value, o.help,
                   o.fallback.empty() ? "" : fmt::format(" [{}]", o.fallback));
}

void list_columns() {
    for (const Column& column : columns()) fmt::print("{:<21} {:<10} {}\n", column.name, column.unit, column.what);
    fmt::print("Any counter of the result is a column under its own name: `kbench list metrics`.\n");
}

void list_ceilings() {
    for (const CeilingKind& kind : ceiling_kinds())
        fmt::print("{:<24} {:<8} {:<5} {}\n", kind.name, kind.unit, kind.backend, kind.what);
}

struct Subject {
    std::string_view name;
    void (*list)();
    void (*list_with)(const std::vector<std::string>& options) = nullptr;  ///< instead, where there are options
};
constexpr Subject subjects[] = {{"models", list_models},
                                {"ops", list_ops},
                                {"providers", nullptr, list_providers},
                                {"options", list_options},
                                {"columns", list_columns},
                                {"metrics", nullptr, list_metrics},
                                {"ceilings", list_ceilings},
                                {"machines", nullptr, list_machines}};

}  // namespace

int list_command(const std::vector<std::string>& arguments, const std::string&) {
    std::string names;
    for (const Subject& subject : subjects) {
        if (subject.list_with != nullptr && !arguments.empty() && arguments[0] == subject.name) {
            subject.list_with({arguments.begin() + 1, arguments.end()});
            return 0;
        }
        if (arguments.size() == 1 && arguments[0] == subject.name) {
            subject.list();
            return 0;
        }
        names += fmt::format("{}{}", names.empty() ? "" : ", ", subject.name);
    }
    if (arguments.size() == 1 && (arguments[0] == "--help" || arguments[0] == "-h")) {
        fmt::print("kbench list WHAT: {}\n", names);
        return 0;
    }
    throw UsageError(arguments.empty() ? fmt::format("list what? {}", names)
                                       : fmt::format("cannot list '{}'; one of {}", fmt::join(arguments, " "), names));
}

}  // namespace kbench
