// The calls of CUPTI's PC Sampling API in the order that it wants, and the buffers that it fills.
#include "bench/profile/cuda/stall_sampler.h"

#include <cupti.h>
#include <cupti_pcsampling.h>
#include <fmt/format.h>

#include <array>
#include <optional>
#include <string_view>
#include <vector>

#include "kbench/error.h"
#include "kernels/check.h"
#include "kernels/driver.h"
#include "profile/cupti/cupti_check.h"

namespace kbench::cuda {
namespace {

/// 2^9 cycles between two samples of a scheduler: a kernel of 5 us has 70 from each SM. At 2^5 three of four are
/// dropped.
constexpr std::uint32_t period_exponent = 9;
constexpr std::size_t most_pcs = 1 << 14;  ///< at once; what is beyond them the next call brings
constexpr std::string_view prefix = "smsp__pcsamp_warps_issue_stalled_", suffix = "_not_issued";

template <class Params>
Params sized(std::size_t bytes) {
    Params params{};
    params.size = bytes;
    params.ctx = current_context();
    return params;
}
#define KBENCH_PARAMS(name) sized<name##Params>(name##ParamsSize)

/// "long_scoreboard" of CUPTI's whole name; nothing for samples that fell into cycles with an issue.
std::optional<std::string> lost_reason(std::string_view name) {
    if (!name.starts_with(prefix) || !name.ends_with(suffix)) return std::nullopt;
    name.remove_prefix(prefix.size());
    name.remove_suffix(suffix.size());
    return std::string(name);
}

CUpti_PCSamplingConfigurationInfo attribute(CUpti_PCSamplingConfigurationAttributeType type) {
    CUpti_PCSamplingConfigurationInfo info{};
    info.attributeType = type;
    return info;
}

/// Room for samples by program counter and reason, as CUPTI wants it.
struct SampleBuffer {
    explicit SampleBuffer(std::size_t reasons) : stalls(most_pcs * reasons), pcs(most_pcs) {
        for (std::size_t i = 0; i < most_pcs; ++i) {
            pcs[i].size = sizeof(CUpti_PCSamplingPCData);
            pcs[i].stallReason = stalls.data() + i * reasons;
        }
        data.size = sizeof(CUpti_PCSamplingData);
        data.collectNumPcs = most_pcs;
        data.pPcData = pcs.data();
    }
    SampleBuffer(const SampleBuffer&) = delete;
    SampleBuffer& operator=(const SampleBuffer&) = delete;
    std::vector<CUpti_PCSamplingStallReason> stalls;
    std::vector<CUpti_PCSamplingPCData> pcs;
    CUpti_PCSamplingData data{};
};

}  // namespace

struct StallSampler::Buffers {
    explicit Buffers(std::size_t reasons) : cupti(reasons), taken(reasons) {}
    SampleBuffer cupti;  ///< CUPTI's own while it samples; what is asked for goes to another one, or there is nothing
    SampleBuffer taken;
    std::map<std::uint32_t, std::string> lost;  ///< reasons of lost cycles by CUPTI's number
};

StallSampler::StallSampler() {
    KBENCH_CUDA(cudaFree(nullptr));
    // After a range-profiler pass, and in a run of kbench even before, CUPTI 13.0 no longer says which kernels its
    // samples belong to, only how many there are. A new sampler does. All else that kbench asks of CUPTI
    // sets it up itself.
    KBENCH_CUPTI(cuptiFinalize());
    auto enable = KBENCH_PARAMS(CUpti_PCSamplingEnable);
    KBENCH_CUPTI(cuptiPCSamplingEnable(&enable));
    try {
        std::size_t count = 0;
        auto number = KBENCH_PARAMS(CUpti_PCSamplingGetNumStallReasons);
        number.numStallReasons = &count;
        KBENCH_CUPTI(cuptiPCSamplingGetNumStallReasons(&number));
        std::vector<std::uint32_t> indices(count);
        std::vector<std::array<char, CUPTI_STALL_REASON_STRING_SIZE>> texts(count);
        std::vector<char*> names;
        for (auto& text : texts) names.push_back(text.data());
        auto reasons = KBENCH_PARAMS(CUpti_PCSamplingGetStallReasons);
        reasons.numStallReasons = count;
        reasons.stallReasonIndex = indices.data();
        reasons.stallReasons = names.data();
        KBENCH_CUPTI(cuptiPCSamplingGetStallReasons(&reasons));
        buffers_ = std::make_unique<Buffers>(count);
        for (std::size_t i = 0; i < count; ++i)
            if (const std::optional<std::string> reason = lost_reason(names[i])) buffers_->lost[indices[i]] = *reason;
        if (buffers_->lost.empty())
            throw DeviceError("PC sampling on this GPU does not tell cycles without an issue from others");

        std::vector<CUpti_PCSamplingConfigurationInfo> options;
        options.push_back(attribute(CUPTI_PC_SAMPLING_CONFIGURATION_ATTR_TYPE_COLLECTION_MODE));
        options.back().attributeData.collectionModeData.collectionMode = CUPTI_PC_SAMPLING_COLLECTION_MODE_CONTINUOUS;
        options.push_back(attribute(CUPTI_PC_SAMPLING_CONFIGURATION_ATTR_TYPE_SAMPLING_PERIOD));
        options.back().attributeData.samplingPeriodData.samplingPeriod = period_exponent;
        options.push_back(attribute(CUPTI_PC_SAMPLING_CONFIGURATION_ATTR_TYPE_ENABLE_START_STOP_CONTROL));
        options.back().attributeData.enableStartStopControlData.enableStartStopControl = 1;
        options.push_back(attribute(CUPTI_PC_SAMPLING_CONFIGURATION_ATTR_TYPE_OUTPUT_DATA_FORMAT));
        options.back().attributeData.outputDataFormatData.outputDataFormat =
            CUPTI_PC_SAMPLING_OUTPUT_DATA_FORMAT_PARSED;
        options.push_back(attribute(CUPTI_PC_SAMPLING_CONFIGURATION_ATTR_TYPE_SAMPLING_DATA_BUFFER));
        options.back().attributeData.samplingDataBufferData.samplingDataBuffer = &buffers_->cupti.data;
        options.push_back(attribute(CUPTI_PC_SAMPLING_CONFIGURATION_ATTR_TYPE_STALL_REASON));
        options.back().attributeData.stallReasonData.stallReasonCount = count;
        options.back().attributeData.stallReasonData.pStallReasonIndex = indices.data();
        auto configure = KBENCH_PARAMS(CUpti_PCSamplingConfigurationInfo);
        configure.numAttributes = options.size();
        configure.pPCSamplingConfigurationInfo = options.data();
        KBENCH_CUPTI(cuptiPCSamplingSetConfigurationAttribute(&configure));
    } catch (...) {
        auto disable = KBENCH_PARAMS(CUpti_PCSamplingDisable);
        cuptiPCSamplingDisable(&disable);
        throw;
    }
}

StallSampler::~StallSampler() {
    auto disable = KBENCH_PARAMS(CUpti_PCSamplingDisable);
    cuptiPCSamplingDisable(&disable);
}

void StallSampler::start() {
    auto start = KBENCH_PARAMS(CUpti_PCSamplingStart);
    KBENCH_CUPTI(cuptiPCSamplingStart(&start));
}

std::map<std::string, double> StallSampler::stop() {
    auto stop = KBENCH_PARAMS(CUpti_PCSamplingStop);
    KBENCH_CUPTI(cuptiPCSamplingStop(&stop));
    std::map<std::string, double> samples;
    CUpti_PCSamplingData& data = buffers_->taken.data;
    do {
        auto get = KBENCH_PARAMS(CUpti_PCSamplingGetData);
        get.pcSamplingData = &data;
        KBENCH_CUPTI(cuptiPCSamplingGetData(&get));
        if (data.droppedSamples > 0 || data.hardwareBufferFull != 0)
            throw DeviceError(
                fmt::format("PC sampling dropped {} samples", static_cast<std::uint64_t>(data.droppedSamples)));
        if (data.totalNumPcs == 0 && data.nonUsrKernelsTotalSamples > 0)
            throw DeviceError(fmt::format("PC sampling gave {} samples without saying of which kernel",
                                          static_cast<std::uint64_t>(data.nonUsrKernelsTotalSamples)));
        for (std::size_t p = 0; p < data.totalNumPcs; ++p) {
            const CUpti_PCSamplingPCData& pc = buffers_->taken.pcs[p];
            for (std::size_t r = 0; r < pc.stallReasonCount; ++r)
                if (const auto lost = buffers_->lost.find(pc.stallReason[r].pcSamplingStallReasonIndex);
                    lost != buffers_->lost.end())
                    samples[lost->second] += pc.stallReason[r].samples;
            // pc.functionName stays with CUPTI: records may share one, so that nobody knows who is the last to free it.
        }
    } while (data.remainingNumPcs > 0);
    return samples;
}

#undef KBENCH_PARAMS

}  // namespace kbench::cuda
