// The iterations of a process, and the names that another run of it has for them.
#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "analysis/program/iterations.h"
#include "analysis/program/program_file.h"
#include "analysis/program/symbols.h"

namespace kbench {

/// Iterations in the records, and where the names of an iteration's activities are.
struct Joined {
    Iterations found;
    const ProgramFile* named = nullptr;  ///< null: the names are not of the same kernels, or there are none
    std::size_t named_begin = 0;
    std::string refused = {};  ///< why names were left out
};

/// `names` may be null. Throws UsageError where no range has the name `from`, which may be empty.
Joined join_names(const ProgramFile& records, const ProgramFile* names, const std::string& from);

/// Where two iterations first differ, from 1, and what each of them does there.
struct OtherWork {
    std::size_t place = 0;
    std::string one, other;
};
/// Nothing where both do the same. They may begin at other kernels.
std::optional<OtherWork> first_difference(const Symbols& symbols, std::vector<Symbol> one,
                                          std::span<const Symbol> other);

}  // namespace kbench
