// The range profiler's calls in the order that CUPTI wants. Ranges are named by their number, CUPTI's own ones too.
#include "profile/cupti/range_profiler.h"

#include <cupti_profiler_host.h>
#include <cupti_profiler_target.h>
#include <cupti_range_profiler.h>
#include <cupti_target.h>
#include <fmt/format.h>

#include <charconv>
#include <limits>
#include <map>
#include <span>
#include <string_view>
#include <tuple>

#include "kbench/error.h"
#include "profile/cupti/cupti_check.h"

namespace kbench::cuda {
namespace {

/// A parameter struct with its size and, where it has one, the profiler.
template <class Params>
Params sized(std::size_t bytes) {
    Params params{};
    params.structSize = bytes;
    return params;
}

/// Kept, since trying the orders of counters takes a quarter of a second, and a session counts the same ones often.
const PassPlan& plan(const std::string& chip, const std::vector<std::string>& counters,
                     std::span<const std::uint8_t> availability) {
    using Key = std::tuple<std::string, std::vector<std::string>, std::vector<std::uint8_t>>;
    static std::map<Key, PassPlan>& plans = *new std::map<Key, PassPlan>;  // counting may end as the process does
    const Key key{chip, counters, {availability.begin(), availability.end()}};
    const auto known = plans.find(key);
    if (known != plans.end()) return known->second;
    return plans.emplace(key, plan_passes(chip, counters, availability)).first->second;
}

}  // namespace

#define KBENCH_PARAMS(name) sized<name##_Params>(name##_Params_STRUCT_SIZE)

std::vector<std::uint8_t> counter_availability(CUcontext context) {
    auto query = KBENCH_PARAMS(CUpti_Profiler_GetCounterAvailability);
    query.ctx = context;
    KBENCH_CUPTI(cuptiProfilerGetCounterAvailability(&query));
    std::vector<std::uint8_t> image(query.counterAvailabilityImageSize);
    query.pCounterAvailabilityImage = image.data();
    KBENCH_CUPTI(cuptiProfilerGetCounterAvailability(&query));
    return image;
}

RangeProfiler::RangeProfiler(CUcontext context, const std::string& chip, const std::vector<std::string>& counters,
                             RangeOf range_of, std::size_t ranges)
    : range_of_(range_of), ranges_(ranges), host_(chip, counter_availability(context)) {
    const PassPlan& passes = plan(chip, counters, counter_availability(context));
    counters_ = passes.counters;
    passes_ = passes.passes;
    config_ = host_.config_image(counters_);
    auto enable = KBENCH_PARAMS(CUpti_RangeProfiler_Enable);
    enable.ctx = context;
    KBENCH_CUPTI(cuptiRangeProfilerEnable(&enable));
    profiler_ = enable.pRangeProfilerObject;
    try {
        configure();
    } catch (...) {
        auto disable = KBENCH_PARAMS(CUpti_RangeProfiler_Disable);
        disable.pRangeProfilerObject = profiler_;
        cuptiRangeProfilerDisable(&disable);
        throw;
    }
}

RangeProfiler::~RangeProfiler() {
    auto disable = KBENCH_PARAMS(CUpti_RangeProfiler_Disable);
    disable.pRangeProfilerObject = profiler_;
    cuptiRangeProfilerDisable(&disable);
}

void RangeProfiler::configure() {
    std::vector<const char*> names;
    for (const std::string& counter : counters_) names.push_back(counter.c_str());
    auto size = KBENCH_PARAMS(CUpti_RangeProfiler_GetCounterDataSize);
    size.pRangeProfilerObject = profiler_;
    size.pMetricNames = names.data();
    size.numMetrics = names.size();
    size.maxNumOfRanges = room();
    size.maxNumRangeTreeNodes = static_cast<std::uint32_t>(room());
    KBENCH_CUPTI(cuptiRangeProfilerGetCounterDataSize(&size));
    data_.resize(size.counterDataSize);

    auto initialize = KBENCH_PARAMS(CUpti_RangeProfiler_CounterDataImage_Initialize);
    initialize.pRangeProfilerObject = profiler_;
    initialize.counterDataSize = data_.size();
    initialize.pCounterData = data_.data();
    KBENCH_CUPTI(cuptiRangeProfilerCounterDataImageInitialize(&initialize));

    auto set = KBENCH_PARAMS(CUpti_RangeProfiler_SetConfig);
    set.pRangeProfilerObject = profiler_;
    set.configSize = config_.size();
    set.pConfig = config_.data();
    set.counterDataImageSize = data_.size();
    set.pCounterDataImage = data_.data();
    set.range = range_of_ == RangeOf::kernel ? CUPTI_AutoRange : CUPTI_UserRange;
    set.replayMode = CUPTI_UserReplay;
    set.maxRangesPerPass = room();
    set.numNestingLevels = 1;
    set.minNestingLevel = 1;
    set.passIndex = 0;
    set.targetNestingLevel = 1;
    KBENCH_CUPTI(cuptiRangeProfilerSetConfig(&set));
}

void RangeProfiler::start() {
    auto start = KBENCH_PARAMS(CUpti_RangeProfiler_Start);
    start.pRangeProfilerObject = profiler_;
    KBENCH_CUPTI(cuptiRangeProfilerStart(&start));
}

bool RangeProfiler::stop() {
    auto stop = KBENCH_PARAMS(CUpti_RangeProfiler_Stop);
    stop.pRangeProfilerObject = profiler_;
    KBENCH_CUPTI(cuptiRangeProfilerStop(&stop));
    return stop.isAllPassSubmitted != 0;
}

void RangeProfiler::push(std::size_t range) {
    const std::string name = fmt::to_string(range);
    auto push = KBENCH_PARAMS(CUpti_RangeProfiler_PushRange);
    push.pRangeProfilerObject = profiler_;
    push.pRangeName = name.c_str();
    KBENCH_CUPTI(cuptiRangeProfilerPushRange(&push));
}

void RangeProfiler::pop() {
    auto pop = KBENCH_PARAMS(CUpti_RangeProfiler_PopRange);
    pop.pRangeProfilerObject = profiler_;
    KBENCH_CUPTI(cuptiRangeProfilerPopRange(&pop));
}

void RangeProfiler::decode() {
    auto decode = KBENCH_PARAMS(CUpti_RangeProfiler_DecodeData);
    decode.pRangeProfilerObject = profiler_;
    KBENCH_CUPTI(cuptiRangeProfilerDecodeData(&decode));
    if (decode.numOfRangeDropped > 0)
        throw DeviceError(fmt::format("CUPTI dropped {} ranges beyond {}", decode.numOfRangeDropped, ranges_));

    auto info = KBENCH_PARAMS(CUpti_RangeProfiler_GetCounterDataInfo);
    info.pCounterDataImage = data_.data();
    info.counterDataImageSize = data_.size();
    KBENCH_CUPTI(cuptiRangeProfilerGetCounterDataInfo(&info));
    if (info.numTotalRanges != ranges_)
        throw DeviceError(fmt::format("CUPTI counted {}{} ranges, not {}", info.numTotalRanges,
                                      info.numTotalRanges == room() ? " or more" : "", ranges_));

    index_of_range_.assign(ranges_, ranges_);
    for (std::size_t i = 0; i < ranges_; ++i) {
        auto range = KBENCH_PARAMS(CUpti_RangeProfiler_CounterData_GetRangeInfo);
        range.pCounterDataImage = data_.data();
        range.counterDataImageSize = data_.size();
        range.rangeIndex = i;
        range.rangeDelimiter = "/";
        KBENCH_CUPTI(cuptiRangeProfilerCounterDataGetRangeInfo(&range));
        const std::string_view name = range.rangeName;
        std::size_t number = ranges_;
        std::from_chars(name.data(), name.data() + name.size(), number);
        if (number >= ranges_) throw DeviceError(fmt::format("CUPTI gave a range called '{}'", name));
        index_of_range_[number] = i;
    }
}

std::vector<double> RangeProfiler::values(std::size_t range) const {
    std::vector<const char*> names;
    for (const std::string& counter : counters_) names.push_back(counter.c_str());
    std::vector<double> values(counters_.size(), std::numeric_limits<double>::quiet_NaN());
    auto evaluate = KBENCH_PARAMS(CUpti_Profiler_Host_EvaluateToGpuValues);
    evaluate.pHostObject = host_.handle();
    evaluate.pCounterDataImage = data_.data();
    evaluate.counterDataImageSize = data_.size();
    evaluate.rangeIndex = index_of_range_.at(range);
    evaluate.ppMetricNames = names.data();
    evaluate.numMetrics = names.size();
    evaluate.pMetricValues = values.data();
    KBENCH_CUPTI(cuptiProfilerHostEvaluateToGpuValues(&evaluate));
    return values;
}

#undef KBENCH_PARAMS

}  // namespace kbench::cuda
