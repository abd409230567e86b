// The entry of an injected process: CUDA calls it when it begins. CUPTI then tells each call that launches something,
// and what graphs are made of.
#include <cupti.h>

#include <array>
#include <atomic>
#include <cstdlib>
#include <exception>
#include <mutex>
#include <optional>
#include <string_view>
#include <vector>

#include "profile/attach/activities.h"
#include "profile/attach/counting.h"
#include "profile/attach/launch_calls.h"
#include "profile/attach/launch_stream.h"
#include "profile/attach/marks.h"
#include "profile/attach/now.h"
#include "profile/attach/ranges.h"
#include "profile/attach/record_file.h"
#include "profile/attach/settings.h"
#include "profile/cupti/cupti_check.h"

namespace kbench::attach {
namespace {

/// What a call of the runtime or the driver does; only those that are told apart are asked for.
enum class Call : unsigned char { other, launch, graph, copy };

Call call_named(std::string_view name) {
    for (const std::string_view prefix :
         {"cudaLaunchKernel", "__cudaLaunchKernel", "cudaLaunchCooperative", "cuLaunch"})
        if (name.starts_with(prefix) && !name.starts_with("cuLaunchHostFunc")) return Call::launch;
    if (name.starts_with("cudaGraphLaunch") || name.starts_with("cuGraphLaunch")) return Call::graph;
    for (const std::string_view prefix : {"cudaMemcpy", "cudaMemset", "cuMemcpy", "cuMemset"})
        if (name.starts_with(prefix)) return Call::copy;
    return Call::other;
}

/// By domain and number.
using Calls = std::array<std::vector<Call>, 2>;
Calls& calls() {
    static Calls& all = *new Calls;
    return all;
}
std::size_t place(CUpti_CallbackDomain domain) { return domain == CUPTI_CB_DOMAIN_RUNTIME_API ? 0 : 1; }

std::atomic<std::uint64_t> launches = 0;
std::atomic<bool> ended = false, recording = false;
long injected_process = 0;

/// A call of the runtime may make one of the driver: only the outer one counts.
struct Nested {
    int depth = 0;
    std::uint64_t index = 0, start_ns = 0;
    const char* inner = nullptr;
};
thread_local Nested nested;

bool hears_one() { return settings()->purpose == Purpose::bare && !settings()->call.empty(); }

/// The first launch of the iteration that is told from the one before by the call heard as number `index`; nothing at
/// other calls.
std::optional<std::uint64_t> iteration_at(std::uint64_t index) {
    const Settings& asked = *settings();
    const std::uint64_t first = hears_one() ? asked.call_first : asked.first_launch;
    const std::uint64_t period = hears_one() ? asked.call_period : asked.period;
    if (period == 0 || index < first || (index - first) % period != 0) return std::nullopt;
    return asked.first_launch + (index - first) / period * asked.period;
}

void switch_records() {
    try {
        recording = !recording;
        if (recording)
            start_records();
        else
            stop_records();
    } catch (const std::exception& error) {
        note(fmt::format("the bare run has no records: {}", error.what()));
    }
}

void begin_iteration(std::uint64_t launch, const CUpti_CallbackData& data) {
    static std::mutex mutex;
    static std::uint64_t iterations = 0;
    const Settings& asked = *settings();
    const std::lock_guard lock(mutex);
    const bool is_bare = asked.purpose == Purpose::bare;
    const bool switches = is_bare && asked.block > 0 && iterations > 0 && iterations % asked.block == 0;
    ++iterations;
    // An event in a counted pass would be work of the pass.
    const std::optional<CUstream> stream = is_bare ? launch_stream(data) : std::nullopt;
    mark_iteration(launch, now_ns(), stream, recording != switches);
    if (switches) switch_records();
}

void begin_call(Call call, const CUpti_CallbackData& data) {
    const Settings& asked = *settings();
    if (call == Call::copy) return;
    nested.index = launches.fetch_add(1, std::memory_order_relaxed);
    nested.start_ns = asked.keeps_records() || recording ? now_ns() : 0;
    if (asked.keeps_records()) return;
    if (const std::optional<std::uint64_t> launch = iteration_at(nested.index)) begin_iteration(*launch, data);
    if (asked.purpose == Purpose::counters)
        count_before(nested.index, call == Call::launch ? data.symbolName : nullptr);
}

void end_call(Call call, const CUpti_CallbackData& data) {
    const Settings& asked = *settings();
    if (asked.purpose == Purpose::counters && call != Call::copy) count_after();
    if (!asked.keeps_records() && !recording) return;
    const std::uint32_t range = current_range();
    if (range != 0) set_range_of_call(data.correlationId, range);
    if (call == Call::copy || nested.start_ns == 0) return;
    keep({nested.index, data.correlationId, data.functionName, this_thread(), nested.start_ns, now_ns(), range,
          nested.inner});
}

void on_resource(CUpti_CallbackId id, const CUpti_ResourceData& data) {
    if (id != CUPTI_CBID_RESOURCE_GRAPHNODE_CREATED && id != CUPTI_CBID_RESOURCE_GRAPHNODE_CLONED) return;
    const auto& graph = *static_cast<const CUpti_GraphData*>(data.resourceDescriptor);
    std::uint64_t node = 0, original = 0;
    if (cuptiGetGraphNodeId(graph.node, &node) != CUPTI_SUCCESS) return;
    if (id == CUPTI_CBID_RESOURCE_GRAPHNODE_CREATED) {
        if (const std::uint32_t range = current_range(); range != 0) set_range_of_node(node, range);
    } else if (cuptiGetGraphNodeId(graph.originalNode, &original) == CUPTI_SUCCESS) {
        copy_range_of_node(node, original);
    }
}

void CUPTIAPI on_callback(void*, CUpti_CallbackDomain domain, CUpti_CallbackId id, const void* data) {
    if (ended.load(std::memory_order_relaxed) || this_process() != injected_process) return;
    if (domain == CUPTI_CB_DOMAIN_RESOURCE) return on_resource(id, *static_cast<const CUpti_ResourceData*>(data));
    if (domain != CUPTI_CB_DOMAIN_RUNTIME_API && domain != CUPTI_CB_DOMAIN_DRIVER_API) return;
    const Call call = calls()[place(domain)][id];
    const auto& told = *static_cast<const CUpti_CallbackData*>(data);
    if (told.callbackSite == CUPTI_API_ENTER) {
        if (nested.depth++ == 0) {
            nested.inner = nullptr;
            begin_call(call, told);
        } else if (call != Call::copy) {
            nested.inner = told.functionName;
        }
    } else if (--nested.depth == 0) {
        end_call(call, told);
    }
}

/// Names of callbacks end in the version of their parameters: "cudaLaunchKernel_v7000".
bool is_heard(std::string_view name) {
    const std::string& call = settings()->call;
    return !hears_one() || name == call || name.substr(0, name.rfind("_v")) == call;
}

void subscribe() {
    CUpti_SubscriberHandle subscriber = nullptr;
    KBENCH_CUPTI(cuptiSubscribe(&subscriber, &on_callback, nullptr));
    const bool with_copies = settings()->purpose == Purpose::names;
    const auto ask = [&](CUpti_CallbackDomain domain, std::uint32_t end) {
        std::vector<Call>& known = calls()[place(domain)];
        known.assign(end, Call::other);
        for (std::uint32_t id = 1; id < end; ++id) {
            const char* name = nullptr;
            if (cuptiGetCallbackName(domain, id, &name) != CUPTI_SUCCESS || name == nullptr) continue;
            known[id] = call_named(name);
            if (known[id] != Call::other && (known[id] != Call::copy || with_copies) && is_heard(name))
                KBENCH_CUPTI(cuptiEnableCallback(1, subscriber, domain, id));
        }
    };
    ask(CUPTI_CB_DOMAIN_RUNTIME_API, CUPTI_RUNTIME_TRACE_CBID_SIZE);
    ask(CUPTI_CB_DOMAIN_DRIVER_API, CUPTI_DRIVER_TRACE_CBID_SIZE);
    if (settings()->purpose != Purpose::names) return;
    for (const auto id : {CUPTI_CBID_RESOURCE_GRAPHNODE_CREATED, CUPTI_CBID_RESOURCE_GRAPHNODE_CLONED})
        KBENCH_CUPTI(cuptiEnableCallback(1, subscriber, CUPTI_CB_DOMAIN_RESOURCE, static_cast<CUpti_CallbackId>(id)));
}

void at_exit() {
    if (this_process() != injected_process || ended.exchange(true)) return;
    if (settings()->purpose == Purpose::counters) end_counting();
    if (settings()->keeps_records() || settings()->block > 0) flush_records();
    write_kept_launches();
    write_marks();
    write_last_line(fmt::format("{{\"kind\":\"end\",\"launches\":{},\"dropped\":{},\"end_ns\":{}}}", launches.load(),
                                dropped_records(), now_ns()));
}

}  // namespace
}  // namespace kbench::attach

/// The CUDA driver calls it as the process initialises CUDA; 1: all is well.
extern "C" [[gnu::visibility("default")]] int InitializeInjection() {
    using namespace kbench::attach;
    static std::once_flag once;
    if (!settings()) return 1;
    std::call_once(once, [] {
        injected_process = this_process();
        try {
            subscribe();
            if (settings()->keeps_records()) start_records();
            std::atexit(at_exit);
        } catch (const std::exception& error) {
            note(error.what());
            flush_lines();
        }
    });
    return 1;
}
