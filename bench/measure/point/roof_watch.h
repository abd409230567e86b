// A CPU's roofs between the samples of a point. Other programs take bandwidth and cores of a shared host for seconds or
// minutes; a roof that was measured at another time than the work says little of what the work could get.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "analysis/machine/ceilings.h"
#include "bench/device/device.h"
#include "bench/measure/point/sampler.h"
#include "bench/profile/machine_state.h"
#include "kbench/result.h"

namespace kbench {

struct RoofSource {
    std::vector<std::string> names;
    /// One value each, or none at all where the process lacked its CPUs meanwhile.
    std::function<std::vector<double>()> read;
};

class RoofWatch {
  public:
    /// `now_s` gives the time in seconds.
    explicit RoofWatch(RoofSource source, std::function<double()> now_s = steady_s);

    /// Reads the roofs where it is time to: at first, and then so seldom that this takes below a tenth of the time.
    /// Then runs `refill`, if any, so that what ran before is in the caches again; that counts as reading. Returns
    /// whether it did.
    bool look(const std::function<void()>& refill = {});

    /// How long all looks have taken.
    double spent_s() const { return spent_s_; }

    /// All that was read, by roof; none of which nothing was.
    std::vector<RoofReadings> readings() const;

  private:
    static double steady_s();

    RoofSource source_;
    std::function<double()> now_s_;
    double next_s_ = 0, spent_s_ = 0;
    bool has_looked_ = false;
    std::vector<RoofReadings> readings_;
};

/// The watch of a point in `precision` on `device`, over cpu_ceilings_of. Null on a GPU, without roofs, and where the
/// time budget allows a trial alone. `machine` must outlive it.
std::unique_ptr<RoofWatch> make_roof_watch(Device& device, MachineState& machine, const Roofs& roofs,
                                           Precision precision, const SamplerOptions& sampler);

/// Why times of `conditions` say little of this machine by itself: what was read of a roof between the samples is below
/// half of `roofs`. Empty where it is not.
std::string disturbance_warning(const Roofs& roofs, const Conditions& conditions);

/// A forward that takes less is run once more after a reading, untimed. What takes longer moves more than caches hold.
inline constexpr double short_forward_ms = 100;

/// `chunk` with a look before each. `watch` may be null and must outlive it.
std::function<std::vector<double>()> watched(std::function<std::vector<double>()> chunk, RoofWatch* watch);

}  // namespace kbench
