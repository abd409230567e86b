// Chains of multiply-adds by instruction set: enough independent ones to keep every unit busy, all in registers.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

namespace kbench::cpu {

/// What one round does to each element x of the chains.
enum class ChainKind {
    fma,   ///< x = x a + b, with one a and b a lane
    dot,   ///< x += a0 b0 + a1 b1, with one pair of each a lane
    tile,  ///< x += row of A times column of B; A [16, 32] and B [32, 16], both row by row
};

struct Chain {
    std::string_view ceiling;          ///< the name of what it measures, see ceilings.h
    std::string_view instruction_set;  ///< as people call it
    std::string_view needs;            ///< of CpuInfo::isa, joined by spaces
    ChainKind kind;
    int registers;  ///< independent accumulators
    int lanes;      ///< elements of one accumulator
    int operands;   ///< elements of `a`, and of `b`

    /// Runs `rounds` rounds. `start` and `end`: registers * lanes elements; all values as the instruction's types hold
    /// them.
    void (*run)(std::int64_t rounds, const double* a, const double* b, const double* start, double* end);

    int elements() const { return registers * lanes; }
    /// An FMA is two.
    double flops_a_round() const {
        return 2.0 * elements() * (kind == ChainKind::fma ? 1 : kind == ChainKind::dot ? 2 : 32);
    }
    /// Empty where this CPU and its system can run it, else why not. Asks the system for the tiles of AMX.
    std::string unavailable() const;
};

/// All chains; none on other CPUs than x86-64.
std::span<const Chain> chains();

}  // namespace kbench::cpu
