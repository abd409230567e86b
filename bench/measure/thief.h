// A thief on SMs of its own: while it runs it takes a share of DRAM's or L2's bandwidth, or only computes.
//
//     const SplitDevice split = split_cuda_device(112, ordinal);
//     const std::unique_ptr<Thief> thief = make_thief(*split.rest);
//     thief->start(Taken::dram, 600e9);
//     ...                                // on split.part; nothing may wait for the whole device
//     if (!thief->is_running()) ...      // its deadline came first
//     thief->stop();
#pragma once

#include <memory>

#include "analysis/facts/point_facts.h"
#include "bench/device/device.h"

namespace kbench {

class Thief {
  public:
    virtual ~Thief() = default;  ///< stops it

    /// Begins to take so many bytes a second, or as many as it can for 0. It ends by itself after 2 s. Stops what it
    /// did before.
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

/// A thief on all SMs of `rest`, which must outlive it. Takes memory of 8 times L2 and reads DRAM from there. Throws
/// DeviceError where that cannot be had.
std::unique_ptr<Thief> make_thief(Device& rest);

}  // namespace kbench
