// The clock of a core, without a counter or a privilege. x86-64 only.
#pragma once

namespace kbench::cpu {

/// The calling core's current clock, from the time of a chain of dependent adds, each of which takes one cycle on every
/// x86-64 (Agner Fog, Instruction tables); 0 where the time is not plausible. Takes about 0.1 ms.
double core_clock_mhz();

}  // namespace kbench::cpu
