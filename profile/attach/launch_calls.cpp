// A list under a lock; who writes takes it as a whole.
#include "profile/attach/launch_calls.h"

#include <mutex>
#include <utility>
#include <vector>

#include "profile/attach/record_file.h"

namespace kbench::attach {
namespace {

struct Kept {
    std::mutex mutex;
    std::vector<LaunchCall> calls;
};

/// Never destroyed: buffers of records may arrive while the process ends.
Kept& kept() {
    static Kept& one = *new Kept;
    return one;
}

}  // namespace

void keep(const LaunchCall& call) {
    Kept& all = kept();
    const std::lock_guard lock(all.mutex);
    all.calls.push_back(call);
}

void write_kept_launches() {
    std::vector<LaunchCall> calls;
    {
        Kept& all = kept();
        const std::lock_guard lock(all.mutex);
        calls = std::exchange(all.calls, {});
    }
    for (const LaunchCall& call : calls)
        write(
            "{{\"kind\":\"launch\",\"index\":{},\"correlation\":{},\"call\":\"{}\",\"thread\":{},\"start_ns\":{},\"end_ns\":{},\"range\":{}{}}}",
            call.index, call.correlation, call.function, call.thread, call.start_ns, call.end_ns, call.range,
            call.inner != nullptr ? fmt::format(",\"inner\":\"{}\"", call.inner) : std::string());
}

}  // namespace kbench::attach
