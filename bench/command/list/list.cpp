// kbench list: what there is to choose from.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <cstdio>
#include <nlohmann/json.hpp>

#include "analysis/machine/ceilings.h"
#include "analysis/result/result_json.h"
#include "analysis/table/columns.h"
#include "analysis/table/table.h"
#include "bench/command/command.h"
#include "bench/command/options.h"
#include "bench/device/console.h"
#include "kbench/error.h"
#include "models/base/nearest.h"
#include "models/ops/table.h"
#include "models/registry.h"

namespace kbench {
namespace {

constexpr std::size_t list_width = 100;

/// "batch, seq to 1024 (n_ctx), attention fused or unfused"
std::string axes_text(const ModelSpec& model) {
    std::vector<std::string> parts;
    for (const ModelAxis& axis : model.axes) {
        std::string text(axis.name);
        if (!axis.is_count()) text += fmt::format(" {}", fmt::join(axis.words(), " or "));
        if (axis.most < ModelAxis{}.most) text += fmt::format(" to {} ({})", axis.most, axis.most_is);
        parts.push_back(std::move(text));
    }
    return fmt::format("{}", fmt::join(parts, ", "));
}

/// A model a paragraph, as a configuration alone is wider than a terminal.
void list_models() {
    for (const ModelSpec& model : builtin_models()) {
        put("{}, {} parameters\n", model.name, model.build({}).parameter_count());
        put_text(wrap("  axes: ", axes_text(model), list_width));
        put_text(wrap("  configuration: ", model.description.substr(model.description.find(": ") + 2), list_width));
    }
}

void list_ops() {
    for (const OpKind* kind : op_kinds()) put("{:<18} {:<48} {}\n", kind->name, kind->example, kind->what);
}

void list_options() {
    for (const Option& o : run_options())
        put("{:<14} {:<12} {}{}\n", o.name, o.value, o.help,
            o.fallback.empty() ? "" : fmt::format(" [{}]", o.fallback));
}

void list_columns() {
    for (const Column& column : columns()) put("{:<21} {:<10} {}\n", column.name, column.unit, column.what);
    put("Any counter of the result is a column under its own name: `kbench list metrics`.\n");
}

void list_ceilings() {
    for (const CeilingKind& kind : ceiling_kinds())
        put("{:<24} {:<8} {:<5} {}\n", kind.name, kind.unit, kind.backend, kind.what);
}

void list_schema() { put("{}", to_text(result_json_schema(), 150)); }

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
                                {"machines", nullptr, list_machines},
                                {"schema", list_schema}};

}  // namespace

std::vector<std::string> list_words() {
    std::vector<std::string> words;
    for (const Subject& subject : subjects) words.emplace_back(subject.name);
    return words;
}

int list_command(const std::vector<std::string>& arguments, const std::string&) {
    for (const Subject& subject : subjects) {
        if (subject.list_with != nullptr && !arguments.empty() && arguments[0] == subject.name) {
            subject.list_with({arguments.begin() + 1, arguments.end()});
            return 0;
        }
        if (arguments.size() == 1 && arguments[0] == subject.name) {
            subject.list();
            return 0;
        }
    }
    const std::string names = fmt::format("{}", fmt::join(list_words(), ", "));
    if (arguments.size() == 1 && (arguments[0] == "--help" || arguments[0] == "-h")) {
        put("kbench list WHAT: {}\n", names);
        return 0;
    }
    if (arguments.empty()) throw UsageError(fmt::format("list what? {}", names));
    const std::string asked = fmt::format("{}", fmt::join(arguments, " "));
    throw UsageError(fmt::format("cannot list '{}'; {}", asked, nearest_name(asked, list_words())));
}

}  // namespace kbench
