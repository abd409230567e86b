// Truths of work that is not what its step claims, and of work of which nobody can say what binds it.
#include <fmt/format.h>

#include <cmath>
#include <utility>

#include "kbench/error.h"
#include "kernels/gemm/cublaslt.h"
#include "kernels/gemm/operands.h"
#include "tests/profile/known_kernels.h"
#include "tests/truths/figures.h"
#include "tests/truths/lists.h"
#include "tests/truths/planter.h"

namespace kbench {
namespace {

/// GEMMs of multiples of it have no overhanging tiles, whether theirs have 64, 96, 128, 192, 256 or 384 rows, nor do
/// clusters of two or four of them overhang.
constexpr std::int64_t whole_tiles = 3072;

struct Gemm {
    std::int64_t m, n, k;
    double flops() const { return 2.0 * static_cast<double>(m * n * k); }
};

/// cuBLAS's own choice, on random operands: zeros would run at another clock.
std::function<void()> gemm(const Planter& at, Precision precision, const Gemm& shape) {
    const DataType type = storage_type(precision);
    const auto [m, n, k] = shape;
    const std::int64_t element = precision == Precision::fp16 ? 2 : 4;
    const Memory x = at.allocate(m * k * element), w = at.allocate(k * n * element), out = at.allocate(m * n * element),
                 workspace = at.allocate(cuda::CublasGemm::workspace_bytes);
    cuda::fill_normal(type, x->data(), m * k, 1, 1, at.stream());
    cuda::fill_normal(type, w->data(), k * n, 1, 2, at.stream());
    const auto product = std::make_shared<cuda::CublasGemm>(cuda::GemmProblem{
        .precision = precision, .m = m, .n = n, .k = k, .out_type = type, .ld_x = k, .ld_w = n, .ld_out = n});
    return [=, stream = at.stream()] {
        product->run({x->data(), w->data(), nullptr, out->data()}, workspace->data(), stream);
    };
}

/// More columns are computed than the step needs, in whole tiles: tensor cores execute 2 m n k of all of them. wgmma of
/// 64 x 128 x 16 takes tensor cores 64 cycles and, with both operands in shared memory, 48 passes of that, beside what
/// fills it and the epilogue: one pipeline.
Planted padded_gemm(const Planter& at, const Drawn& drawn) {
    const Gemm useful{drawn["m"], drawn["useful n"], drawn["k"]}, padded{useful.m, whole_tiles, useful.k};
    Planted planted;
    planted.what = fmt::format("fp16 GEMM of {} columns, of which {} are needed", padded.n, useful.n);
    planted.steps = {{"padded", useful.flops(), 0, gemm(at, Precision::fp16, padded), Precision::fp16, true}};
    planted.right = {{Bound::compute, {"fp16_tensor", "tensor pipe", "fp16_tensor and shared memory"}}};
    planted.figures = {{"executed over useful FLOPs", padded.flops() / useful.flops(),
                        [useful](const KnownResult& known) -> std::optional<double> {
                            const auto flops = executed_flops(counters_of(known.step()), Precision::fp16);
                            return flops ? std::optional(*flops / useful.flops()) : std::nullopt;
                        }}};
    planted.budget = at.settled_budget({"tensor"});
    return planted;
}

/// Products with operands of 10 bits on tensor cores are several times as fast as fp32 on plain cores can be: the claim
/// contradicts physics.
Planted tf32_posing_as_fp32(const Planter& at, const Drawn& drawn) {
    const Gemm shape{drawn["m"], whole_tiles, drawn["k"]};
    Planted planted;
    planted.what = "tf32 GEMM that claims to be fp32";
    planted.steps = {{"posing", shape.flops(), 0, gemm(at, Precision::tf32, shape), Precision::fp32, true}};
    planted.figures = {{"tf32 FLOPs found out", shape.flops(), [](const KnownResult& known) {
                            return tensor_flops(counters_of(known.step()), Precision::tf32);
                        }}};
    planted.impossible = "the precision that ran";
    planted.budget = at.settled_budget({"tensor"});
    return planted;
}

/// As many FMAs to a byte as the measured roofs of fp32, at the clock of this work, and of L2 have: each would take as
/// long as the other. Enough warps do both at once that each takes most of the time.
Planted compute_and_l2_tied(const Planter& at, const Drawn& drawn) {
    constexpr int blocks_per_sm = 3;
    // More chunks than blocks: two blocks that read one at the same time are answered once.
    constexpr int spare_chunks = 61;
    constexpr double bytes_a_thread = 16 * cuda::known::tied_loads;
    const int blocks = blocks_per_sm * at.multiprocessors(), steps = static_cast<int>(drawn["steps"]);
    const std::int64_t read_bytes = (blocks + spare_chunks) * cuda::known::tied_bytes;
    if (read_bytes > at.gpu().l2_bytes / 2) throw Unsupported("so many chunks do not stay in L2");
    const Memory data = at.allocate_random(read_bytes),
                 out = at.allocate(std::int64_t{blocks} * cuda::known::unit_threads * 4);
    const auto enqueue_with = [=, stream = at.stream()](int rounds_256ths) {
        cuda::known::fma_over_l2(data->data(), static_cast<std::int64_t>(data->bytes()), blocks, steps, rounds_256ths,
                                 as<float>(out), stream);
    };
    const Ceiling &fp32 = at.roof("fp32_plain"), &l2 = at.roof("l2_read");
    const auto rounds_at = [&](double clock_mhz) {
        const double flop_per_s = *fp32.value.value * 1e12 * (fp32.clock_mhz > 0 ? clock_mhz / fp32.clock_mhz : 1);
        const double fmas = bytes_a_thread / (*l2.value.value * 1e9) * flop_per_s / 2;
        return static_cast<int>(std::lround((fmas - cuda::known::tied_fmas(0)) * 256 / cuda::known::tied_round));
    };
    // The clock is that of work with as many FMAs as it asks for: twice, as fewer of them draw less power. A clock that
    // was read before it had settled planted more FMAs than are tied, which was rightly found compute-bound (H100).
    double clock_mhz = fp32.clock_mhz;
    for (int pass = 0; pass < 2; ++pass) clock_mhz = at.clock_mhz([&] { enqueue_with(rounds_at(clock_mhz)); });
    const int rounds = rounds_at(clock_mhz);
    const double threads = static_cast<double>(blocks) * cuda::known::unit_threads;
    const double bytes = threads * steps * bytes_a_thread, flops = 2 * threads * steps * cuda::known::tied_fmas(rounds);
    Planted planted;
    planted.what = fmt::format("{:.3g} FLOPs for each byte from L2: both roof times are equal", flops / bytes);
    planted.steps = {{"tied", flops, 0, [=] { enqueue_with(rounds); }}};
    // That both bind, or that which of them does lies within the errors: neither alone. Around the FMAs stand other
    // instructions, so that the issue slots are busier than both roof times are long: that these bind is right, too.
    planted.right = {{Bound::not_identifiable, {}, "two-roofs"},
                     {Bound::not_identifiable, {}, "within-error"},
                     {Bound::compute, {"issue slots"}, "busy-unit"}};
    planted.figures = {executed(flops), l2_bytes(bytes)};
    planted.budget = at.settled_budget({"sass"});
    return planted;
}

}  // namespace

std::vector<Truth> claim_truths() {
    constexpr BackendKind cuda = BackendKind::cuda;
    return {
        {"compute-and-l2-tied", cuda, {{"steps", 400, 1000}}, compute_and_l2_tied},
        {"padded-gemm",
         cuda,
         {{"m", whole_tiles, 2 * whole_tiles, whole_tiles}, {"useful n", 2048, 2880, 8}, {"k", 2048, 4096, 256}},
         padded_gemm},
        {"tf32-posing-as-fp32",
         cuda,
         {{"m", whole_tiles, 2 * whole_tiles, whole_tiles}, {"k", 2048, 4096, 256}},
         tf32_posing_as_fp32},
    };
}

}  // namespace kbench
