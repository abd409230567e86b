// Chains of multiply-adds by instruction set, all in registers: as many independent ones as keep every unit busy.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

namespace kbench::cpu {

/// What one round does to each element x of a chain.
enum class ChainKind {
    fma,   ///< x = x a + b, with one a and b per lane
    dot,   ///< x += a0 b0 + a1 b1, with one pair of each per lane
    tile,  ///< x += row of A times column of B; A [16, 32] and B [32, 16], both row by row
};

struct Chain {
    std::string_view ceiling;          ///< name of the ceiling that it measures, see ceilings.h
    std::string_view instruction_set;  ///< as people call it
    std::string_view needs;            ///< entries of CpuInfo::isa, separated by spaces
    ChainKind kind;
    int registers;  ///< independent accumulators
    int lanes;      ///< elements of one accumulator
    int operands;   ///< elements of `a`, and of `b`

    /// Runs `rounds` rounds. `start` and `end` have registers * lanes elements; all values are exact in the
    /// instruction's types.
    void (*run)(std::int64_t rounds, const double* a, const double* b, const double* start, double* end);

    int elements() const { return registers * lanes; }
    /// Counts an FMA as two.
    double flops_a_round() const {
        return 2.0 * elements() * (kind == ChainKind::fma ? 1 : kind == ChainKind::dot ? 2 : 32);
    }
    /// Returns "" where this CPU and its system can run it, else why not. Asks the system for AMX tiles.
    std::string unavailable() const;
};

/// All chains; none on CPUs other than x86-64.
std::span<const Chain> chains();

}  // namespace kbench::cpu
