// Each range is a line, written when it ends. Those that never end are written by their threads, if these end.
#include "profile/attach/ranges.h"

#include <algorithm>
#include <atomic>
#include <vector>

#include "profile/attach/now.h"
#include "profile/attach/record_file.h"

namespace kbench::attach {
namespace {

struct Range {
    std::uint32_t number, parent, text;
    const void* domain;
    std::uint64_t start_ns;
};

void write_range(const Range& range, std::uint64_t end_ns) {
    write("{{\"kind\":\"range\",\"id\":{},\"parent\":{},\"text\":{},\"thread\":{},\"start_ns\":{},\"end_ns\":{}}}",
          range.number, range.parent, range.text, this_thread(), range.start_ns, end_ns);
}

struct Open {
    std::vector<Range> ranges;
    ~Open() {
        for (const Range& range : ranges) write_range(range, 0);
    }
};
thread_local Open open;

int depth_of(const void* domain) { return static_cast<int>(std::ranges::count(open.ranges, domain, &Range::domain)); }

}  // namespace

int push_range(std::string_view text, const void* domain) {
    static std::atomic<std::uint32_t> last = 0;
    const int depth = depth_of(domain);
    open.ranges.push_back({++last, current_range(), text_number(text), domain, now_ns()});
    return depth;
}

int pop_range(const void* domain) {
    const auto found = std::find_if(open.ranges.rbegin(), open.ranges.rend(),
                                    [domain](const Range& range) { return range.domain == domain; });
    if (found == open.ranges.rend()) return -2;
    write_range(*found, now_ns());
    open.ranges.erase(std::next(found).base());
    return depth_of(domain);
}

std::uint32_t current_range() { return open.ranges.empty() ? 0 : open.ranges.back().number; }

}  // namespace kbench::attach
