// Machine files: their parser, and which of them a device is.
#include "analysis/machine/machine.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "analysis/machine/ceiling_kinds.h"
#include "kbench/error.h"
#include "models/base/format.h"
#include "models/base/json_text.h"
#include "models/base/nearest.h"
#include "models/base/values.h"

namespace kbench {
namespace {

using Json = nlohmann::ordered_json;

/// One object of a machine file, read field by field; what was not read in the end is unknown.
class Fields {
  public:
    /// `where`: what errors begin with, such as "x.json: roofs[2]".
    Fields(const Json& object, std::string where) : object_(object), where_(std::move(where)) {
        if (!object.is_object()) throw UsageError(fmt::format("{} is not an object", where_));
    }

    const Json* find(const std::string& name) {
        known_.push_back(name);
        const auto found = object_.find(name);
        return found == object_.end() ? nullptr : &*found;
    }
    const Json& require(const std::string& name) {
        const Json* value = find(name);
        if (value == nullptr) fail(name, "is missing");
        return *value;
    }
    std::string text(const std::string& name) { return text(require(name), name); }
    std::string text(const Json& value, const std::string& name) const {
        if (!value.is_string() || value.get_ref<const std::string&>().find_first_not_of(" \t\r\n") == std::string::npos)
            fail(name, "must be a string that is not empty");
        return value.get<std::string>();
    }
    double positive(const Json& value, const std::string& name) const {
        if (!value.is_number() || !(value.get<double>() > 0)) fail(name, "must be a number above 0");
        return value.get<double>();
    }
    std::optional<double> optional_positive(const std::string& name) {
        const Json* value = find(name);
        return value == nullptr ? std::nullopt : std::optional(positive(*value, name));
    }
    std::optional<int> optional_count(const std::string& name) {
        const Json* value = find(name);
        if (value == nullptr) return std::nullopt;
        if (!value->is_number_integer() || value->get<double>() < 1 || value->get<double>() > 1e6)
            fail(name, "must be a whole number above 0");
        return value->get<int>();
    }
    void finish() const {
        for (const auto& [name, value] : object_.items())
            if (std::ranges::find(known_, name) == known_.end())
                fail(name, fmt::format("is no field; {}", nearest_name(name, known_)));
    }
    [[noreturn]] void fail(const std::string& name, const std::string& what) const {
        throw UsageError(one_line(fmt::format("{}: '{}' {}", where_, name, what)));
    }

  private:
    const Json& object_;
    std::string where_;
    std::vector<std::string> known_;
};

std::vector<std::string> ceilings_of(std::string_view backend) {
    std::vector<std::string> names;
    for (const CeilingKind& kind : ceiling_kinds())
        if (kind.backend == backend) names.emplace_back(kind.name);
    return names;
}

MachineFile::RoofValue parse_roof(const Json& json, const MachineFile& machine, const std::string& where) {
    Fields fields(json, where);
    MachineFile::RoofValue roof;
    roof.ceiling = fields.text("ceiling");
    const std::vector<std::string> names = ceilings_of(machine.backend());
    if (std::ranges::find(names, roof.ceiling) == names.end())
        fields.fail("ceiling", fmt::format("is '{}', no ceiling of a {}; {}", roof.ceiling, machine.kind,
                                           nearest_name(roof.ceiling, names)));
    roof.value = fields.positive(fields.require("value"), "value");
    if (roof.value > highest_roof || roof.value < 1 / highest_roof)
        fields.fail("value", fmt::format("is {}; no machine has a roof beyond {:g}", roof.value, highest_roof));
    roof.source = fields.text("source");
    fields.finish();
    for (const MachineFile::RoofValue& earlier : machine.roofs)
        if (earlier.ceiling == roof.ceiling) fields.fail("ceiling", fmt::format("is '{}' a second time", roof.ceiling));
    return roof;
}

const Json& array(Fields& fields, const std::string& name, const char* of) {
    const Json& value = fields.require(name);
    if (!value.is_array() || value.empty()) fields.fail(name, fmt::format("must be an array of {}, at least one", of));
    return value;
}

enum class Match { none, prefix, whole };

Match match(std::string_view pattern, std::string_view device) {
    const bool prefix = pattern.ends_with('*');
    if (prefix) pattern.remove_suffix(1);
    const std::string wanted = lower(pattern), name = lower(device);
    if (!prefix) return name == wanted ? Match::whole : Match::none;
    return name.starts_with(wanted) ? Match::prefix : Match::none;
}

bool is_bandwidth(std::string_view ceiling) { return ceiling_kind(ceiling).unit == "GB/s"; }
bool is_one_core(std::string_view ceiling) { return ceiling.ends_with(one_core_suffix); }

}  // namespace

std::optional<double> MachineFile::roof(std::string_view ceiling) const {
    const auto found = std::ranges::find(roofs, ceiling, &RoofValue::ceiling);
    return found == roofs.end() ? std::nullopt : std::optional(found->value);
}

MachineFile parse_machine(const std::string& text, const std::string& path) {
    check_json_text(text, path);
    const Json json = Json::parse(text, nullptr, false);
    if (json.is_discarded()) throw UsageError(fmt::format("{} is not JSON; a machine file is one JSON object", path));
    Fields fields(json, path);
    MachineFile machine;
    fields.find("$schema");
    machine.id = fields.text("id");
    machine.name = fields.text("name");
    machine.kind = fields.text("kind");
    if (machine.kind != "gpu" && machine.kind != "cpu")
        fields.fail("kind", fmt::format("is '{}'; it must be gpu or cpu", machine.kind));
    for (const Json& name : array(fields, "matches", "device names"))
        machine.matches.push_back(fields.text(name, "matches"));
    machine.memory_gb = fields.optional_positive("memory_gb");
    machine.l2_mb = fields.optional_positive("l2_mb");
    machine.tdp_w = fields.optional_positive("tdp_w");
    machine.boost_clock_mhz = fields.optional_positive("boost_clock_mhz");
    machine.multiprocessors = fields.optional_count("multiprocessors");
    machine.cores = fields.optional_count("cores");
    if (const Json* note = fields.find("note")) machine.note = fields.text(*note, "note");
    for (const Json& roof : array(fields, "roofs", "roofs"))
        machine.roofs.push_back(parse_roof(roof, machine, fmt::format("{}: roofs[{}]", path, machine.roofs.size())));
    fields.finish();
    return machine;
}

const std::vector<MachineFile>& machines() {
    static const std::vector<MachineFile> all = [] {
        std::vector<MachineFile> parsed;
        for (const MachineText& file : machine_texts())
            parsed.push_back(parse_machine(std::string(file.text), std::string(file.name)));
        std::ranges::sort(parsed, {}, &MachineFile::id);
        return parsed;
    }();
    return all;
}

const MachineFile& machine(std::string_view id) {
    const auto found = std::ranges::find(machines(), id, &MachineFile::id);
    if (found != machines().end()) return *found;
    throw UsageError(
        fmt::format("unknown machine '{}'; {} (`kbench list machines`, or a machine file, which ends in .json)", id,
                    nearest_name(id, machines(), &MachineFile::id)));
}

const MachineFile* machine_of(const Environment& environment, std::string_view backend) {
    const bool gpu = backend == "cuda";
    if (gpu && !environment.gpu) return nullptr;
    const std::string& device = gpu ? environment.gpu->name : environment.host.cpu;
    const MachineFile* best = nullptr;
    Match how = Match::none;
    for (const MachineFile& file : machines())
        for (const std::string& pattern : file.matches)
            if (const Match here = match(pattern, device); here > how) {
                how = here;
                best = &file;
            }
    return best;
}

static MachineFile scaled_to_part(MachineFile machine, const GpuInfo& gpu) {
    const int used = gpu.multiprocessors, all = gpu.multiprocessors_of_device.value();
    for (MachineFile::RoofValue& roof : machine.roofs) {
        if (!is_within_sm(roof.ceiling)) continue;
        roof.value *= static_cast<double>(used) / all;
        roof.source += fmt::format("; times {} of {} SMs", used, all);
    }
    machine.name += fmt::format(", {} of its {} SMs", used, all);
    machine.multiprocessors = used;
    return machine;
}

MachineFile scaled_to(const MachineFile& machine, const Environment& environment) {
    MachineFile scaled = machine;
    const HostInfo& host = environment.host;
    if (machine.kind == "gpu" && environment.gpu && environment.gpu->multiprocessors_of_device)
        return scaled_to_part(std::move(scaled), *environment.gpu);
    if (machine.kind != "cpu" || !machine.cores || host.physical_cores <= 0) return scaled;
    const double sockets = std::max(1, host.physical_cores / *machine.cores);
    const int used = host.threads > 0 ? std::min(host.threads, host.physical_cores) : host.physical_cores;
    for (MachineFile::RoofValue& roof : scaled.roofs) {
        if (is_one_core(roof.ceiling)) continue;
        roof.value *= is_bandwidth(roof.ceiling) ? sockets : static_cast<double>(used) / *machine.cores;
    }
    if (used < host.physical_cores) {
        const auto of_all = [](const MachineFile::RoofValue& roof) {
            return is_bandwidth(roof.ceiling) && !is_one_core(roof.ceiling);
        };
        std::erase_if(scaled.roofs, of_all);
        scaled.no_bandwidth =
            fmt::format("the datasheet states the bandwidth of all cores, {} of {} ran", used, host.physical_cores);
    }
    if (used != *machine.cores) scaled.name += fmt::format(", {} core{}", used, used == 1 ? "" : "s");
    scaled.cores = used;
    return scaled;
}

std::string device_name(const GpuInfo& gpu) {
    if (!gpu.multiprocessors_of_device) return gpu.name;
    return fmt::format("{}, {} of its {} SMs", gpu.name, gpu.multiprocessors, *gpu.multiprocessors_of_device);
}

}  // namespace kbench
