// Greedy-by-size placement.
#include "bench/plan/arena.h"

#include <algorithm>
#include <numeric>

namespace kbench {

ArenaLayout lay_out_arena(const std::vector<Lifetime>& lifetimes, std::int64_t alignment) {
    const auto align = [alignment](std::int64_t bytes) { return (bytes + alignment - 1) & ~(alignment - 1); };
    std::vector<std::size_t> by_size(lifetimes.size());
    std::iota(by_size.begin(), by_size.end(), std::size_t{0});
    std::stable_sort(by_size.begin(), by_size.end(),
                     [&](std::size_t a, std::size_t b) { return lifetimes[a].bytes > lifetimes[b].bytes; });

    ArenaLayout layout;
    layout.offsets.assign(lifetimes.size(), 0);
    std::vector<std::size_t> placed;  // ordered by offset
    for (const std::size_t i : by_size) {
        const std::int64_t bytes = align(lifetimes[i].bytes);
        std::int64_t offset = 0;
        for (const std::size_t j : placed) {
            if (lifetimes[j].last < lifetimes[i].first || lifetimes[i].last < lifetimes[j].first) continue;
            if (layout.offsets[j] - offset >= bytes) break;
            offset = std::max(offset, layout.offsets[j] + align(lifetimes[j].bytes));
        }
        layout.offsets[i] = offset;
        layout.bytes = std::max(layout.bytes, offset + bytes);
        const auto place = std::upper_bound(placed.begin(), placed.end(), i, [&](std::size_t a, std::size_t b) {
            return layout.offsets[a] < layout.offsets[b];
        });
        placed.insert(place, i);
    }
    return layout;
}

}  // namespace kbench
