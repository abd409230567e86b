// CUPTI's profiler host API: what a chip can count and in how many passes. Works without a GPU.
// Collecting the counters is not done here: that needs a context on the device.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <vector>

#include "profile/cupti/cupti_check.h"

struct CUpti_Profiler_Host_Object;

namespace kbench::cuda {

/// Where the CUPTI of this program lies; empty where it is not known.
std::filesystem::path cupti_folder();

/// Every chip that this CUPTI knows: "GA100", "GH100", ...
std::vector<std::string> supported_chips();

/// The chip of the GPU with CUDA's number `device`, and CUPTI's profiler ready for it. Throws DeviceError without one.
std::string chip_name(int device);

/// CUPTI's description of one chip.
class CuptiHost {
  public:
    /// `availability`: the device's counter availability image, which says what its driver lets this process count;
    /// empty for all that the chip has. Throws DeviceError when CUPTI does not know `chip`.
    explicit CuptiHost(const std::string& chip, std::span<const std::uint8_t> availability = {});
    ~CuptiHost();
    CuptiHost(const CuptiHost&) = delete;
    CuptiHost& operator=(const CuptiHost&) = delete;

    /// Whether the chip has `counter`: a full name with rollup and submetric, such as "dram__bytes_read.sum".
    bool has(const std::string& counter) const;

    /// Every counter's name up to the dot, and the full names of one of them.
    std::vector<std::string> base_names() const;
    std::vector<std::string> full_names(const std::string& base) const;

    /// What configures the range profiler for `counters`; their order may cost a pass more, see plan_passes. Only once
    /// for an object: CUPTI keeps what was added before. Throws UsageError for one that the chip has not.
    std::vector<std::uint8_t> config_image(std::span<const std::string> counters);

    CUpti_Profiler_Host_Object* handle() const { return host_; }

    const std::string& chip() const { return chip_; }

  private:
    std::string chip_;
    std::vector<std::uint8_t> availability_;  // CUPTI keeps a pointer to it
    CUpti_Profiler_Host_Object* host_ = nullptr;
};

/// How often the work must run to be counted with this configuration.
std::size_t pass_count(std::span<const std::uint8_t> config_image);

/// An order of counters, and the passes that CUPTI spreads them over in this order.
struct PassPlan {
    std::vector<std::string> counters;
    std::size_t passes = 0;
};
/// CUPTI fills one pass after another with the counters as they come, so their order decides. Tries four orders, some
/// milliseconds each, and takes the best: all sets of GH100 in 21 passes instead of 22 (100 random orders: 20 to 22).
PassPlan plan_passes(const std::string& chip, std::vector<std::string> counters,
                     std::span<const std::uint8_t> availability = {});

}  // namespace kbench::cuda
