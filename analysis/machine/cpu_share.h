// In words: the CPU time that a process did not get, and what held the device back.
#pragma once

#include <string>
#include <string_view>

#include "kbench/records.h"

namespace kbench {

/// "2 % waiting for a CPU, 0 % stolen by the hypervisor; 31 involuntary switches, load 2.1": what is not known is left
/// out, and starved samples and quotas are named where there are some.
std::string cpu_share_text(const CpuShare& share);

/// The same of what was not got, shortly: "2 % waiting for a CPU, 4 starved samples repeated"; empty where nothing was.
std::string cpu_share_lost(const CpuShare& share);

/// What happened `meanwhile` and what to do about it, by what took the most; empty where the process was not starved.
std::string starvation_warning(const CpuShare& share, std::string_view meanwhile = "samples were taken");

/// What throttled the device: named where it was seen, "none seen" only where something looked, else "not known" with
/// the reason; "none recorded" of files that do not say whether something looked. A quota's periods, too.
std::string throttling_text(const Conditions& conditions);

}  // namespace kbench
