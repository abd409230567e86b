// Builds a program's point kernel by kernel.
#include "tests/analysis/example_program.h"

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "tests/analysis/example_result.h"

namespace kbench::example {
namespace {

constexpr double kernels_us = 600, fill_us = 2;
constexpr std::int64_t copied_bytes = 4200000;

KernelResult kernel_of(const std::string& short_name, double time_us) {
    KernelResult kernel = one_wave_kernel(short_name, time_us);
    kernel.grid = {264, 1, 1};
    kernel.block = {128, 1, 1};
    kernel.registers = 64;
    kernel.stream = 7;
    kernel.theoretical_occupancy_pct = Quantity::derived(50);
    kernel.blocks_per_sm = 8;
    return kernel;
}

KernelResult moved(std::string name, std::string short_name, std::int64_t bytes, double time_us) {
    KernelResult kernel;
    kernel.name = std::move(name);
    kernel.short_name = std::move(short_name);
    kernel.time_us = time_us;
    kernel.moved_bytes = bytes;
    kernel.stream = 7;
    const std::string why = "it has no blocks";
    kernel.theoretical_occupancy_pct = kernel.waves = kernel.lost_in_last_wave_pct = Quantity::unavailable(why);
    return kernel;
}

void add(Point& point, std::string layer, std::string op, Precision precision, KernelResult kernel) {
    StepResult& step = point.steps.emplace_back();
    step.index = static_cast<int>(point.steps.size()) - 1;
    step.layer = std::move(layer);
    step.op = std::move(op);
    step.absorbs = {step.layer + ":" + step.op};
    step.provider = "program";
    step.implementation = kernel.short_name;
    step.precision = precision;
    step.kernels = {std::move(kernel)};
}

void add_gemm(Point& point, const std::string& layer, Precision precision, double time_us) {
    add(point, layer, "gemm", precision,
        kernel_of(precision == Precision::fp32 ? "ampere_sgemm_128x64_tn" : "sm90_xmma_gemm_f16f16_f16f32_tn",
                  time_us));
    StepResult& step = point.steps.back();
    step.shape = "m1024n3840k1280";
    step.cost.flops = step.matrix_flops = 2.0 * 1024 * 3840 * 1280;
    step.cost.bytes_read[static_cast<std::size_t>(Role::weights)] = 2.0 * 3840 * 1280;
    step.cost.bytes_read[static_cast<std::size_t>(Role::activations)] = 2.0 * 1024 * 1280;
    step.cost.bytes_written[static_cast<std::size_t>(Role::activations)] = 2.0 * 1024 * 3840;
    step.call = FrameworkCall{"Conv1D",
                              "aten::addmm",
                              "",
                              "[[3840], [1024, 1280], [1280, 3840]]",
                              "bench.py:40",
                              std::int64_t{100} + step.index,
                              std::nullopt,
                              4711};
}

void add_norm(Point& point, const std::string& layer, double time_us) {
    add(point, layer, "layernorm", Precision::fp16, kernel_of("vectorized_layer_norm_kernel<Half>", time_us));
    StepResult& step = point.steps.back();
    step.shape = "1024x1280";
    step.call = FrameworkCall{"LayerNorm",
                              "aten::layer_norm",
                              "aten::native_layer_norm",
                              "[[1, 1024, 1280], [], []]",
                              "bench.py:40",
                              std::int64_t{100} + step.index,
                              std::nullopt,
                              4711};
}

}  // namespace

Result program(const Planted& planted) {
    Result result = profiled_result();
    result.environment.command_line = "kbench attach -- python3 bench.py";
    result.warnings.clear();
    Point point;
    point.set("model", "bench.py");
    point.set("backend", "cuda");
    point.set("direction", "fwd");
    point.set("precision", Precision::fp16);
    point.set("repeat", 1);
    point.status = PointStatus::done;
    point.verification.enabled = false;
    add(point, "copy HtoD", "copy", Precision::fp16,
        moved("copy HtoD, pageable to device memory", "copy HtoD", copied_bytes, planted.copy_us));
    add(point, "fill", "fill", Precision::fp16, moved("fill", "fill", 8192, fill_us));
    for (const std::string h : {"h.0", "h.1"}) {
        const bool is_odd = planted.has_fp32_layer && h == "h.1";
        const Precision mlp = is_odd ? Precision::fp32 : Precision::fp16;
        const double part = kernels_us / 2;
        add_norm(point, h + ".ln_1", 0.1 * part);
        add_gemm(point, h + ".attn.c_attn", Precision::fp16, 0.3 * part);
        add_gemm(point, h + ".mlp.c_fc", mlp, 0.3 * part);
        add_gemm(point, h + ".mlp.c_proj", mlp, 0.3 * part);
    }
    const double count = static_cast<double>(point.steps.size());
    for (StepResult& step : point.steps) {
        KernelResult& kernel = step.kernels.front();
        kernel.host_wait_us = planted.host_wait_us / count;
        kernel.gap_us = (planted.host_wait_us + planted.queued_us) / count;
        if (!planted.is_named) {
            step.layer = kernel.short_name;
            step.absorbs.clear();
            step.shape.clear();
            step.call.reset();
            step.cost = {};
            step.matrix_flops = 0;
            if (!kernel.moved_bytes) step.op = "kernel";
        }
    }
    if (planted.overlap_us > 0) {
        KernelResult& last = point.steps.back().kernels.front();
        last.stream = 8;
        last.host_wait_us = last.gap_us = 0;
    }
    double busy_us = -planted.overlap_us, host_wait_us = 0, gaps_us = 0;
    for (const StepResult& step : point.steps) {
        point.cost += step.cost;
        busy_us += step.kernels.front().time_us;
        host_wait_us += *step.kernels.front().host_wait_us;
        gaps_us += step.kernels.front().gap_us;
    }
    const double recorded_us = busy_us + gaps_us, bare_us = recorded_us - planted.records_us;
    point.end_to_end.emplace().latency = timing(bare_us * 1e-3, 60);
    point.end_to_end->converged = true;
    const double bare_ms = point.end_to_end->latency.summary_ms.median;
    point.activity.runs = 20;
    point.activity.profiled_ms = bare_ms + planted.records_us * 1e-3;
    point.activity.unprofiled_ms = bare_ms;
    point.activity.kernels_ms = busy_us * 1e-3;
    point.activity.gaps_ms = gaps_us * 1e-3;
    point.counters.unavailable = "--counters none";
    ProgramRun& run = point.program.emplace();
    run.command = "python3 bench.py";
    run.iterations = 20;
    run.launches = 8;
    run.kernels = 8;
    run.copies = 2;
    run.recorded_ms = point.activity.profiled_ms;
    run.bare_ms = bare_ms;
    run.busy_ms = busy_us * 1e-3;
    run.host_wait_ms = host_wait_us * 1e-3;
    run.queued_ms = (gaps_us - host_wait_us) * 1e-3;
    run.named = planted.is_named;
    result.points = {std::move(point)};
    if (!planted.has_roofs) {
        result.ceilings = {};
        result.ceilings.unavailable = "no ceilings were measured (kbench ceilings)";
    }
    return result;
}

Point as_program(Point point, double host_share) {
    ProgramRun& run = point.program.emplace();
    run.command = "python3 bench.py";
    run.iterations = point.activity.runs;
    run.named = true;
    double busy_us = 0, gaps_us = 0;
    for (StepResult& step : point.steps) {
        step.provider = "program";
        step.time_us.reset();
        step.account.reset();
        for (KernelResult& kernel : step.kernels) {
            kernel.gap_us = std::max(0.0, kernel.gap_us);
            busy_us += kernel.time_us;
            gaps_us += kernel.gap_us;
            kernel.host_wait_us = host_share * kernel.gap_us;
            ++run.kernels;
        }
    }
    run.launches = run.kernels;
    run.recorded_ms = point.activity.profiled_ms = (busy_us + gaps_us) * 1e-3;
    run.bare_ms = point.activity.unprofiled_ms = point.end_to_end->latency.summary_ms.median;
    run.busy_ms = busy_us * 1e-3;
    run.host_wait_ms = host_share * gaps_us * 1e-3;
    run.queued_ms = (1 - host_share) * gaps_us * 1e-3;
    point.activity.inflation.clear();
    point.parameters = 0;
    point.weights.clear();
    point.seed = 0;
    point.memory = {};
    point.largest_batches.clear();
    point.compulsory_bytes.reset();
    point.verification = {};
    point.verification.enabled = false;
    EndToEnd& times = *point.end_to_end;
    times.stream = times.host_to_device = times.device_to_host = times.enqueue = std::nullopt;
    times.sequences_per_s = times.tokens_per_s = std::nullopt;
    times.energy_per_sequence_j = times.energy_per_token_j = std::nullopt;
    point.sm_scaling.reset();
    point.size_scaling.clear();
    point.theft.reset();
    point.graph_clock.reset();
    point.marginal.clear();
    point.phase_seconds.clear();
    point.step_overhead_us = {};
    return point;
}

}  // namespace kbench::example
