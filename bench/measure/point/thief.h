// A thief that keeps some SMs, or a CPU's cores, from other work: while it runs it takes a share of DRAM's or L2's
// bandwidth, or only computes, or nothing.
//
//     const std::unique_ptr<Thief> thief = make_thief(device, 20);
//     thief->start(Taken::dram, 600e9);
//     ...                                // on the device's stream; nothing may wait for all streams
//     if (!thief->is_running()) ...      // its deadline came first
//     thief->stop();
#pragma once

#include <memory>

#include "analysis/facts/point_facts.h"
#include "analysis/machine/ceilings.h"
#include "bench/device/device.h"
#include "bench/device/fewer_threads.h"

namespace kbench {

class Thief {
  public:
    virtual ~Thief() = default;  ///< stops it

    /// Begins to take so many bytes a second, or as many as it can for 0, in place of what it took before. It keeps its
    /// SMs until it is stopped, or ends by itself 8 s after the first start; on a CPU after any.
    virtual void start(Taken what, double bytes_per_s) = 0;
    /// Whether it has come to no end since it was started.
    virtual bool is_running() = 0;
    /// Ends it and waits for that, some 100 us.
    virtual void stop() = 0;

    /// What it has taken since it was started; two of them tell the rate between.
    struct Count {
        double bytes = 0, seconds = 0;
    };
    virtual Count count() const = 0;
};

/// A thief on so many SMs of a GPU, which must outlive it and be idle whenever the thief starts. Takes memory of 8
/// times L2 and reads DRAM from there. Throws DeviceError where that cannot be had.
std::unique_ptr<Thief> make_thief(Device& device, int multiprocessors);

/// How many of a GPU's SMs a thief leaves the work. Throws DeviceError where they are too few to be divided.
int multiprocessors_beside_thief(int all);

/// A device as work and a thief share it, while this lives.
struct DeviceWithThief {
    int workers = 0;  ///< the work's: SMs, or threads of a CPU
    Roofs roofs;      ///< the thief takes shares of these
    /// A CPU's work has fewer threads meanwhile, and must be made for them; null where it keeps all.
    std::unique_ptr<FewerThreads> fewer_threads;
    std::unique_ptr<Thief> thief;
};

/// Divides `device`, which must outlive what comes. `roofs` are its own; a CPU's DRAM may give more to all cores than
/// to the work's threads, which is measured. Throws DeviceError where work and thief have no room beside each other.
DeviceWithThief share_with_thief(Device& device, const Roofs& roofs);

}  // namespace kbench
