// Ceilings of the CPU, measured by loops that do nothing else: streams through memory far larger than the caches, and
// chains of multiply-adds that never leave the registers. x86-64 only.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "kbench/result.h"

namespace kbench::cpu {

class Streams;

/// Counts up whenever a change of these loops changes what they measure; remembered ceilings are then measured again.
inline constexpr int probe_version = 2;

/// Every ceiling of the backend cpu (analysis/machine/ceilings.h), in that order, in about `seconds` in all. "All
/// cores" are OpenMP's threads as pin_threads left them; "one core" is the calling thread. With one thread, one
/// measurement serves both. Each ceiling says how many threads measured it. Takes at most a quarter of
/// `free_bytes` of memory. What the CPU cannot do is unavailable with its reason; datasheet values are left empty.
std::vector<Ceiling> measure_ceilings(double seconds, std::int64_t free_bytes);

/// Runs probes of all cores one at a time, between other work. Its arrays stay in memory as long as it lives.
class RoofReader {
  public:
    /// Takes the memory that measure_ceilings takes. Names of which this CPU has no probe, or no memory, are left out.
    RoofReader(const std::vector<std::string>& ceilings, std::int64_t free_bytes);
    ~RoofReader();

    /// The ceilings that are read.
    const std::vector<std::string>& names() const { return names_; }
    /// The second of two runs of the probe of each, in its ceiling's unit: the faster one would be above what most
    /// samples meet on a shared host. What lies in the caches is gone.
    std::vector<double> read() const;

  private:
    std::vector<std::string> names_;
    std::vector<std::function<double()>> rates_;
    std::unique_ptr<Streams> streams_;
};

/// Total bytes of a stream's three arrays. Each is four times the `cache_bytes` that it must not fit in; together they
/// are at least 256 MB and at most 4 GB and a quarter of `free_bytes`.
std::int64_t stream_bytes(std::int64_t cache_bytes, std::int64_t free_bytes);

}  // namespace kbench::cpu
