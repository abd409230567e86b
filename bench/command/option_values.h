// Values that options of several commands take.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "bench/measure/machine/ceilings.h"
#include "bench/profile/counters.h"
#include "kbench/axes.h"
#include "kbench/precision.h"
#include "models/registry.h"

namespace kbench {

/// All of these throw UsageError that says what would be right.
/// A comma-separated list of numbers of at least 1; `option` names them in the error.
std::vector<std::int64_t> whole_numbers(std::string_view option, const std::string& text);
/// The value of an axis's option; a comma-separated list where it sweeps, and of words also all.
std::vector<AxisValue> axis_values(const Axis& axis, const std::string& text);
/// Whether a model's shapes depend on the axis: lengths within a padded batch change none.
bool is_of_shapes(const Axis& axis);
/// A finite number that is not negative, all of `text`; nothing for anything else.
std::optional<double> plain_number(std::string_view text);
/// "3%" or "0.03".
double parse_share(std::string_view option, const std::string& text);
/// Before time is spent on what cannot be kept: `file` must lie in a directory that can be written to, or in
/// `made_later`.
void check_can_write(std::string_view option, const std::filesystem::path& file,
                     const std::filesystem::path& made_later = {});
/// Whether both name one file, one that is there or one that is not yet, however its folder is spelt.
bool is_same_file(const std::filesystem::path& a, const std::filesystem::path& b);
/// What --model names or --config holds; throws UsageError unless one of them is given.
ModelSpec model_asked_for(const std::string& model, const std::string& config_file);
/// --precision: a comma-separated list, or all.
std::vector<Precision> parse_precisions(const std::string& text);
/// --precision where it takes no list; `otherwise` is what is said to one.
Precision parse_one_precision(const std::string& text, std::string_view otherwise = "must be one");
/// The name of the precision that `text` spells, in any letter case: half and Float16 are fp16. Any other text as it
/// is.
std::string spelt_out(const std::string& text);
/// --counters: none, core, full or sets.
void set_counters(CounterRequest& request, const std::string& text);
/// --ceilings: auto, measure or none.
CeilingPolicy parse_ceiling_policy(const std::string& text);

}  // namespace kbench
