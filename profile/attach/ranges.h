// The ranges that are open on each thread, one within the other.
#pragma once

#include <cstdint>
#include <string_view>

namespace kbench::attach {

/// Begins a range of this thread. Ranges of one `domain` end in reverse order; those of two need not. The depth within
/// the domain is returned.
int push_range(std::string_view text, const void* domain);
/// Ends the last one of `domain`; returns the depth that is left, or -2 where there is none.
int pop_range(const void* domain);
/// The innermost range that is open on this thread; 0 without one.
std::uint32_t current_range();

}  // namespace kbench::attach
