// Files: Documentation/admin-guide/pm/cpufreq.rst, Documentation/power/powercap/powercap.rst and Documentation/hwmon in
// the Linux source.
#include "bench/profile/cpu_state.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <fstream>
#include <optional>
#include <string_view>
#include <system_error>

namespace kbench {
namespace {

namespace fs = std::filesystem;

constexpr std::uint64_t hw_thermal_slowdown = 0x40;
constexpr std::size_t max_cpus = 16;  // evenly spaced; reading every CPU of a large host would take milliseconds
constexpr auto throttle_memory = std::chrono::milliseconds(200);

/// hwmon drivers whose first sensor is the package (Intel, AMD).
constexpr std::array<std::string_view, 3> temperature_drivers{"coretemp", "k10temp", "zenpower"};

std::optional<double> read_number(const fs::path& file) {
    std::ifstream stream(file);
    double number = 0;
    return stream >> number ? std::optional(number) : std::nullopt;
}

std::string read_word(const fs::path& file) {
    std::ifstream stream(file);
    std::string word;
    stream >> word;
    return word;
}

/// Entries of a directory whose names are `prefix` and a number, by that number; none where it is missing.
std::vector<fs::path> numbered_entries(const fs::path& directory, std::string_view prefix) {
    std::vector<std::pair<long, fs::path>> found;
    std::error_code missing;
    for (const fs::directory_entry& entry : fs::directory_iterator(directory, missing)) {
        const std::string entry_name = entry.path().filename().string();
        if (!entry_name.starts_with(prefix)) continue;
        const std::string number = entry_name.substr(prefix.size());
        const bool digits = std::all_of(number.begin(), number.end(), [](unsigned char c) { return std::isdigit(c); });
        if (!number.empty() && number.size() < 9 && digits) found.emplace_back(std::stol(number), entry.path());
    }
    std::sort(found.begin(), found.end());
    std::vector<fs::path> paths;
    for (auto& [number, path] : found) paths.push_back(std::move(path));
    return paths;
}

/// `file` below some of the CPUs, where it can be read.
std::vector<fs::path> cpu_files(const fs::path& sysfs, const char* file) {
    const std::vector<fs::path> cpus = numbered_entries(sysfs / "devices/system/cpu", "cpu");
    const std::size_t count = std::min(cpus.size(), max_cpus);
    std::vector<fs::path> files;
    for (std::size_t i = 0; i < count; ++i) {
        const fs::path path = cpus[i * cpus.size() / count] / file;
        if (read_number(path)) files.push_back(path);
    }
    return files;
}

}  // namespace

CpuState::CpuState(const fs::path& sysfs, const fs::path& root)
    : counts_(root),
      frequency_files_(cpu_files(sysfs, "cpufreq/scaling_cur_freq")),
      throttle_files_(cpu_files(sysfs, "thermal_throttle/package_throttle_count")) {
    find_energy(sysfs);
    find_temperature(sysfs);
    for (const fs::path& file : throttle_files_) throttle_events_ += read_number(file).value_or(0);
}

void CpuState::find_energy(const fs::path& sysfs) {
    const fs::path powercap = sysfs / "class/powercap";
    energy_unavailable_ = fmt::format("no RAPL: {} has no intel-rapl:N", powercap.string());
    for (const fs::path& zone : numbered_entries(powercap, "intel-rapl:")) {
        if (!read_word(zone / "name").starts_with("package")) continue;  // psys and others overlap the packages
        const fs::path file = zone / "energy_uj";
        const auto energy_uj = read_number(file), range_uj = read_number(zone / "max_energy_range_uj");
        if (!energy_uj || !range_uj) {
            energy_unavailable_ = fmt::format("{} cannot be read; RAPL is for root since Linux 5.10", file.string());
            energy_counters_.clear();
            return;
        }
        energy_counters_.push_back({file, *range_uj, *energy_uj, 0});
    }
}

void CpuState::find_temperature(const fs::path& sysfs) {
    for (const fs::path& monitor : numbered_entries(sysfs / "class/hwmon", "hwmon")) {
        const std::string driver = read_word(monitor / "name");
        const bool known = std::count(temperature_drivers.begin(), temperature_drivers.end(), driver) > 0;
        if (known && read_number(monitor / "temp1_input")) {
            temperature_file_ = monitor / "temp1_input";
            return;
        }
    }
}

Quantity CpuState::energy_j() {
    if (energy_counters_.empty()) return Quantity::unavailable(energy_unavailable_);
    const std::lock_guard lock(mutex_);
    double total_uj = 0;
    for (EnergyCounter& counter : energy_counters_) {
        const auto now_uj = read_number(counter.file);
        if (!now_uj) return Quantity::unavailable(fmt::format("{} cannot be read", counter.file.string()));
        // Counters wrap every few minutes under load; read at every period, they cannot wrap twice in between.
        counter.total_uj += *now_uj - counter.last_uj + (*now_uj < counter.last_uj ? counter.range_uj : 0);
        counter.last_uj = *now_uj;
        total_uj += counter.total_uj;
    }
    return Quantity::measured(total_uj * 1e-6);
}

MachineReading CpuState::read() {
    MachineReading reading;
    double sum_khz = 0;
    int count = 0;
    for (const fs::path& file : frequency_files_)
        if (const auto khz = read_number(file)) {
            sum_khz += *khz;
            ++count;
        }
    reading.sm_clock_mhz = count > 0 ? Quantity::measured(sum_khz / count * 1e-3)
                                     : Quantity::unavailable("no cpufreq: scaling_cur_freq cannot be read");
    reading.memory_clock_mhz = Quantity::unavailable("Linux does not tell the memory's clock");
    reading.power_w = Quantity::unavailable("RAPL counts energy, not power");
    reading.energy_j = energy_j();
    const auto millidegrees = temperature_file_.empty() ? std::nullopt : read_number(temperature_file_);
    reading.temperature_c = millidegrees ? Quantity::measured(*millidegrees * 1e-3)
                                         : Quantity::unavailable("no hwmon sensor: coretemp, k10temp or zenpower");
    reading.throttle_mask = throttle_mask();
    return reading;
}

std::uint64_t CpuState::throttle_mask() {
    double events = 0;
    for (const fs::path& file : throttle_files_) events += read_number(file).value_or(0);
    const auto now = std::chrono::steady_clock::now();
    const std::lock_guard lock(mutex_);
    if (events > throttle_events_) {
        throttle_events_ = events;
        recent_until_ = now + throttle_memory;
    }
    return now < recent_until_ ? hw_thermal_slowdown : 0;
}

std::string CpuState::throttle_unavailable() const {
    return throttle_files_.empty() ? "no thermal_throttle/package_throttle_count" : "";
}

}  // namespace kbench
