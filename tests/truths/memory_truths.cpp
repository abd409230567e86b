// Truths of DRAM and L2, and of waiting for them.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include "kbench/error.h"
#include "kernels/probe/cache.h"
#include "kernels/probe/memory.h"
#include "tests/profile/known_kernels.h"
#include "tests/truths/figures.h"
#include "tests/truths/lists.h"
#include "tests/truths/planter.h"

namespace kbench {
namespace {

/// Every byte is read once and written once, of buffers that are 20 times L2 and more: no cache can keep them. What L2
/// still holds of the pass before is written back meanwhile, as much as it keeps of this one.
Planted big_copy(const Planter& at, const Drawn& drawn) {
    const std::int64_t bytes = drawn["MiB"] << 20;
    const Memory to = at.allocate(bytes), from = at.allocate_random(bytes);
    const double moved = 2.0 * static_cast<double>(bytes);
    Planted planted;
    planted.what = fmt::format("copy of {} MiB", drawn["MiB"]);
    planted.steps = {{"copy", 0, moved, [=, multiprocessors = at.multiprocessors(), stream = at.stream()] {
                          const cuda::probe::MemoryBuffers buffers{.a = to->data(), .b = from->data(), .bytes = bytes};
                          cuda::probe::stream_memory(cuda::probe::Traffic::copy, {}, buffers, 0, multiprocessors,
                                                     nullptr, stream);
                      }}};
    planted.right = {{Bound::bandwidth, {"DRAM"}, "memory-roof"}};
    planted.figures = {dram_bytes(moved)};
    planted.budget = at.budget();
    return planted;
}

struct L2Shape {
    int loads, blocks_per_sm;
};
constexpr L2Shape l2_shapes[] = {{2, 8}, {4, 4}, {8, 2}};  // as many loads in flight, hence as fast, in each

/// A quarter of L2, read past L1: DRAM has nothing to do after the first round, and nothing is computed but sums. No
/// two blocks read the same at a time, as in the probe of L2's roof. What L2 is asked for may be some percent less than
/// what warps load: a sector that another warp of the SM waits for already is asked for once.
Planted l2_read(const Planter& at, const Drawn& drawn) {
    const auto [loads, blocks_per_sm] = l2_shapes[drawn["shape"]];
    const int blocks = blocks_per_sm * at.multiprocessors(), steps = static_cast<int>(drawn["steps"]);
    const Memory data = at.allocate_random(at.gpu().l2_bytes / 4), sums = at.allocate(cuda::probe::memory_sums * 4);
    const double bytes = static_cast<double>(cuda::probe::l2_chunk_bytes(loads)) * blocks * steps;
    Planted planted;
    planted.what = fmt::format("{:.3g} GB read from L2, {} loads in flight", bytes * 1e-9, loads);
    planted.steps = {{"l2", 0, 0, [=, stream = at.stream()] {
                          cuda::probe::read_l2(data->data(), static_cast<std::int64_t>(data->bytes()), loads, blocks,
                                               steps, as<std::uint32_t>(sums), nullptr, stream);
                      }}};
    planted.right = {{Bound::bandwidth, {"L2"}}};
    planted.figures = {counted("bytes loaded", bytes, "l1_bytes")};
    planted.budget = at.budget();
    return planted;
}

/// Additions without an answer, which no warp waits for, and which L2 does and no SM: to words that stay in L2, each
/// met by one thread at a time, so that none waits for another either.
Planted atomics(const Planter& at, const Drawn& drawn) {
    constexpr int blocks_per_sm = 4;
    const int blocks = blocks_per_sm * at.multiprocessors(), steps = static_cast<int>(drawn["steps"]);
    const std::int64_t words = at.gpu().l2_bytes / 4 / cuda::known::red_bytes * cuda::known::red_bytes;
    const Memory sums = at.allocate(words);
    const double bytes = static_cast<double>(cuda::known::red_bytes) * blocks * steps;
    Planted planted;
    planted.what = fmt::format("{:.3g} G additions in L2", bytes / 4 * 1e-9);
    planted.steps = {{"red.add", 0, 0, [=, stream = at.stream()] {
                          cuda::known::red_adds(as<std::uint32_t>(sums), words, blocks, steps, stream);
                      }}};
    planted.right = {{Bound::bandwidth, {"L2"}}};
    planted.figures = {l2_bytes(bytes)};
    planted.budget = at.budget();
    return planted;
}

/// Each load's address is what the one before it brought, from five times L2 and more in no order that a prefetcher
/// could guess; all warps that fit are there. Nothing is near its roof: there is nothing to do but wait.
Planted pointer_chase(const Planter& at, const Drawn& drawn) {
    const std::uint32_t nodes = 1u << drawn["log2 nodes"];
    const auto loads = static_cast<int>(drawn["loads"]);
    const Memory chain = at.allocate(std::int64_t{nodes} * cuda::known::chase_stride_bytes);
    const double warps = cuda::known::chase_warps();
    const Memory out = at.allocate(cuda::known::chase_warps() * 4);
    cuda::known::make_chase(as<std::uint32_t>(chain), nodes, at.stream());
    Planted planted;
    planted.what = fmt::format("a chain of {} dependent loads in each warp", loads);
    planted.steps = {{"chase", 0, warps * loads * 4, [=, stream = at.stream()] {
                          cuda::known::chase(as<std::uint32_t>(chain), nodes, loads, as<std::uint32_t>(out), stream);
                      }}};
    planted.right = {{Bound::latency, {}, "waiting"}};
    planted.figures = {l2_bytes(warps * loads * 32),
                       {"of lost cycles for long_scoreboard", 1,
                        [](const KnownResult& known) -> std::optional<double> {
                            const CycleAccount& account = known.explained.cycles.steps.front();
                            const auto found = std::ranges::find(account.lost, "long_scoreboard", &LostCycles::reason);
                            return found == account.lost.end() ? std::nullopt
                                                               : std::optional(found->share / account.not_issuing);
                        },
                        Tolerance::of_whole}};
    planted.budget = at.budget();
    return planted;
}

constexpr int most_copying_warps = 32;
constexpr double few_warps_speed = 0.70, few_warps_tolerance = 0.06;

/// A copy by so few warps that it runs at about 70 % of the speed of 32 an SM. More warps shorten it, which is tried
/// here: so DRAM does not bind it, however near to a roof it looks. That warps are few, that too little is in flight
/// to cover the latency, or that nobody can tell without that trial is right.
Planted few_warps_copy(const Planter& at, const Drawn& drawn) {
    const std::int64_t bytes = drawn["MiB"] << 20;
    const Memory to = at.allocate(bytes), from = at.allocate_random(bytes);
    const auto copy = [=, stream = at.stream()](int warps) {
        cuda::known::copy_by_warps(to->data(), from->data(), bytes, warps, stream);
    };
    const double full_ms = at.ms([&] { copy(most_copying_warps); });
    int few = 0;
    double speed = 0;
    for (int warps = 2; warps <= most_copying_warps / 2; ++warps) {
        const double tried = full_ms / at.ms([&] { copy(warps); });
        if (std::abs(tried - few_warps_speed) < std::abs(speed - few_warps_speed)) few = warps, speed = tried;
    }
    if (std::abs(speed - few_warps_speed) > few_warps_tolerance)
        throw Unsupported(fmt::format("no number of warps copies at about 70 % of the speed of {}; {} do at {:.0f} %",
                                      most_copying_warps, few, 100 * speed));
    const double moved = 2.0 * static_cast<double>(bytes);
    Planted planted;
    planted.what = fmt::format("copy of {} MiB by {} warps an SM, at {:.0f} % of the speed of {}", drawn["MiB"], few,
                               100 * speed, most_copying_warps);
    planted.steps = {{"few.warps", 0, moved, [=] { copy(few); }}};
    planted.right = {{Bound::occupancy, {}, "few-warps"}, {Bound::latency, {}, "waiting"}, {Bound::not_identifiable}};
    planted.figures = {dram_bytes(moved)};
    planted.budget = at.budget();
    return planted;
}

}  // namespace

std::vector<Truth> memory_truths() {
    constexpr BackendKind cuda = BackendKind::cuda;
    return {
        {"big-copy", cuda, {{"MiB", 1024, 2048, 32}}, big_copy},
        {"few-warps-copy", cuda, {{"MiB", 1024, 2048, 32}}, few_warps_copy},
        {"l2-read", cuda, {{"shape", 0, std::size(l2_shapes) - 1}, {"steps", 1000, 2500}}, l2_read},
        {"atomics", cuda, {{"steps", 1000, 2500}}, atomics},
        {"pointer-chase", cuda, {{"log2 nodes", 22, 23}, {"loads", 500, 1200}}, pointer_chase},
    };
}

}  // namespace kbench
