// The answer to what people ask first: is it bandwidth-bound?
#pragma once

#include <string_view>

namespace kbench {

enum class BandwidthAnswer { no, cannot_tell, yes };
inline constexpr std::string_view bandwidth_answers[] = {"no", "cannot tell", "yes"};
constexpr std::string_view name(BandwidthAnswer answer) { return bandwidth_answers[static_cast<int>(answer)]; }

}  // namespace kbench
