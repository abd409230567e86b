// The closed list of what is measured or stated as a ceiling of a machine.
#pragma once

#include <span>
#include <string_view>

namespace kbench {

/// A kind of ceiling. GB/s are 10^9 bytes a second, TFLOP/s 10^12 FLOPs a second, an FMA being two, and Ginst/s 10^9
/// instructions of a warp.
struct CeilingKind {
    std::string_view name;
    std::string_view unit;     ///< GB/s, TFLOP/s, Ginst/s or us
    std::string_view backend;  ///< cuda or cpu
    std::string_view what;
    bool is_measured = true;  ///< false: kbench has no probe, so only machine files have it
};
/// All kinds, in the order in which they are shown.
std::span<const CeilingKind> ceiling_kinds();
/// The kind of that name; throws std::out_of_range for a name that is not in the list.
const CeilingKind& ceiling_kind(std::string_view name);
/// Whether a GPU has as much of it as it has SMs: FLOP/s, instructions, L1 and shared memory. Throws as ceiling_kind().
bool is_within_sm(std::string_view ceiling);

/// What stands behind a ceiling's name where one core made it: cpu_dram_read_one_core.
inline constexpr std::string_view one_core_suffix = "_one_core";

}  // namespace kbench
