// CUPTI hands filled buffers to a function without a user's pointer, so the records of the one recorder are kept here.
#include "bench/profile/cuda/activity.h"

#include <cupti.h>

#include <algorithm>
#include <cstdlib>
#include <map>
#include <mutex>
#include <string>
#include <tuple>
#include <utility>

#include <fmt/format.h>

#include "analysis/machine/kernel_name.h"
#include "kbench/error.h"
#include "kernels/check.h"
#include "profile/cupti/cupti_check.h"

namespace kbench::cuda {
namespace {

#if CUPTI_API_VERSION >= 130000
using ActivityKernel = CUpti_ActivityKernel10;
#else
using ActivityKernel = CUpti_ActivityKernel9;
#endif

constexpr std::size_t buffer_bytes = std::size_t{8} << 20;

struct Records {
    std::mutex mutex;
    std::vector<KernelRecord> kernels;
    std::size_t dropped = 0;
};

Records& records() {
    static Records all;
    return all;
}

/// Both forms of a kernel's name, made once for each: a run has tens of thousands of records.
const std::pair<std::string, std::string>& names_of(const std::string& mangled) {
    static std::map<std::string, std::pair<std::string, std::string>> known;  // guarded by the records' mutex
    const auto [found, is_new] = known.try_emplace(mangled);
    if (is_new) {
        found->second.first = demangled(mangled);
        found->second.second = short_kernel_name(found->second.first);
    }
    return found->second;
}

KernelRecord from_activity(const ActivityKernel& activity) {
    KernelRecord record;
    KernelResult& launch = record.launch;
    std::tie(launch.name, launch.short_name) = names_of(activity.name);
    launch.grid = {activity.gridX, activity.gridY, activity.gridZ};
    launch.block = {activity.blockX, activity.blockY, activity.blockZ};
    launch.registers = activity.registersPerThread;
    launch.static_shared_bytes = activity.staticSharedMemory;
    launch.dynamic_shared_bytes = activity.dynamicSharedMemory;
    launch.local_bytes = activity.localMemoryPerThread;
    const std::uint32_t cluster = activity.clusterX * activity.clusterY * activity.clusterZ;
    launch.cluster_blocks = static_cast<int>(std::max(1U, cluster));
    launch.device = static_cast<int>(activity.deviceId);
    launch.stream = static_cast<int>(activity.streamId);
    record.start_ns = activity.start;
    record.end_ns = activity.end;
    record.graph_node = activity.graphNodeId;
    return record;
}

void CUPTIAPI give_buffer(std::uint8_t** buffer, std::size_t* bytes, std::size_t* most_records) {
    *buffer = static_cast<std::uint8_t*>(std::aligned_alloc(ACTIVITY_RECORD_ALIGNMENT, buffer_bytes));
    *bytes = *buffer != nullptr ? buffer_bytes : 0;
    *most_records = 0;  // as many as fit
}

void CUPTIAPI take_buffer(CUcontext, std::uint32_t, std::uint8_t* buffer, std::size_t, std::size_t valid_bytes) {
    Records& all = records();
    const std::lock_guard lock(all.mutex);
    CUpti_Activity* activity = nullptr;
    while (cuptiActivityGetNextRecord(buffer, valid_bytes, &activity) == CUPTI_SUCCESS)
        if (activity->kind == CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL)
            all.kernels.push_back(from_activity(*reinterpret_cast<const ActivityKernel*>(activity)));
    std::size_t dropped = 0;
    if (cuptiActivityGetNumDroppedRecords(nullptr, 0, &dropped) == CUPTI_SUCCESS) all.dropped += dropped;
    std::free(buffer);
}

}  // namespace

ActivityRecorder::ActivityRecorder() {
    KBENCH_CUPTI(cuptiActivityRegisterCallbacks(give_buffer, take_buffer));
    KBENCH_CUPTI(cuptiActivityEnable(CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL));
    restarted();
}

ActivityRecorder::~ActivityRecorder() {
    cuptiActivityDisable(CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL);
    cuptiActivityFlushAll(0);
    Records& all = records();
    const std::lock_guard lock(all.mutex);
    all.kernels.clear();
    all.dropped = 0;
}

std::vector<KernelRecord> ActivityRecorder::take() {
    KBENCH_CUDA(cudaDeviceSynchronize());
    return take_ended();
}

std::vector<KernelRecord> ActivityRecorder::take_ended() {
    KBENCH_CUPTI(cuptiActivityFlushAll(0));
    Records& all = records();
    const std::lock_guard lock(all.mutex);
    if (const std::size_t dropped = std::exchange(all.dropped, 0); dropped > 0)
        throw DeviceError(fmt::format("CUPTI dropped {} activity records", dropped));
    std::vector<KernelRecord> taken = std::exchange(all.kernels, {});
    std::ranges::stable_sort(taken, {}, &KernelRecord::start_ns);
    return taken;
}

}  // namespace kbench::cuda
