// Records arrive in buffers, some time after the work has ended, on a thread of CUPTI's.
#include "profile/attach/activities.h"

#include <cupti.h>

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <mutex>
#include <string_view>
#include <unordered_map>

#include "profile/attach/launch_calls.h"
#include "profile/attach/record_file.h"
#include "profile/cupti/cupti_check.h"

namespace kbench::attach {
namespace {

#if CUPTI_API_VERSION >= 130000
using ActivityKernel = CUpti_ActivityKernel10;
using ActivityCopy = CUpti_ActivityMemcpy6;
#else
using ActivityKernel = CUpti_ActivityKernel9;
using ActivityCopy = CUpti_ActivityMemcpy5;
#endif
using ActivityFill = CUpti_ActivityMemset4;

constexpr std::size_t buffer_bytes = std::size_t{4} << 20;
constexpr CUpti_ActivityKind kinds[] = {CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL, CUPTI_ACTIVITY_KIND_MEMCPY,
                                        CUPTI_ACTIVITY_KIND_MEMSET};

struct State {
    std::mutex mutex;
    std::unordered_map<std::uint32_t, std::uint32_t> range_of_call;
    std::unordered_map<std::uint64_t, std::uint32_t> range_of_node;
    std::atomic<std::uint64_t> dropped = 0;
};

/// Never destroyed: buffers may arrive while the process ends.
State& state() {
    static State& one = *new State;
    return one;
}

std::uint32_t range_of(std::uint32_t correlation, std::uint64_t node) {
    State& all = state();
    const std::lock_guard lock(all.mutex);
    if (node != 0) {
        const auto found = all.range_of_node.find(node);
        if (found != all.range_of_node.end()) return found->second;
    }
    const auto found = all.range_of_call.find(correlation);
    return found != all.range_of_call.end() ? found->second : 0;
}

std::string_view direction(std::uint8_t kind) {
    switch (kind) {
        case CUPTI_ACTIVITY_MEMCPY_KIND_HTOD:
        case CUPTI_ACTIVITY_MEMCPY_KIND_HTOA: return "HtoD";
        case CUPTI_ACTIVITY_MEMCPY_KIND_DTOH:
        case CUPTI_ACTIVITY_MEMCPY_KIND_ATOH: return "DtoH";
        case CUPTI_ACTIVITY_MEMCPY_KIND_HTOH: return "HtoH";
        case CUPTI_ACTIVITY_MEMCPY_KIND_PTOP: return "PtoP";
        case CUPTI_ACTIVITY_MEMCPY_KIND_UNKNOWN: return "unknown";
        default: return "DtoD";
    }
}

std::string_view memory(std::uint8_t kind) {
    switch (kind) {
        case CUPTI_ACTIVITY_MEMORY_KIND_PAGEABLE: return "pageable";
        case CUPTI_ACTIVITY_MEMORY_KIND_PINNED: return "pinned";
        case CUPTI_ACTIVITY_MEMORY_KIND_MANAGED:
        case CUPTI_ACTIVITY_MEMORY_KIND_MANAGED_STATIC: return "managed";
        case CUPTI_ACTIVITY_MEMORY_KIND_UNKNOWN: return "unknown";
        default: return "device";
    }
}

void write_kernel(const ActivityKernel& kernel) {
    write(
        "{{\"kind\":\"kernel\",\"correlation\":{},\"name\":{},\"start_ns\":{},\"end_ns\":{},\"device\":{},\"stream\":{},\"grid\":[{},{},{}],\"block\":[{},{},{}],\"registers\":{},\"static_shared\":{},\"dynamic_shared\":{},\"local\":{},\"cluster\":{},\"graph_node\":{},\"range\":{}}}",
        kernel.correlationId, text_number(kernel.name != nullptr ? kernel.name : "unnamed"), kernel.start, kernel.end,
        kernel.deviceId, kernel.streamId, kernel.gridX, kernel.gridY, kernel.gridZ, kernel.blockX, kernel.blockY,
        kernel.blockZ, kernel.registersPerThread, kernel.staticSharedMemory, kernel.dynamicSharedMemory,
        kernel.localMemoryPerThread, std::max(1U, kernel.clusterX * kernel.clusterY * kernel.clusterZ),
        kernel.graphNodeId, range_of(kernel.correlationId, kernel.graphNodeId));
}

void write_copy(const ActivityCopy& copy) {
    write(
        "{{\"kind\":\"copy\",\"correlation\":{},\"what\":\"{}\",\"memory\":[\"{}\",\"{}\"],\"bytes\":{},\"start_ns\":{},\"end_ns\":{},\"device\":{},\"stream\":{},\"graph_node\":{},\"range\":{}}}",
        copy.correlationId, direction(copy.copyKind), memory(copy.srcKind), memory(copy.dstKind), copy.bytes,
        copy.start, copy.end, copy.deviceId, copy.streamId, copy.graphNodeId,
        range_of(copy.correlationId, copy.graphNodeId));
}

void write_fill(const ActivityFill& fill) {
    write(
        "{{\"kind\":\"fill\",\"correlation\":{},\"bytes\":{},\"start_ns\":{},\"end_ns\":{},\"device\":{},\"stream\":{},\"graph_node\":{},\"range\":{}}}",
        fill.correlationId, fill.bytes, fill.start, fill.end, fill.deviceId, fill.streamId, fill.graphNodeId,
        range_of(fill.correlationId, fill.graphNodeId));
}

void CUPTIAPI give_buffer(std::uint8_t** buffer, std::size_t* bytes, std::size_t* most_records) {
    *buffer = static_cast<std::uint8_t*>(std::aligned_alloc(ACTIVITY_RECORD_ALIGNMENT, buffer_bytes));
    *bytes = *buffer != nullptr ? buffer_bytes : 0;
    *most_records = 0;  // as many as fit
}

void CUPTIAPI take_buffer(CUcontext, std::uint32_t, std::uint8_t* buffer, std::size_t, std::size_t valid_bytes) {
    State& all = state();
    CUpti_Activity* activity = nullptr;
    while (cuptiActivityGetNextRecord(buffer, valid_bytes, &activity) == CUPTI_SUCCESS) {
        switch (activity->kind) {
            case CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL:
                write_kernel(*reinterpret_cast<const ActivityKernel*>(activity));
                break;
            case CUPTI_ACTIVITY_KIND_MEMCPY: write_copy(*reinterpret_cast<const ActivityCopy*>(activity)); break;
            case CUPTI_ACTIVITY_KIND_MEMSET: write_fill(*reinterpret_cast<const ActivityFill*>(activity)); break;
            default: break;
        }
    }
    std::size_t dropped = 0;
    if (cuptiActivityGetNumDroppedRecords(nullptr, 0, &dropped) == CUPTI_SUCCESS) all.dropped += dropped;
    std::free(buffer);
    write_kept_launches();
    flush_lines();
}

}  // namespace

void start_records() {
    static std::once_flag once;
    std::call_once(once, [] { KBENCH_CUPTI(cuptiActivityRegisterCallbacks(give_buffer, take_buffer)); });
    for (const CUpti_ActivityKind kind : kinds) KBENCH_CUPTI(cuptiActivityEnable(kind));
}

void stop_records() {
    for (const CUpti_ActivityKind kind : kinds) KBENCH_CUPTI(cuptiActivityDisable(kind));
}

void flush_records() { cuptiActivityFlushAll(CUPTI_ACTIVITY_FLAG_FLUSH_FORCED); }

std::uint64_t dropped_records() { return state().dropped; }

void set_range_of_call(std::uint32_t correlation, std::uint32_t range) {
    State& all = state();
    const std::lock_guard lock(all.mutex);
    all.range_of_call[correlation] = range;
}

void set_range_of_node(std::uint64_t node, std::uint32_t range) {
    State& all = state();
    const std::lock_guard lock(all.mutex);
    all.range_of_node[node] = range;
}

void copy_range_of_node(std::uint64_t node, std::uint64_t original) {
    State& all = state();
    const std::lock_guard lock(all.mutex);
    const auto found = all.range_of_node.find(original);
    if (found != all.range_of_node.end()) all.range_of_node.emplace(node, std::uint32_t{found->second});
}

}  // namespace kbench::attach
