// Two numberings: of the file's texts, so that a name is demangled once, and of what is launched.
#include "analysis/program/symbols.h"

#include <fmt/format.h>

#include <tuple>

#include "analysis/machine/kernel_name.h"

namespace kbench {
namespace {

using Launched = std::tuple<ActivityKind, std::int64_t, std::array<std::int64_t, 3>, std::array<std::int64_t, 3>,
                            std::int64_t, std::string>;

/// What tells one activity of a file from another.
Launched launched(const ProgramActivity& activity) {
    const bool is_kernel = activity.kind == ActivityKind::kernel;
    return {activity.kind, activity.name, activity.grid, activity.block, is_kernel ? 0 : activity.bytes, activity.what};
}

/// The activity in words, as Symbols::text.
std::string activity_text(const ProgramFile& file, const ProgramActivity& activity) {
    switch (activity.kind) {
        case ActivityKind::copy: return fmt::format("copy {} of {} bytes", activity.what, activity.bytes);
        case ActivityKind::fill: return fmt::format("fill of {} bytes", activity.bytes);
        case ActivityKind::kernel: break;
    }
    return fmt::format("{} {}x{}x{} of {}x{}x{}", short_kernel_name(demangled(file.text(activity.name))),
                       activity.grid[0], activity.grid[1], activity.grid[2], activity.block[0], activity.block[1],
                       activity.block[2]);
}

}  // namespace

std::vector<Symbol> Symbols::of(const ProgramFile& file) {
    std::map<Launched, Symbol> of_file;
    std::vector<Symbol> sequence;
    sequence.reserve(file.activities.size());
    for (const ProgramActivity& activity : file.activities) {
        const auto [known, is_new] = of_file.try_emplace(launched(activity), 0);
        if (is_new) {
            // Short names may be equal where mangled ones are not.
            const std::string text = activity_text(file, activity);
            const auto [symbol, is_first] =
                symbols_.try_emplace(file.text(activity.name) + "\n" + text, static_cast<Symbol>(texts_.size()));
            if (is_first) texts_.push_back(text);
            known->second = symbol->second;
        }
        sequence.push_back(known->second);
    }
    return sequence;
}

}  // namespace kbench
