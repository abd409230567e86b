// The order in which a division is refused, and how many cores go to whom.
#include "bench/device/cpu_split.h"

#include <algorithm>

namespace kbench {
namespace {

constexpr int part_of_thief = 4;

constexpr std::string_view texts[] = {
    "there are too few cores: the work would lose more than a quarter of its threads (fewer --threads leave some)",
    "its threads share cores (fewer --threads leave some to a thief)",
    "its cores are on several sockets, each with a memory of its own",
    "threads cannot be kept on their cores",
    "a quota allows less CPU time than work and thief take together",
};

}  // namespace

std::string_view text_of(NoThief why) { return texts[static_cast<int>(why)]; }

CoreSplit split_for_thief(const CoresForThief& has) {
    const int wanted = (has.cores + part_of_thief - 1) / part_of_thief;
    const int free = std::max(0, has.cores - has.threads), given = has.threads / part_of_thief;
    CoreSplit split;
    split.thief = std::min(wanted, free + given);
    split.work = std::min(has.threads, has.cores - split.thief);
    if (!has.pinned)
        split.refused = NoThief::not_pinned;
    else if (has.threads > has.cores)
        split.refused = NoThief::threads_share_cores;
    else if (split.thief == 0)
        split.refused = NoThief::too_few_cores;
    else if (has.sockets > 1)
        split.refused = NoThief::several_sockets;
    else if (has.quota && *has.quota < split.work + split.thief)
        split.refused = NoThief::quota;
    return split;
}

}  // namespace kbench
