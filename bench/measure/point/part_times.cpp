// Captures work on a part's stream.
#include "bench/measure/point/part_times.h"

#include <utility>

namespace kbench {

WorkOnPart::WorkOnPart(std::vector<WorkRange> ranges, Device& part) : profiler_(make_profiler(part)) {
    const auto enqueue_all = [&] {
        for (const WorkRange& range : ranges) enqueue(range);
    };
    enqueue_all();  // nothing may be loaded for this stream in a capture
    part.synchronize();
    graph_ = part.capture(enqueue_all);
    profiler_->watch(std::move(ranges));
}

}  // namespace kbench
