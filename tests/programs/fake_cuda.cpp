#include "tests/programs/fake_cuda.h"

#include <algorithm>
#include <cstdio>
#include <deque>
#include <map>
#include <string>
#include <vector>

struct CUctx_st {
    int device;
};
struct CUevent_st {
    bool is_recorded = false;
    double at_ms = 0;
};

namespace {

struct Node {
    double ms = 0;
    CUevent event = nullptr;
};
struct Graph {
    std::vector<Node> nodes;
};

}  // namespace

struct CUstream_st {
    CUcontext context;
    double until_ms = 0;
    bool is_captured = false;
    Graph captured;
};

namespace {

double host_ms = 0;
std::vector<CUcontext> current;
std::deque<CUctx_st> contexts;
std::deque<CUstream_st> streams;
std::deque<CUevent_st> events;
std::vector<Graph> graphs;
std::map<std::string, int> calls;
std::map<std::string, CUresult> failures;
cuuint64_t captures = 0;
CUstreamCaptureMode mode = CU_STREAM_CAPTURE_MODE_GLOBAL;

/// The default streams are one of each context.
CUstream_st& at(CUstream stream) {
    static std::map<CUcontext, CUstream_st> of_contexts;
    if (stream == nullptr || stream == CU_STREAM_LEGACY || stream == CU_STREAM_PER_THREAD) {
        CUstream_st& found = of_contexts[current.back()];
        found.context = current.back();
        return found;
    }
    return *stream;
}

bool is_any_captured() {
    return std::ranges::any_of(streams, [](const CUstream_st& stream) { return stream.is_captured; });
}

CUresult counted(const char* name, CUresult result = CUDA_SUCCESS) {
    if (const auto failure = failures.find(name); failure != failures.end()) return failure->second;
    if (result == CUDA_SUCCESS) ++calls[name];
    return result;
}

void run(CUstream_st& stream, const Node& node) {
    const double begin = std::max(stream.until_ms, host_ms);
    stream.until_ms = begin + node.ms;
    if (node.event == nullptr) return;
    node.event->is_recorded = true;
    node.event->at_ms = stream.until_ms;
}

void enqueue(CUstream_st& stream, const Node& node) {
    if (stream.is_captured)
        stream.captured.nodes.push_back(node);
    else
        run(stream, node);
}

CUresult get_error_name(CUresult error, const char** name) {
    *name = error == CUDA_ERROR_LAUNCH_FAILED ? "CUDA_ERROR_LAUNCH_FAILED" : "CUDA_ERROR_OF_THE_TEST";
    return counted("cuGetErrorName");
}
CUresult context_get_current(CUcontext* context) {
    *context = current.empty() ? nullptr : current.back();
    return counted("cuCtxGetCurrent");
}
CUresult context_push(CUcontext context) {
    current.push_back(context);
    return counted("cuCtxPushCurrent");
}
CUresult context_pop(CUcontext* context) {
    *context = current.back();
    current.pop_back();
    return counted("cuCtxPopCurrent");
}
CUresult context_get_device(CUdevice* device) {
    *device = current.back()->device;
    return counted("cuCtxGetDevice");
}
CUresult context_synchronize() { return counted("cuCtxSynchronize"); }
CUresult device_get_name(char* name, int size, CUdevice device) {
    std::snprintf(name, static_cast<std::size_t>(size), "Fake GPU %d", device);
    return counted("cuDeviceGetName");
}
CUresult stream_get_context(CUstream stream, CUcontext* context) {
    *context = at(stream).context;
    return counted("cuStreamGetCtx");
}
CUresult stream_get_capture(CUstream stream, CUstreamCaptureStatus* status, cuuint64_t* id) {
    if (stream == nullptr && is_any_captured()) return CUDA_ERROR_STREAM_CAPTURE_IMPLICIT;
    *status = at(stream).is_captured ? CU_STREAM_CAPTURE_STATUS_ACTIVE : CU_STREAM_CAPTURE_STATUS_NONE;
    *id = captures;
    return counted("cuStreamGetCaptureInfo");
}
CUresult exchange_capture_mode(CUstreamCaptureMode* other) {
    std::swap(mode, *other);
    return counted("cuThreadExchangeStreamCaptureMode");
}
/// What a thread may not do while a stream is captured, unless it says that it knows.
CUresult unless_captured(const char* name, CUresult result = CUDA_SUCCESS) {
    const bool is_refused = is_any_captured() && mode != CU_STREAM_CAPTURE_MODE_RELAXED;
    return counted(name, is_refused ? CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED : result);
}
CUresult event_create(CUevent* event, unsigned) {
    *event = &events.emplace_back();
    return unless_captured("cuEventCreate");
}
CUresult event_record(CUevent event, CUstream stream, unsigned flags) {
    CUstream_st& on = at(stream);
    // Without the flag the event would stand for a place of the graph, and never have a time.
    if (on.is_captured && flags != CU_EVENT_RECORD_EXTERNAL) return CUDA_ERROR_CAPTURED_EVENT;
    if (!on.is_captured && flags != CU_EVENT_RECORD_DEFAULT) return CUDA_ERROR_INVALID_VALUE;
    const CUresult result = counted("cuEventRecordWithFlags");
    if (result == CUDA_SUCCESS) enqueue(on, {0, event});
    return result;
}
CUresult event_query(CUevent event) {
    return unless_captured("cuEventQuery", event->at_ms > host_ms ? CUDA_ERROR_NOT_READY : CUDA_SUCCESS);
}
CUresult event_synchronize(CUevent event) {
    host_ms = std::max(host_ms, event->at_ms);
    return unless_captured("cuEventSynchronize");
}
CUresult event_elapsed(float* ms, CUevent start, CUevent end) {
    if (!start->is_recorded || !end->is_recorded) return CUDA_ERROR_INVALID_HANDLE;
    if (std::max(start->at_ms, end->at_ms) > host_ms) return CUDA_ERROR_NOT_READY;
    *ms = static_cast<float>(end->at_ms - start->at_ms);
    return unless_captured("cuEventElapsedTime");
}

}  // namespace

extern "C" {

__attribute__((visibility("default"))) CUresult cuGetProcAddress_v2(const char* name, void** function, int version,
                                                                    cuuint64_t,
                                                                    CUdriverProcAddressQueryResult* status) {
    static const std::map<std::string, void*> functions{
        {"cuGetErrorName", reinterpret_cast<void*>(get_error_name)},
        {"cuCtxGetCurrent", reinterpret_cast<void*>(context_get_current)},
        {"cuCtxPushCurrent", reinterpret_cast<void*>(context_push)},
        {"cuCtxPopCurrent", reinterpret_cast<void*>(context_pop)},
        {"cuCtxGetDevice", reinterpret_cast<void*>(context_get_device)},
        {"cuCtxSynchronize", reinterpret_cast<void*>(context_synchronize)},
        {"cuDeviceGetName", reinterpret_cast<void*>(device_get_name)},
        {"cuStreamGetCtx", reinterpret_cast<void*>(stream_get_context)},
        {"cuThreadExchangeStreamCaptureMode", reinterpret_cast<void*>(exchange_capture_mode)},
        {"cuEventCreate", reinterpret_cast<void*>(event_create)},
        {"cuEventRecordWithFlags", reinterpret_cast<void*>(event_record)},
        {"cuEventQuery", reinterpret_cast<void*>(event_query)},
        {"cuEventSynchronize", reinterpret_cast<void*>(event_synchronize)},
        {"cuEventElapsedTime", reinterpret_cast<void*>(event_elapsed)},
    };
    *status = CU_GET_PROC_ADDRESS_SUCCESS;
    const auto found = functions.find(name);
    *function = found == functions.end() ? nullptr : found->second;
    // The only one whose signature changed: what asks for a later version has other parameters.
    if (std::string(name) == "cuStreamGetCaptureInfo" && version == 10010)
        *function = reinterpret_cast<void*>(stream_get_capture);
    return *function == nullptr ? CUDA_ERROR_NOT_FOUND : CUDA_SUCCESS;
}

CUcontext fake_context(int device) {
    contexts.push_back({device});
    current.push_back(&contexts.back());
    return &contexts.back();
}
void fake_set_current(CUcontext context) { current.assign(1, context); }
CUstream fake_stream(CUcontext context) {
    CUstream_st& stream = streams.emplace_back();
    stream.context = context;
    return &stream;
}
void fake_kernel(CUstream stream, double ms) { enqueue(at(stream), {ms, nullptr}); }
void fake_host(double ms) { host_ms += ms; }
void fake_begin_capture(CUstream stream) {
    ++captures;
    stream->is_captured = true;
    stream->captured = {};
}
int fake_end_capture(CUstream stream) {
    stream->is_captured = false;
    graphs.push_back(stream->captured);
    return static_cast<int>(graphs.size()) - 1;
}
void fake_launch(int graph, CUstream stream) {
    for (const Node& node : graphs.at(static_cast<std::size_t>(graph)).nodes) run(at(stream), node);
}
int fake_calls(const char* name) { return calls[name]; }
int fake_event_nodes(int graph) {
    return static_cast<int>(std::ranges::count_if(graphs.at(static_cast<std::size_t>(graph)).nodes,
                                                  [](const Node& node) { return node.event != nullptr; }));
}
void fake_fail(const char* name, CUresult error) { failures[name] = error; }
}
