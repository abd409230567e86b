// The kernels, copies and fills of a process as a sequence of numbers, in which what is repeated can be found.
//
//     kbench::Symbols symbols;
//     const std::vector<kbench::Symbol> of_records = symbols.of(records), of_names = symbols.of(names);
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "analysis/program/program_file.h"

namespace kbench {

/// Equal for equal work: a kernel's name, grid and block; a copy's direction and bytes; a fill's bytes.
using Symbol = std::uint32_t;

/// Numbers what it sees in the order in which it sees it; the same number in every file that it is given.
class Symbols {
  public:
    /// The symbol of each activity, in order.
    std::vector<Symbol> of(const ProgramFile& file);
    /// What a symbol stands for: "gemm<64> 8x1x1 of 128x1x1", "copy HtoD of 4096 bytes".
    const std::string& text(Symbol symbol) const { return texts_[symbol]; }

  private:
    std::map<std::string, Symbol, std::less<>> symbols_;
    std::vector<std::string> texts_;
};

}  // namespace kbench
