// Units of an SM at their pace, by kernels that do nothing else. All warps that work are resident at once and the same,
// so that no SM idles; what a unit takes for an instruction is stated by the CUDA C++ Programming Guide, "Arithmetic
// Instructions" (results per clock cycle and SM), and where one binds, nothing else takes as long.
#include <fmt/format.h>

#include <utility>

#include "analysis/machine/tensor_cores.h"
#include "kbench/error.h"
#include "kernels/probe/cache.h"
#include "kernels/probe/fma.h"
#include "kernels/probe/mma.h"
#include "kernels/probe/wgmma.h"
#include "tests/profile/known_kernels.h"
#include "tests/truths/figures.h"
#include "tests/truths/lists.h"
#include "tests/truths/planter.h"

namespace kbench {
namespace {

constexpr int blocks_per_sm = 4;  // 256 threads each: half of what an SM holds, whatever registers they take
constexpr int warps_per_sm = blocks_per_sm * cuda::known::unit_threads / 32;

/// FFMA without a load: nothing but the FMA pipe, for which each SM has 32 warps with 8 independent chains.
Planted ffma(const Planter& at, const Drawn& drawn) {
    constexpr int chains = 8;
    const int blocks = blocks_per_sm * at.multiprocessors();
    const auto iterations = static_cast<int>(drawn["iterations"]);
    const Memory out = at.allocate(std::int64_t{blocks} * cuda::probe::fma_threads * 4);
    const double flops = cuda::probe::fma_flops(DataType::fp32, chains, blocks) * iterations;
    Planted planted;
    planted.what = fmt::format("FFMA in registers, {:.3g} GFLOP", flops * 1e-9);
    planted.steps = {{"ffma", flops, 0, [=, stream = at.stream()] {
                          cuda::probe::fma_chains(DataType::fp32, chains, blocks, iterations, out->data(), nullptr,
                                                  stream);
                      }}};
    planted.right = {{Bound::compute, {"fp32_plain", "FMA pipe"}}};
    planted.figures = {executed(flops), time_over_roof_time()};
    planted.budget = at.settled_budget({"sass"});
    return planted;
}

bool has_wgmma(const GpuInfo& gpu) { return tensor_cores(gpu).family == TensorFamily::wgmma; }

constexpr Precision mma_precisions[] = {Precision::fp16, Precision::bf16};

/// mma.sync has a roof of its own where wgmma is faster; elsewhere it is that of tensor cores.
Planted mma_sync(const Planter& at, const Drawn& drawn) {
    using cuda::probe::Mma;
    constexpr int tiles = 8;
    const Precision precision = mma_precisions[drawn["type"]];
    const Mma mma = precision == Precision::fp16 ? Mma::fp16_16x8x16 : Mma::bf16_16x8x16;
    if (const char* why = cuda::probe::mma_unsupported(mma); *why != '\0') throw Unsupported(why);
    const int blocks = at.multiprocessors();
    const auto iterations = static_cast<int>(drawn["iterations"]);
    const Memory out = at.allocate(std::int64_t{blocks} * cuda::probe::mma_threads * 4);
    const double flops = cuda::probe::mma_flops(mma, tiles, blocks) * iterations;
    Planted planted;
    planted.what = fmt::format("mma.sync in {}, {:.4g} GFLOP", name(precision), flops * 1e-9);
    planted.steps = {{"mma", flops, 0,
                      [=, stream = at.stream()] {
                          cuda::probe::mma_chains(mma, tiles, blocks, iterations, out->data(), nullptr, stream);
                      },
                      precision, true}};
    const bool apart = has_wgmma(at.gpu());
    planted.right = {{Bound::compute,
                      {precision == Precision::fp16 ? (apart ? "fp16_mma_sync" : "fp16_tensor")
                                                    : (apart ? "bf16_mma_sync" : "bf16_tensor")}}};
    planted.figures = {executed(flops), time_over_roof_time()};
    planted.budget = at.settled_budget({"tensor"});
    return planted;
}

constexpr Precision wgmma_precisions[] = {Precision::fp16, Precision::bf16, Precision::tf32};

/// Two warpgroups keep the tensor cores busy from shared memory, of which they read no operand of another instruction
/// twice as wide: nothing else is asked for.
Planted wgmma(const Planter& at, const Drawn& drawn) {
    if (!has_wgmma(at.gpu())) throw Unsupported("wgmma is compute capability 9.0's");
    constexpr int warpgroups = 2;
    const Precision precision = wgmma_precisions[drawn["type"]];
    const int blocks = at.multiprocessors();
    const auto iterations = static_cast<int>(drawn["iterations"]);
    const Memory out = at.allocate(std::int64_t{blocks} * warpgroups * 128 * 4);
    const double flops = cuda::probe::wgmma_flops(precision, warpgroups, blocks) * iterations;
    Planted planted;
    planted.what = fmt::format("wgmma in {}, {:.4g} GFLOP", name(precision), flops * 1e-9);
    planted.steps = {{"wgmma", flops, 0,
                      [=, stream = at.stream()] {
                          cuda::probe::wgmma_chains(precision, warpgroups, blocks, iterations, as<float>(out), nullptr,
                                                    stream);
                      },
                      precision, true}};
    planted.right = {{Bound::compute, {"fp16_tensor", "bf16_tensor", "tf32_tensor", "tensor pipe"}}};
    planted.figures = {executed(flops), counted("tensor pipe busy", 1, "tensor_pipe_active", 0.01)};
    planted.budget = at.settled_budget({"tensor"});
    return planted;
}

/// 16 results a cycle and SM: a warp takes the special-function unit two cycles, and nothing else half as long.
Planted special_functions(const Planter& at, const Drawn& drawn) {
    const int blocks = blocks_per_sm * at.multiprocessors();
    const auto iterations = static_cast<int>(drawn["iterations"]);
    const Memory out = at.allocate(std::int64_t{blocks} * cuda::known::unit_threads * 4);
    Planted planted;
    planted.what = fmt::format("ex2, {} of each thread", iterations * cuda::known::special_functions_an_iteration);
    planted.steps = {{"ex2", 0, 0, [=, stream = at.stream()] {
                          cuda::known::special_functions(blocks, iterations, as<float>(out), stream);
                      }}};
    planted.right = {{Bound::compute, {"special-function unit"}}};
    planted.figures = {
        active_cycles(2.0 * warps_per_sm * iterations * cuda::known::special_functions_an_iteration),
        counted("instructions",
                1.0 * at.multiprocessors() * warps_per_sm * iterations * cuda::known::special_functions_an_iteration,
                "xu_inst"),
        time_over_roof_time()};
    planted.budget = at.settled_budget();
    return planted;
}

/// Shuffles: 32 results a cycle and SM, all through the load-store unit. Each is a pass through the crossbar of shared
/// memory as well, which takes one a cycle: that the two roofs tie is right.
Planted load_store_unit(const Planter& at, const Drawn& drawn) {
    const int blocks = blocks_per_sm * at.multiprocessors();
    const auto iterations = static_cast<int>(drawn["iterations"]);
    const Memory out = at.allocate(std::int64_t{blocks} * cuda::known::unit_threads * 4);
    Planted planted;
    planted.what = fmt::format("shuffles, {} of each thread", iterations * cuda::known::shuffles_an_iteration);
    planted.steps = {{"shuffles", 0, 0, [=, stream = at.stream()] {
                          cuda::known::shuffles(blocks, iterations, as<std::uint32_t>(out), stream);
                      }}};
    planted.right = {{Bound::compute, {"load-store unit"}}, {Bound::not_identifiable, {}, "two-roofs"}};
    planted.figures = {
        active_cycles(1.0 * warps_per_sm * iterations * cuda::known::shuffles_an_iteration),
        counted("passes through shared memory",
                1.0 * at.multiprocessors() * warps_per_sm * iterations * cuda::known::shuffles_an_iteration,
                "shared_wavefronts"),
        time_over_roof_time()};
    planted.budget = at.settled_budget();
    return planted;
}

constexpr int shared_widths[] = {8, 16};

/// Loads of 8 or 16 bytes a thread: shared memory passes 128 bytes a cycle, so that an instruction takes it 2 or 4
/// cycles, and the load-store unit one.
Planted shared_memory(const Planter& at, const Drawn& drawn) {
    using cuda::probe::NearMemory;
    const int width = shared_widths[drawn["width"]], blocks = blocks_per_sm * at.multiprocessors();
    const auto passes = static_cast<int>(drawn["passes"]);
    const Memory data = at.allocate_random(cuda::probe::near_bytes(width)),
                 sums = at.allocate(cuda::probe::memory_sums * 4);
    const double bytes = static_cast<double>(cuda::probe::near_bytes(width)) * blocks * passes;
    Planted planted;
    planted.what = fmt::format("shared memory by loads of {} bytes, no conflicts", width);
    planted.steps = {{"shared", 0, 0, [=, stream = at.stream()] {
                          cuda::probe::read_near(NearMemory::shared, data->data(), width, blocks, passes,
                                                 as<std::uint32_t>(sums), nullptr, stream);
                      }}};
    planted.right = {{Bound::bandwidth, {"shared memory"}}};
    planted.figures = {counted("passes for loads", bytes / 128, "shared_load_wavefronts"), time_over_roof_time()};
    planted.budget = at.settled_budget({}, {"shared_load_wavefronts"});
    return planted;
}

/// A warp's 32 words lie `ways` apart: 32 / ways of 32 banks hold them all, `ways` in each, and a bank gives one word
/// a cycle.
Planted bank_conflicts(const Planter& at, const Drawn& drawn) {
    const int ways = 1 << drawn["log2 ways"], blocks = blocks_per_sm * at.multiprocessors();
    const auto cycles = static_cast<int>(drawn["kilocycles"] * 1000);
    const int iterations = cycles / (warps_per_sm * cuda::known::conflict_loads * ways);
    const Memory out = at.allocate(std::int64_t{blocks} * cuda::known::unit_threads * 4);
    const double loads = static_cast<double>(at.multiprocessors()) * warps_per_sm * cuda::known::conflict_loads *
                         static_cast<double>(iterations);
    Planted planted;
    planted.what = fmt::format("shared memory with {} ways of bank conflicts", ways);
    planted.steps = {{"conflicts", 0, 0, [=, stream = at.stream()] {
                          cuda::known::bank_conflicts(ways, blocks, iterations, as<std::uint32_t>(out), stream);
                      }}};
    planted.right = {{Bound::bandwidth, {"shared memory"}}};
    planted.figures = {counted("passes for loads", loads * ways, "shared_load_wavefronts"),
                       counted("of them for conflicts", loads * (ways - 1), "shared_load_bank_conflicts"),
                       time_over_roof_time()};
    planted.budget = at.settled_budget({}, {"shared_load_wavefronts", "shared_load_bank_conflicts"});
    return planted;
}

}  // namespace

std::vector<Truth> unit_truths() {
    constexpr BackendKind cuda = BackendKind::cuda;
    return {
        {"ffma", cuda, {{"iterations", 500, 1500}}, ffma},
        {"mma-sync", cuda, {{"type", 0, std::size(mma_precisions) - 1}, {"iterations", 1000, 2500}}, mma_sync},
        {"wgmma", cuda, {{"type", 0, std::size(wgmma_precisions) - 1}, {"iterations", 400, 900}}, wgmma},
        {"special-functions", cuda, {{"iterations", 150, 400}}, special_functions},
        {"load-store-unit", cuda, {{"iterations", 300, 800}}, load_store_unit},
        {"shared-memory", cuda, {{"width", 0, std::size(shared_widths) - 1}, {"passes", 2000, 5000}}, shared_memory},
        {"bank-conflicts", cuda, {{"log2 ways", 1, 4}, {"kilocycles", 1000, 2500}}, bank_conflicts},
    };
}

}  // namespace kbench
