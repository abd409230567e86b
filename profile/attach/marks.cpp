// Events are read at the end: nothing waits for the GPU meanwhile.
#include "profile/attach/marks.h"

#include <fmt/format.h>

#include <exception>
#include <mutex>
#include <string>
#include <vector>

#include "profile/attach/record_file.h"
#include "profile/driver.h"

namespace kbench::attach {
namespace {

/// An event takes some hundred bytes; a program of more iterations is timed by these.
constexpr std::size_t most_marks = 20000;

struct Mark {
    std::uint64_t launch, at_ns;
    CUevent event;  ///< nullptr without one
    bool recorded;
};

struct Marks {
    std::mutex mutex;
    std::vector<Mark> marks;
};

/// Never destroyed: launches may go on while the process ends.
Marks& all_marks() {
    static Marks& one = *new Marks;
    return one;
}

CUevent event_on(CUstream stream) {
    const Driver& cuda = driver();
    CUstreamCaptureStatus capturing = CU_STREAM_CAPTURE_STATUS_NONE;
    // Not every stream can be asked: the default one cannot while another is captured.
    cuuint64_t capture = 0;
    if (cuda.stream_get_capture(stream, &capturing, &capture) != CUDA_SUCCESS ||
        capturing != CU_STREAM_CAPTURE_STATUS_NONE)
        return nullptr;
    CUevent event = nullptr;
    if (cuda.event_create(&event, CU_EVENT_DEFAULT) != CUDA_SUCCESS) return nullptr;
    return cuda.event_record(event, stream, CU_EVENT_RECORD_DEFAULT) == CUDA_SUCCESS ? event : nullptr;
}

}  // namespace

void mark_iteration(std::uint64_t launch, std::uint64_t at_ns, std::optional<CUstream> stream, bool recorded) {
    Marks& all = all_marks();
    const std::lock_guard lock(all.mutex);
    if (all.marks.size() >= most_marks) return;
    CUevent event = nullptr;
    try {
        if (stream) event = event_on(*stream);
    } catch (const std::exception&) {
        event = nullptr;  // a driver without these calls: the host's time is left
    }
    all.marks.push_back({launch, at_ns, event, recorded});
}

void write_marks() {
    Marks& all = all_marks();
    const std::lock_guard lock(all.mutex);
    double gpu_ms = 0;
    const Mark* before = nullptr;  // the one before with an event
    for (const Mark& mark : all.marks) {
        std::string on_gpu;
        float since_ms = 0;
        if (mark.event != nullptr &&
            (before == nullptr || driver().event_elapsed(&since_ms, before->event, mark.event) == CUDA_SUCCESS)) {
            gpu_ms += before == nullptr ? 0 : static_cast<double>(since_ms);
            on_gpu = fmt::format(",\"gpu_ms\":{:.6f}", gpu_ms);
            before = &mark;
        }
        write("{{\"kind\":\"mark\",\"launches\":{},\"at_ns\":{}{}{}}}", mark.launch, mark.at_ns, on_gpu,
              mark.recorded ? ",\"recorded\":true" : "");
    }
    all.marks.clear();
}

}  // namespace kbench::attach
