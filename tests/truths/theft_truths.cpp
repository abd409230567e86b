// Truths of bandwidth: work that needs DRAM's or L2's or neither, beside a thief that takes some of each.
#include <fmt/format.h>

#include <functional>
#include <utility>

#include "kernels/probe/cache.h"
#include "kernels/probe/fma.h"
#include "kernels/probe/memory.h"
#include "tests/profile/known_kernels.h"
#include "tests/truths/lists.h"
#include "tests/truths/planter.h"
#include "tests/truths/theft_figures.h"

namespace kbench {
namespace {

using PartWork = std::function<void(int multiprocessors, cudaStream_t stream)>;

constexpr int blocks_an_sm = 4;  // 256 threads each

KnownStep step_on_parts(const Planter& at, std::string name, double flops, double bytes, const PartWork& work) {
    KnownStep step{std::move(name), flops, bytes,
                   [=, sms = at.multiprocessors(), stream = at.stream()] { work(sms, stream); }};
    step.on_part = [work](Device& part) {
        return [work, sms = part.multiprocessors(), stream = static_cast<cudaStream_t>(part.stream())] {
            work(sms, stream);
        };
    };
    return step;
}

Planted beside_thieves(const Planter& at, std::string what, KnownStep step, double dram, double l2) {
    Planted planted;
    planted.what = std::move(what);
    planted.steps.push_back(std::move(step));
    add_elasticity(planted, Level::dram, dram);
    add_elasticity(planted, Level::l2, l2);
    planted.budget = at.settled_budget();
    planted.budget.theft_s = 0.15;
    return planted;
}

Planted theft_from_copy(const Planter& at, const Drawn& drawn) {
    const std::int64_t bytes = drawn["MiB"] << 20;
    const Memory to = at.allocate(bytes), from = at.allocate_random(bytes);
    const PartWork copy = [=](int sms, cudaStream_t stream) {
        const cuda::probe::MemoryBuffers buffers{.a = to->data(), .b = from->data(), .bytes = bytes};
        cuda::probe::stream_memory(cuda::probe::Traffic::copy, {.blocks_per_sm = 0}, buffers, 0, sms, nullptr, stream);
    };
    Planted planted = beside_thieves(at, fmt::format("copy of {} MiB beside a thief", drawn["MiB"]),
                                     step_on_parts(at, "copy", 0, 2.0 * static_cast<double>(bytes), copy), 1, 0);
    planted.right = {{Bound::bandwidth, {"DRAM"}}};
    return planted;
}

Planted theft_from_l2(const Planter& at, const Drawn& drawn) {
    const auto chunks = static_cast<int>(drawn["chunks"]);
    const std::int64_t bytes = at.gpu().l2_bytes / 16 / cuda::known::l2_chunk_bytes * cuda::known::l2_chunk_bytes;
    const Memory data = at.allocate_random(bytes), sums = at.allocate(cuda::probe::memory_sums * 4),
                 taken = at.allocate(2 * sizeof(std::uint32_t));
    const PartWork read = [=](int sms, cudaStream_t stream) {
        cuda::known::read_l2_always(data->data(), bytes, sms, chunks * sms, as<std::uint32_t>(taken),
                                    as<std::uint32_t>(sums), stream);
    };
    Planted planted =
        beside_thieves(at, "reads of a part of L2 beside a thief", step_on_parts(at, "l2", 0, 0, read), 0, 1);
    planted.right = {{Bound::bandwidth, {"L2"}}};
    return planted;
}

Planted theft_from_ffma(const Planter& at, const Drawn& drawn) {
    constexpr int chains = 8;
    const auto iterations = static_cast<int>(drawn["iterations"]);
    const int blocks = blocks_an_sm * at.multiprocessors();
    const Memory out = at.allocate(std::int64_t{blocks} * cuda::probe::fma_threads * 4);
    const PartWork fma = [=](int sms, cudaStream_t stream) {
        cuda::probe::fma_chains(DataType::fp32, chains, blocks_an_sm * sms, iterations, out->data(), nullptr, stream);
    };
    const double flops = cuda::probe::fma_flops(DataType::fp32, chains, blocks) * iterations;
    Planted planted =
        beside_thieves(at, "FFMA in registers beside a thief", step_on_parts(at, "ffma", flops, 0, fma), 0, 0);
    planted.right = {{Bound::compute, {"fp32_plain", "FMA pipe"}}};
    return planted;
}

/// As many warps whatever SMs they have. Latency grows a little with other traffic.
Planted theft_from_chase(const Planter& at, const Drawn& drawn) {
    const std::uint32_t nodes = 1u << 23;  // 512 MiB
    const auto loads = static_cast<int>(drawn["loads"]);
    const Memory chain = at.allocate(std::int64_t{nodes} * cuda::known::chase_stride_bytes),
                 out = at.allocate(cuda::known::chase_warps() * 4);
    cuda::known::make_chase(as<std::uint32_t>(chain), nodes, at.stream());
    const PartWork chase = [=](int, cudaStream_t stream) {
        cuda::known::chase(as<std::uint32_t>(chain), nodes, loads, as<std::uint32_t>(out), stream);
    };
    Planted planted =
        beside_thieves(at, "dependent loads beside a thief",
                       step_on_parts(at, "chase", 0, 4.0 * cuda::known::chase_warps() * loads, chase), 0, 0);
    planted.right = {{Bound::latency}};
    return planted;
}

Planted theft_from_shared_memory(const Planter& at, const Drawn& drawn) {
    using cuda::probe::NearMemory;
    constexpr int width = 16;
    const auto passes = static_cast<int>(drawn["passes"]);
    const Memory data = at.allocate_random(cuda::probe::near_bytes(width)),
                 sums = at.allocate(cuda::probe::memory_sums * 4);
    const PartWork read = [=](int sms, cudaStream_t stream) {
        cuda::probe::read_near(NearMemory::shared, data->data(), width, blocks_an_sm * sms, passes,
                               as<std::uint32_t>(sums), nullptr, stream);
    };
    Planted planted = beside_thieves(at, "shared memory beside a thief", step_on_parts(at, "shared", 0, 0, read), 0, 0);
    planted.right = {{Bound::bandwidth, {"shared memory"}}};
    return planted;
}

Planted theft_from_special_functions(const Planter& at, const Drawn& drawn) {
    const auto iterations = static_cast<int>(drawn["iterations"]);
    const Memory out = at.allocate(std::int64_t{blocks_an_sm} * at.multiprocessors() * cuda::known::unit_threads * 4);
    const PartWork ex2 = [=](int sms, cudaStream_t stream) {
        cuda::known::special_functions(blocks_an_sm * sms, iterations, as<float>(out), stream);
    };
    Planted planted = beside_thieves(at, "ex2 beside a thief", step_on_parts(at, "ex2", 0, 0, ex2), 0, 0);
    planted.right = {{Bound::compute, {"special-function unit"}}};
    return planted;
}

}  // namespace

std::vector<Truth> theft_truths() {
    constexpr BackendKind cuda = BackendKind::cuda;
    return {
        {"theft-from-copy", cuda, {{"MiB", 1024, 2048, 32}}, theft_from_copy},
        {"theft-from-l2", cuda, {{"chunks", 1600, 3200}}, theft_from_l2},
        {"theft-from-ffma", cuda, {{"iterations", 500, 1500}}, theft_from_ffma},
        {"theft-from-chase", cuda, {{"loads", 400, 800}}, theft_from_chase},
        {"theft-from-shared-memory", cuda, {{"passes", 2000, 5000}}, theft_from_shared_memory},
        {"theft-from-special-functions", cuda, {{"iterations", 150, 400}}, theft_from_special_functions},
    };
}

}  // namespace kbench
