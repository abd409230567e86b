// Machines that nobody has to hand: datasheet roofs with their sources, from machines/*.json, embedded in the binary.
// Pure functions of text; bench/command/machine_path.h reads files of users. How to add one: docs/machines.md.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "kbench/result.h"

namespace kbench {

/// What a datasheet states. Names of roofs are those of ceilings: dram_read stands for the memory's stated bandwidth.
struct MachineFile {
    std::string id;    ///< h200-sxm, as on the command line
    std::string name;  ///< NVIDIA H200 SXM 141 GB
    std::string kind;  ///< gpu or cpu
    /// Device names, as drivers and /proc/cpuinfo give them, that are this machine; upper and lower case are equal. One
    /// that ends in * stands for every name that begins so.
    std::vector<std::string> matches;
    struct RoofValue {
        std::string ceiling;
        double value = 0;    ///< in the ceiling's unit; never a rate that counts on sparse operands
        std::string source;  ///< document and place; or how it follows from clocks and units
    };
    std::vector<RoofValue> roofs;
    std::optional<double> memory_gb, l2_mb, tdp_w, boost_clock_mhz;
    std::optional<int> multiprocessors;
    std::optional<int> cores;  ///< a CPU's socket has, which its roofs are for
    std::string note;          ///< what one must know to use its figures; empty where there is nothing
    std::string no_bandwidth;  ///< why scaled_to left out what it states of memory; empty where it did not

    std::optional<double> roof(std::string_view ceiling) const;
    /// Its backend, as results name it: cuda or cpu.
    std::string_view backend() const { return kind == "gpu" ? "cuda" : "cpu"; }
};

/// All machine files, by id.
const std::vector<MachineFile>& machines();
/// By id; throws UsageError with the nearest ids.
const MachineFile& machine(std::string_view id);
/// The machine whose `matches` names the device of `environment` (the GPU if there is one and `backend` is cuda); the
/// one that is named without * among several; nullptr where there is none.
const MachineFile* machine_of(const Environment& environment, std::string_view backend);
/// `machine` as `environment` has it. A virtual machine shows some of a socket's cores, a server several sockets:
/// compute roofs are for all cores that the host has, memory bandwidth for its whole sockets, at least one, since cores
/// share it; the name says how many cores. With fewer threads than cores compute roofs are for those, and there is none
/// of memory: no datasheet says how much of it some cores can use. Where only some SMs of a GPU were used, the roofs of
/// what is in an SM (FLOP/s, L1, shared memory) are for those; DRAM and L2 are as the file says; name and sources
/// say how many. Any other GPU, and a CPU without `cores`, is as its file says.
MachineFile scaled_to(const MachineFile& machine, const Environment& environment);

/// "NVIDIA H200", or "NVIDIA H200, 96 of its 132 SMs" where only these were used.
std::string device_name(const GpuInfo& gpu);
/// Parses one file. Throws UsageError naming `path` and the field.
MachineFile parse_machine(const std::string& text, const std::string& path);

/// The embedded files.
struct MachineText {
    std::string_view name, text;
};
std::span<const MachineText> machine_texts();

}  // namespace kbench
