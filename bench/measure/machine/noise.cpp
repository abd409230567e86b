// Reads and writes the file in which a machine remembers how much runs differ.
#include "bench/measure/machine/noise.h"

#include <fmt/format.h>

#include <cmath>
#include <fstream>
#include <nlohmann/json.hpp>

#include "analysis/machine/machine.h"
#include "kbench/error.h"
#include "models/base/write_file.h"

namespace kbench {
namespace {

using Json = nlohmann::ordered_json;

constexpr std::string_view noise_schema = "kbench.noise/1";

/// All machines; an empty object where there is no file. Throws std::exception for a file that is not ours.
Json read_machines(const std::filesystem::path& file) {
    std::ifstream stream(file);
    if (!stream) return Json::object();
    const Json content = Json::parse(stream);
    if (!content.is_object() || content.value("schema", "") != noise_schema || !content.at("machines").is_object())
        throw UsageError(fmt::format("its schema is not {}", noise_schema));
    return content.at("machines");
}

RunToRun noise_from(const Json& entry) {
    const RunToRun noise{entry.at("deviation").get<double>(), entry.at("runs").get<int>(),
                         entry.at("command_line").get<std::string>(), entry.at("measured_at").get<std::string>()};
    if (!(noise.deviation >= 0) || !std::isfinite(noise.deviation) || noise.runs < 2)
        throw UsageError(fmt::format("a deviation of {} of {} runs", noise.deviation, noise.runs));
    return noise;
}

}  // namespace

std::filesystem::path noise_file(const std::filesystem::path& cache_directory) {
    return cache_directory / "noise.json";
}

std::string noise_key(const Environment& environment) {
    if (environment.gpu)
        return fmt::format("{} {} {}", device_name(*environment.gpu), environment.gpu->uuid, environment.gpu->driver);
    const HostInfo& host = environment.host;
    const std::string quota = host.cpu_quota ? fmt::format(", quota {:.3g}", *host.cpu_quota) : "";
    return fmt::format("{}, {} threads{}", host.cpu, host.threads, quota);
}

std::optional<RunToRun> remembered_noise(const std::filesystem::path& file, const Environment& environment,
                                         std::vector<std::string>& warnings) {
    try {
        const Json machines = read_machines(file);
        const auto found = machines.find(noise_key(environment));
        if (found != machines.end()) return noise_from(*found);
    } catch (const std::exception& error) {
        warnings.push_back(fmt::format("what runs differ by is not known: {}: {}", file.string(), error.what()));
    }
    return std::nullopt;
}

void remember_noise(const std::filesystem::path& file, const Environment& environment, const RunToRun& noise) {
    Json machines = Json::object();
    try {
        machines = read_machines(file);
    } catch (const std::exception&) {
        // replaced: nothing in it can be used
    }
    machines[noise_key(environment)] = Json{{"deviation", noise.deviation},
                                            {"runs", noise.runs},
                                            {"command_line", noise.command_line},
                                            {"measured_at", noise.measured_at}};
    std::error_code error;  // the write below says what is wrong
    std::filesystem::create_directories(file.parent_path(), error);
    const Json content{{"schema", noise_schema}, {"machines", std::move(machines)}};
    write_file_atomically(file, content.dump(1, ' ', false, Json::error_handler_t::replace) + "\n");
}

}  // namespace kbench
