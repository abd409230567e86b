// Machines that nobody has to hand: datasheet roofs with their sources, from machines/*.json, embedded in the binary.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "analysis/result.h"

namespace kbench {

/// What a datasheet states. Names of roofs are those of ceilings: dram_read stands for the memory's stated bandwidth.
struct MachineFile {
    std::string id;                    ///< h200-sxm, as on the command line
    std::string name;                  ///< NVIDIA H200 SXM 141 GB
    std::string kind;                  ///< gpu or cpu
    std::vector<std::string> matches;  ///< device names, as drivers and /proc/cpuinfo give them, that are this machine
    struct RoofValue {
        std::string ceiling;
        double value = 0;    ///< in the ceiling's unit
        std::string source;  ///< document and place; or how it follows from clocks and units
    };
    std::vector<RoofValue> roofs;
    std::optional<double> memory_gb, l2_mb, tdp_w, boost_clock_mhz;
    std::optional<int> multiprocessors, cores;

    std::optional<double> roof(std::string_view ceiling) const;
};

/// All machine files, by id.
const std::vector<MachineFile>& machines();
/// By id; throws UsageError with the nearest ids.
const MachineFile& machine(std::string_view id);
/// The machine whose `matches` names the device of `environment` (the GPU if there is one and `backend` is cuda).
const MachineFile* machine_of(const Environment& environment, std::string_view backend);
/// Parses one file. Throws UsageError naming `path` and the field.
MachineFile parse_machine(const std::string& text, const std::string& path);

}  // namespace kbench
