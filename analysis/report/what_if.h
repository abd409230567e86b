// How expectations for another machine are told.
#pragma once

#include <nlohmann/json.hpp>
#include <optional>
#include <span>

#include "analysis/compare/what_if.h"
#include "analysis/report/document.h"

namespace kbench {

struct CheckedWhatIf {
    WhatIf answer;
    std::optional<WhatIfCheck> check;  ///< nothing: no measurement there
};

/// By point the expected latency with its interval, by the binding roof there, by op kind and by layer, or why there is
/// none; then what all of them assume, once. What only some assume stands with these.
Document what_if_document(std::span<const CheckedWhatIf> points);

/// The same for other programs, an object a point: both machines, milliseconds.
nlohmann::ordered_json what_if_json(std::span<const CheckedWhatIf> points);

}  // namespace kbench
