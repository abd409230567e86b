// The profiler host API behind a small class. Its parameter structs carry their own size, as CUPTI versions them.
#include "profile/cupti/cupti_host.h"

#include <cupti_profiler_host.h>
#include <cupti_profiler_target.h>
#include <cupti_target.h>
#include <dlfcn.h>
#include <fmt/format.h>

#include <algorithm>
#include <filesystem>

#include "kbench/error.h"

namespace kbench::cuda {
namespace {

/// CUPTI opens libnvperf_host.so and libnvperf_target.so by their names alone, which the loader finds only where the
/// system looks anyway; a toolkit from PyPI has them beside libcupti. Once loaded from there they are found by name.
void load_what_cupti_opens_by_name() {
    static const bool loaded = [] {
        const std::filesystem::path directory = cupti_folder();
        if (directory.empty()) return false;
        for (const char* name : {"libnvperf_host.so", "libnvperf_target.so"})
            dlopen((directory / name).c_str(), RTLD_NOW | RTLD_GLOBAL);  // CUPTI reports what is missing
        return true;
    }();
    static_cast<void>(loaded);
}

}  // namespace

std::filesystem::path cupti_folder() {
    Dl_info cupti{};
    if (dladdr(dlsym(RTLD_DEFAULT, "cuptiGetVersion"), &cupti) == 0) return {};
    return std::filesystem::path(cupti.dli_fname).parent_path();
}

std::vector<std::string> supported_chips() {
    load_what_cupti_opens_by_name();
    CUpti_Profiler_Host_GetSupportedChips_Params chips{};
    chips.structSize = CUpti_Profiler_Host_GetSupportedChips_Params_STRUCT_SIZE;
    KBENCH_CUPTI(cuptiProfilerHostGetSupportedChips(&chips));
    return {chips.ppChipNames, chips.ppChipNames + chips.numChips};
}

std::string chip_name(int device) {
    load_what_cupti_opens_by_name();
    CUpti_Profiler_Initialize_Params initialize{};
    initialize.structSize = CUpti_Profiler_Initialize_Params_STRUCT_SIZE;
    KBENCH_CUPTI(cuptiProfilerInitialize(&initialize));
    CUpti_Device_GetChipName_Params chip{};
    chip.structSize = CUpti_Device_GetChipName_Params_STRUCT_SIZE;
    chip.deviceIndex = static_cast<std::size_t>(device);
    KBENCH_CUPTI(cuptiDeviceGetChipName(&chip));
    return chip.pChipName;
}

CuptiHost::CuptiHost(const std::string& chip, std::span<const std::uint8_t> availability)
    : chip_(chip), availability_(availability.begin(), availability.end()) {
    load_what_cupti_opens_by_name();
    CUpti_Profiler_Host_Initialize_Params initialize{};
    initialize.structSize = CUpti_Profiler_Host_Initialize_Params_STRUCT_SIZE;
    initialize.profilerType = CUPTI_PROFILER_TYPE_RANGE_PROFILER;
    initialize.pChipName = chip.c_str();
    initialize.pCounterAvailabilityImage = availability_.empty() ? nullptr : availability_.data();
    const std::string call = fmt::format("cuptiProfilerHostInitialize for chip '{}'", chip);
    check(cuptiProfilerHostInitialize(&initialize), call.c_str(), __FILE__, __LINE__);
    host_ = initialize.pHostObject;
}

CuptiHost::~CuptiHost() {
    CUpti_Profiler_Host_Deinitialize_Params deinitialize{};
    deinitialize.structSize = CUpti_Profiler_Host_Deinitialize_Params_STRUCT_SIZE;
    deinitialize.pHostObject = host_;
    cuptiProfilerHostDeinitialize(&deinitialize);
}

bool CuptiHost::has(const std::string& counter) const {
    CUpti_Profiler_Host_GetMetricProperties_Params properties{};
    properties.structSize = CUpti_Profiler_Host_GetMetricProperties_Params_STRUCT_SIZE;
    properties.pHostObject = host_;
    properties.pMetricName = counter.c_str();
    const CUptiResult status = cuptiProfilerHostGetMetricProperties(&properties);
    if (status == CUPTI_ERROR_INVALID_METRIC_NAME) return false;
    check(status, "cuptiProfilerHostGetMetricProperties", __FILE__, __LINE__);
    return true;
}

std::vector<std::string> CuptiHost::base_names() const {
    std::vector<std::string> names;
    for (int type = 0; type < CUPTI_METRIC_TYPE__COUNT; ++type) {
        CUpti_Profiler_Host_GetBaseMetrics_Params base{};
        base.structSize = CUpti_Profiler_Host_GetBaseMetrics_Params_STRUCT_SIZE;
        base.pHostObject = host_;
        base.metricType = static_cast<CUpti_MetricType>(type);
        KBENCH_CUPTI(cuptiProfilerHostGetBaseMetrics(&base));
        names.insert(names.end(), base.ppMetricNames, base.ppMetricNames + base.numMetrics);
    }
    return names;
}

std::vector<std::string> CuptiHost::full_names(const std::string& base) const {
    CUpti_Profiler_Host_GetMetricProperties_Params properties{};
    properties.structSize = CUpti_Profiler_Host_GetMetricProperties_Params_STRUCT_SIZE;
    properties.pHostObject = host_;
    properties.pMetricName = base.c_str();
    KBENCH_CUPTI(cuptiProfilerHostGetMetricProperties(&properties));
    CUpti_Profiler_Host_GetSubMetrics_Params sub{};
    sub.structSize = CUpti_Profiler_Host_GetSubMetrics_Params_STRUCT_SIZE;
    sub.pHostObject = host_;
    sub.metricType = properties.metricType;
    sub.pMetricName = base.c_str();
    KBENCH_CUPTI(cuptiProfilerHostGetSubMetrics(&sub));
    std::vector<std::string> names;
    for (std::size_t i = 0; i < sub.numOfSubmetrics; ++i) names.push_back(base + sub.ppSubMetrics[i]);
    return names;
}

std::vector<std::uint8_t> CuptiHost::config_image(std::span<const std::string> counters) {
    std::vector<const char*> names;
    for (const std::string& counter : counters) {
        if (!has(counter)) throw UsageError(fmt::format("{} has no counter '{}'", chip_, counter));
        names.push_back(counter.c_str());
    }
    CUpti_Profiler_Host_ConfigAddMetrics_Params add{};
    add.structSize = CUpti_Profiler_Host_ConfigAddMetrics_Params_STRUCT_SIZE;
    add.pHostObject = host_;
    add.ppMetricNames = names.data();
    add.numMetrics = names.size();
    KBENCH_CUPTI(cuptiProfilerHostConfigAddMetrics(&add));

    CUpti_Profiler_Host_GetConfigImageSize_Params size{};
    size.structSize = CUpti_Profiler_Host_GetConfigImageSize_Params_STRUCT_SIZE;
    size.pHostObject = host_;
    KBENCH_CUPTI(cuptiProfilerHostGetConfigImageSize(&size));
    std::vector<std::uint8_t> image(size.configImageSize);
    CUpti_Profiler_Host_GetConfigImage_Params get{};
    get.structSize = CUpti_Profiler_Host_GetConfigImage_Params_STRUCT_SIZE;
    get.pHostObject = host_;
    get.configImageSize = image.size();
    get.pConfigImage = image.data();
    KBENCH_CUPTI(cuptiProfilerHostGetConfigImage(&get));
    return image;
}

std::size_t pass_count(std::span<const std::uint8_t> config_image) {
    // CUPTI only reads the image, though its parameter is not const.
    std::vector<std::uint8_t> image(config_image.begin(), config_image.end());
    CUpti_Profiler_Host_GetNumOfPasses_Params passes{};
    passes.structSize = CUpti_Profiler_Host_GetNumOfPasses_Params_STRUCT_SIZE;
    passes.configImageSize = image.size();
    passes.pConfigImage = image.data();
    KBENCH_CUPTI(cuptiProfilerHostGetNumOfPasses(&passes));
    return passes.numOfPasses;
}

PassPlan plan_passes(const std::string& chip, std::vector<std::string> counters,
                     std::span<const std::uint8_t> availability) {
    if (counters.empty()) return {};
    PassPlan best;
    const auto consider = [&] {
        const std::size_t passes = pass_count(CuptiHost(chip, availability).config_image(counters));
        if (best.passes == 0 || passes < best.passes) best = {counters, passes};
    };
    consider();
    std::ranges::reverse(counters);
    consider();
    std::ranges::sort(counters);
    consider();
    std::ranges::reverse(counters);
    consider();
    return best;
}

}  // namespace kbench::cuda
