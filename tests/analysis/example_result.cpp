// Builds the example result, field by field.
#include "tests/analysis/example_result.h"

#include <fmt/format.h>

#include <cmath>
#include <random>
#include <utility>
#include <vector>

#include "analysis/result/result_json.h"
#include "tests/analysis/golden.h"

namespace kbench::example {

/// Samples around `center`, skewed upwards as times are: the golden ratio's multiples are spread evenly and never
/// repeat.
static std::vector<double> samples(double center, std::size_t n) {
    constexpr double golden_ratio = 0.6180339887498949;
    std::vector<double> values(n);
    for (std::size_t i = 0; i < n; ++i) {
        const double even = std::fmod(static_cast<double>(i) * golden_ratio, 1.0);
        values[i] = center * (0.998 + 0.006 * even * even);
    }
    return values;
}

Timing timing(double median_ms, std::size_t n) {
    Timing result{samples(median_ms, n), {}};
    result.summary_ms = summarise(result.samples_ms);
    return result;
}

static double& at(std::array<double, role_count>& bytes, Role role) { return bytes[static_cast<std::size_t>(role)]; }

namespace {

/// Builds a point's steps one after the other.
struct Steps {
    Precision precision;
    std::int64_t rows;
    double bytes_per_element;
    std::vector<StepResult> steps;

    void add(std::string layer, std::string op, std::vector<std::string> absorbs, std::string provider,
             std::string implementation, std::string shape, const Cost& cost, double time_us) {
        StepResult step;
        step.index = static_cast<int>(steps.size());
        step.layer = std::move(layer);
        step.op = std::move(op);
        step.absorbs = std::move(absorbs);
        step.provider = std::move(provider);
        step.implementation = std::move(implementation);
        step.shape = std::move(shape);
        step.precision = precision;
        step.cost = cost;
        step.time_us = summarise(samples(time_us, 15));
        steps.push_back(std::move(step));
    }

    void gemm(const std::string& layer, std::vector<std::string> absorbs, std::string provider,
              std::string implementation, std::int64_t n, std::int64_t k, double time_us) {
        const double m_ = static_cast<double>(rows), n_ = static_cast<double>(n), k_ = static_cast<double>(k);
        Cost cost;
        cost.flops = 2 * m_ * n_ * k_;
        at(cost.bytes_read, Role::weights) = n_ * k_ * bytes_per_element;
        at(cost.bytes_read, Role::activations) = m_ * k_ * bytes_per_element;
        at(cost.bytes_written, n == vocab ? Role::logits : Role::activations) = m_ * n_ * bytes_per_element;
        absorbs.insert(absorbs.begin(), layer + ":gemm");
        add(layer, "gemm", std::move(absorbs), std::move(provider), std::move(implementation),
            fmt::format("m{}n{}k{}", rows, n, k), cost, time_us);
    }

    void layernorm(const std::string& layer, std::vector<std::string> absorbs, double time_us) {
        Cost cost;
        cost.flops = 10.0 * static_cast<double>(rows * width);
        at(cost.bytes_read, Role::weights) = 3.0 * static_cast<double>(width) * bytes_per_element;
        at(cost.bytes_read, Role::activations) = 2.0 * static_cast<double>(rows * width) * bytes_per_element;
        at(cost.bytes_written, Role::activations) = at(cost.bytes_read, Role::activations);
        add(layer, "layernorm", std::move(absorbs), "native", "layernorm_row_per_warp",
            fmt::format("{}x{}", rows, width), cost, time_us);
    }

    void attention(const std::string& layer, const std::string& implementation, double time_us) {
        Cost cost;
        const double pairs = static_cast<double>(rows) * static_cast<double>(seq + 1) / 2;
        cost.flops = 4 * pairs * static_cast<double>(width);
        at(cost.bytes_read, Role::activations) = 3.0 * static_cast<double>(rows * width) * bytes_per_element;
        at(cost.bytes_written, Role::activations) = static_cast<double>(rows * width) * bytes_per_element;
        add(layer, "attention", {layer + ":attention"}, "native", implementation,
            fmt::format("b{}h20s{}d64", rows / seq, seq), cost, time_us);
    }
};

}  // namespace

static std::vector<StepResult> forward_steps(Precision precision, std::int64_t batch, const Machine& machine) {
    Steps list{precision, batch * seq, static_cast<double>(size_of(storage_type(precision))), {}};
    Cost embedding;
    embedding.flops = static_cast<double>(list.rows * width);
    at(embedding.bytes_read, Role::tokens) = 4.0 * static_cast<double>(list.rows);
    at(embedding.bytes_read, Role::weights) = static_cast<double>((list.rows + seq) * width) * list.bytes_per_element;
    at(embedding.bytes_written, Role::activations) = static_cast<double>(list.rows * width) * list.bytes_per_element;
    list.add("wte+wpe", "embedding", {"wte+wpe:embedding"}, "native", "embedding_vec8",
             fmt::format("{}x{}", list.rows, width), embedding, machine.layernorm);
    list.layernorm("h.0.ln_1", {"h.0.ln_1:layernorm"}, machine.layernorm);

    const bool is_cublaslt = machine.gemm_provider == "cublaslt";
    const std::string small_tile = is_cublaslt ? "algo 66, tile 128x128, stages 5, cluster 2x1" : "brg:avx512_core_amx";
    const std::string large_tile = is_cublaslt ? "algo 66, tile 128x256, stages 4, cluster 2x1" : "brg:avx512_core_amx";
    for (std::int64_t block = 0; block < layers; ++block) {
        const std::string h = fmt::format("h.{}", block);
        const std::string next = block + 1 < layers ? fmt::format("h.{}.ln_1", block + 1) : "ln_f";
        const std::string c_attn = h + ".attn.c_attn", c_proj = h + ".attn.c_proj", c_fc = h + ".mlp.c_fc",
                          mlp_proj = h + ".mlp.c_proj";
        list.gemm(c_attn, {c_attn + ":bias"}, machine.gemm_provider, large_tile, 3 * width, width, machine.qkv);
        list.attention(h + ".attn", machine.attention_implementation, machine.attention);
        list.gemm(c_proj, {}, machine.gemm_provider, small_tile, width, width, machine.proj);
        list.layernorm(c_proj, {c_proj + ":bias", h + ":residual", h + ".ln_2:layernorm"}, machine.layernorm);
        list.gemm(c_fc, {c_fc + ":bias", h + ".mlp.act:gelu"}, machine.gemm_provider, large_tile, 4 * width, width,
                  machine.fc);
        list.gemm(mlp_proj, {}, machine.gemm_provider, small_tile, width, 4 * width, machine.fc_proj);
        list.layernorm(mlp_proj, {mlp_proj + ":bias", h + ":residual", next + ":layernorm"}, machine.layernorm);
    }
    list.gemm("lm_head", {}, machine.gemm_provider, large_tile, vocab, width, machine.head);
    if (is_cublaslt) list.steps.back().padding_flops = 2.0 * static_cast<double>(list.rows * width) * (50304 - vocab);
    return std::move(list.steps);
}

Point finished_point(std::string backend, Precision precision, std::int64_t batch, const Machine& machine,
                     double median_ms) {
    Point point;
    point.set("model", "gpt2-large");
    point.set("backend", backend);
    point.set("attention", "fused");
    point.set("batch", batch);
    point.set("seq", seq);
    point.parameters = 774030080;
    point.set("repeat", 1);
    point.set("precision", precision);
    point.set("direction", "fwd");
    point.seed = 42;
    point.weights = "random";
    point.status = PointStatus::done;
    point.steps = forward_steps(precision, batch, machine);
    for (const StepResult& step : point.steps) {
        point.cost.flops += step.cost.flops;
        for (std::size_t role = 0; role < role_count; ++role) {
            point.cost.bytes_read[role] += step.cost.bytes_read[role];
            point.cost.bytes_written[role] += step.cost.bytes_written[role];
        }
        point.padding_flops += step.padding_flops;
    }
    point.compulsory_bytes =
        static_cast<double>(4 * batch * seq) + static_cast<double>(size_of(storage_type(precision))) *
                                                   static_cast<double>(point.parameters + batch * seq * vocab);
    const auto planned = [&](Role role) -> auto& { return point.memory.bytes[static_cast<std::size_t>(role)]; };
    planned(Role::tokens) = 4 * batch * seq;
    planned(Role::weights) = 2 * 774030080;
    planned(Role::activations) = 31457280 * batch;
    planned(Role::logits) = 2 * batch * seq * 50304;
    planned(Role::workspace) = 33554432;
    point.verification = {.enabled = true,
                          .seconds = 2.31,
                          .steps = {{.op = "gemm",
                                     .shape = fmt::format("m{}n3840k1280", batch * seq),
                                     .provider = machine.gemm_provider,
                                     .implementation = point.steps[2].implementation,
                                     .elements_checked = 4096,
                                     .elements_total = batch * seq * 3840,
                                     .worst_error = 0.0009765625,
                                     .bound_there = 0.03125,
                                     .error_over_bound = 0.03125},
                                    {.op = "attention",
                                     .shape = fmt::format("b{}h20s1024d64", batch),
                                     .provider = "native",
                                     .implementation = machine.attention_implementation,
                                     .elements_checked = 4096,
                                     .elements_total = batch * seq * width,
                                     .worst_error = 0.00048828125,
                                     .bound_there = 0.00390625,
                                     .error_over_bound = 0.125}}};
    EndToEnd times;
    times.latency = timing(median_ms, 120);
    times.sequences_per_s = static_cast<double>(batch) / times.latency.summary_ms.median * 1e3;
    times.tokens_per_s = *times.sequences_per_s * static_cast<double>(seq);
    times.converged = true;
    point.end_to_end = std::move(times);
    point.step_overhead_us = Quantity::measured(1.5);
    point.phase_seconds = {{"measure", 1.9}, {"plan", 0.002}, {"tune", 6.4}, {"verify", 2.31}, {"weights", 1.2}};
    return point;
}

Point gpu_point(std::int64_t batch, const Machine& machine, double median_ms) {
    Point point = finished_point("cuda", Precision::fp16, batch, machine, median_ms);
    EndToEnd& times = *point.end_to_end;
    times.stream = timing(median_ms * 1.06, 120);
    times.enqueue = timing(0.0153, 120);
    times.host_to_device = timing(0.0062 * static_cast<double>(batch), 120);
    times.device_to_host = timing(4.61 * static_cast<double>(batch), 120);
    times.energy_per_sequence_j = Quantity::measured(1.95);
    times.energy_per_token_j = Quantity::measured(0.0019043);
    point.conditions = {.sm_clock_mhz = Quantity::measured(1755),
                        .memory_clock_mhz = Quantity::measured(3201),
                        .power_w = {512.4, Origin::derived, "234.1 J by the energy counter in 0.457 s"},
                        .temperature_c = Quantity::measured(41),
                        .energy_j = Quantity::derived(234.1),
                        .throttle_reasons = {"sw_power_cap"},
                        .throttle_unavailable = "",
                        .throttled_samples = 3,
                        .readings = {},
                        .blocks = {}};
    return point;
}

Point cpu_point() {
    const Machine xeon{"onednn", "attention_avx512", 620, 480, 210, 830, 790, 55, 9800};
    Point point = finished_point("cpu", Precision::bf16, 1, xeon, 131.8);
    point.end_to_end->converged = false;
    point.verification = {.enabled = false, .seconds = 0, .steps = {}};
    const std::string no_counter = "/sys/class/powercap/intel-rapl cannot be read";
    point.end_to_end->energy_per_sequence_j = Quantity::unavailable(no_counter);
    point.end_to_end->energy_per_token_j = Quantity::unavailable(no_counter);
    point.conditions.sm_clock_mhz = {2610.0, Origin::estimated, "scaling_cur_freq of the pinned CPUs"};
    point.conditions.memory_clock_mhz = Quantity::unavailable("a CPU has none");
    point.conditions.power_w = Quantity::unavailable(no_counter);
    point.conditions.energy_j = Quantity::unavailable(no_counter);
    point.conditions.temperature_c = Quantity::unavailable("no thermal zone");
    point.conditions.throttle_unavailable = "no thermal_throttle/package_throttle_count";
    CpuShare& share = point.conditions.cpu_share.emplace();
    share.waited_share = Quantity::measured(0.0125);
    share.steal_share = share.throttled_share = share.throttled_periods = share.quota_periods = Quantity::measured(0);
    share.involuntary_switches = Quantity::measured(57);
    share.load = Quantity::measured(15.25);
    share.pressure_share = Quantity::unavailable("no /proc/pressure/cpu");
    share.starved_samples = 4;
    return point;
}

Point skipped_point() {
    Point point;
    point.set("model", "gpt2-large");
    point.set("backend", "cpu");
    point.set("attention", "fused");
    point.set("batch", 1);
    point.set("seq", seq);
    point.parameters = 774030080;
    point.set("repeat", 1);
    point.set("precision", Precision::fp16);
    point.set("direction", "fwd");
    point.seed = 42;
    point.weights = "random";
    point.reason = "fp16 needs AVX512_FP16; this CPU has avx512_core_bf16";
    return point;
}

Result result() {
    Result all;
    Environment& environment = all.environment;
    environment.kbench_version = "0.1.0";
    environment.git_revision = "3f2c1ab";
    environment.build_type = "Release";
    environment.compiler = "GCC 12.2.0";
    environment.libraries = {{"blas", "OpenBLAS 0.3.21"}, {"cublaslt", "13.1.0"}, {"onednn", "3.2.0"}};
    environment.command_line = "kbench --model gpt2-large --seq 1024 --batch 1,4 --precision fp16";
    environment.started_at = "2025-06-01T12:00:00Z";
    environment.host = {.cpu = "INTEL(R) XEON(R) PLATINUM 8581C",
                        .sockets = 1,
                        .physical_cores = 16,
                        .logical_cpus = 32,
                        .threads = 16,
                        .pinned = true,
                        .l1d_bytes = 49152,
                        .l2_bytes = 2097152,
                        .l3_bytes = 272629760,
                        .memory_bytes = 137438953472,
                        .isa = {"avx2", "avx512_core_bf16"},
                        .governor = "performance",
                        .os = "Debian GNU/Linux 12 (bookworm)",
                        .kernel = "6.1.0"};
    environment.gpu = GpuInfo{.name = "NVIDIA H200",
                              .uuid = "GPU-00000000-1111-2222-3333-444444444444",
                              .driver = "580.65.06",
                              .cuda_runtime = "13.0",
                              .compute_capability_major = 9,
                              .compute_capability_minor = 0,
                              .multiprocessors = 132,
                              .memory_bytes = 150110011392,
                              .l2_bytes = 62914560,
                              .max_sm_clock_mhz = Quantity::measured(1980),
                              .max_memory_clock_mhz = Quantity::measured(3201),
                              .power_limit_w = Quantity::measured(700)};
    const Machine h200{"cublaslt", "flash_wgmma_64", 17.9, 17.6, 9.0, 25.1, 21.2, 3.6, 175};
    const Machine h200_batch_4{"cublaslt", "flash_wgmma_64", 66, 56.5, 26, 95, 82, 11.5, 690};
    all.points = {gpu_point(1, h200, 3.68), gpu_point(4, h200_batch_4, 12.6), cpu_point(), skipped_point()};
    all.warnings = {"the CPU's governor could not be set"};
    return all;
}

/// GEMMs and attention take longer in proportion, all else as long on fewer SMs. The clock rises by 2 % each time.
void add_sm_scaling(Point& point) {
    SmScaling& scaling = point.sm_scaling.emplace();
    double clock_mhz = 1755;
    for (const int multiprocessors : {132, 96, 64, 32}) {
        SmCountRun& run = scaling.runs.emplace_back();
        run.multiprocessors = multiprocessors;
        run.sm_clock_mhz = Quantity::measured(clock_mhz);
        run.launches = 16;
        for (const StepResult& step : point.steps) {
            const double time_us = step.time_us ? step.time_us->median : 1;
            const bool in_proportion = step.op == "gemm" || step.op == "attention";
            const double us = in_proportion ? time_us * 132 / multiprocessors * 1755 / clock_mhz : time_us;
            run.step_us.push_back(us);
            run.step_low_us.push_back(us * 0.99);
            run.step_high_us.push_back(us * 1.01);
            run.latency_ms += us * 1e-3;
        }
        clock_mhz *= 1.02;
    }
}

/// Embeddings and norms take longer as DRAM's bandwidth is taken away, GEMMs and attention do not. A thief slows the
/// SMs' clock by 1 %, and what runs at that clock with it.
void add_theft(Point& point) {
    BandwidthTheft& theft = point.theft.emplace();
    const auto add = [&](std::string takes, double share) {
        ThiefRun& run = theft.runs.emplace_back();
        run.takes = std::move(takes);
        run.multiprocessors = 112;
        run.share = share;
        const double clock = run.takes == "nothing" ? 1 : 0.99;
        run.sm_clock_mhz = Quantity::measured(1755 * clock);
        run.launches = 18;
        for (const StepResult& step : point.steps) {
            const double time_us = step.time_us ? step.time_us->median : 1;
            const bool is_of_sms = step.op == "gemm" || step.op == "attention";
            double us = is_of_sms ? time_us * 132 / 112 / clock : time_us;
            if (run.takes == "dram" && !is_of_sms) us /= 1 - share;
            run.step_us.push_back(us);
            run.step_low_us.push_back(us * 0.995);
            run.step_high_us.push_back(us * 1.005);
            run.latency_ms += us * 1e-3;
        }
    };
    add("nothing", 0);
    add("compute", 0);
    for (const double share : {0.297, 0.1, 0.2}) {
        add("dram", share);
        add("l2", share);
    }
    add("compute", 0);
}

KernelResult one_wave_kernel(const std::string& short_name, double time_us) {
    KernelResult kernel;
    kernel.name = "void " + short_name + "(float const*)";
    kernel.short_name = short_name;
    kernel.time_us = time_us;
    kernel.waves = Quantity::derived(1);
    kernel.lost_in_last_wave_pct = Quantity::derived(0);
    kernel.limiters = {"registers"};
    return kernel;
}

void add_profile(Point& point) {
    point.activity = {"", 5, 4.1, 3.95, 3.68, 0.018, {{1.72, 1.73, 2.38}}};
    point.largest_batches = {{"fwd", 312, 148000000000, false}, {"train", 96, 148000000000, true}};
    point.marginal = {{"gemm", 145, timing(2.7, 15)}, {"attention", 36, timing(0.7, 15)}};
    point.conditions.readings = {{0.02, 1980, 3201, 640, 41}, {0.04, 1755, 3201, 698, std::nullopt}};
    point.conditions.blocks = {{0.03, 4.125, 1980, 1}, {0.06, 4.25, 1755, 1}, {0.09, 4.1875, std::nullopt, 0}};
    add_sm_scaling(point);
    add_theft(point);
    point.counters = {{"core"}, "", "GH100", 1, 1.28, {}};
    point.counters.metrics = {{"tensor_pipe_active", "%",
                               "sm__pipe_tensor_cycles_active.avg.pct_of_peak_sustained_active", Origin::measured, ""},
                              {"tcgen05_inst", "inst", "", Origin::unavailable, "tcgen05 instructions are GB1xx's"}};
    for (StepResult& step : point.steps) {
        const double time_us = step.time_us ? step.time_us->median : 1;
        KernelResult kernel = one_wave_kernel(step.implementation + "<float>", time_us);
        kernel.name = "void kbench::cuda::" + step.implementation + "<float>(float const*)";
        kernel.gap_us = 0.05;
        kernel.grid = {132, 2, 1};
        kernel.block = {256, 1, 1};
        kernel.registers = 128;
        kernel.dynamic_shared_bytes = 49152;
        kernel.theoretical_occupancy_pct = Quantity::derived(25);
        kernel.blocks_per_sm = 2;
        kernel.occupancy_hint = "48 fewer registers a thread (80): 25 % -> 38 %";
        step.kernels = {kernel};
        step.counters = {{"tensor_pipe_active", 41.5}};
        step.matrix_flops = step.op == "gemm" ? step.cost.flops + step.padding_flops : 0;
    }
}

Result short_result() {
    Result few = result();
    for (Point& point : few.points) {
        if (point.steps.size() > 4) point.steps.resize(4);
        if (!point.end_to_end) continue;
        EndToEnd& times = *point.end_to_end;
        times.latency = timing(times.latency.summary_ms.median, 12);
        for (auto* extra : {&times.stream, &times.enqueue, &times.host_to_device, &times.device_to_host})
            if (*extra) *extra = timing((*extra)->summary_ms.median, 12);
    }
    return few;
}

Result profiled_result() {
    Result result = short_result();
    for (Point& point : result.points)
        if (point.backend() == "cuda" && point.status == PointStatus::done) add_profile(point);
    result.ceilings = {"", "NVIDIA H200", "580.82", "2026-03-01T11:59:00Z", 6.5, {}};
    result.ceilings.ceilings = {
        {"dram_copy", Quantity::measured(4150), 4140, 4160, 0, {4800, Origin::estimated, "datasheet"}},
        {"l2_read", Quantity::measured(9500), 9400, 9600, 1980, Quantity::unavailable("not stated")},
        {"fp16_tensor", Quantity::measured(940), 930, 950, 1800, {989.5, Origin::estimated, "datasheet"}},
        {"fp32_plain", Quantity::measured(66.1), 66, 66.2, 1980, {66.9, Origin::estimated, "datasheet"}},
        {"graph_node", Quantity::measured(1.2), 1.19, 1.21, 0, Quantity::unavailable("not stated")}};
    return result;
}

Result long_result() {
    Result result = profiled_result();
    result.points.clear();
    std::mt19937 random(1);
    const auto varied = [&](double value) {
        return value * (0.9 + 0.2 * static_cast<double>(random()) / 4294967296.0);
    };
    for (int batch = 1; batch <= 18; ++batch) {
        const Machine h200{"cublaslt",   "flash_wgmma_64", 17.9 * batch, 17.6 * batch, 9.0 * batch,
                           25.1 * batch, 21.2 * batch,     3.6 * batch,  175.0 * batch};
        Point& point = result.points.emplace_back(gpu_point(batch, h200, 3.68 * batch));
        add_profile(point);
        for (StepResult& step : point.steps) {
            step.time_us->median = step.kernels[0].time_us = varied(step.time_us->median);
            step.kernels[0].gap_us = varied(0.05);
            for (const char* bytes : {"dram_read_bytes", "dram_write_bytes", "l1_bytes", "l2_bytes", "shared_bytes"})
                step.counters[bytes] = std::round(varied(step.cost.bytes()));
            for (const char* share : {"achieved_occupancy", "memory_throughput", "sm_throughput", "l2_hit_rate", "ipc"})
                step.counters[share] = varied(1);
            for (const char* other : {"sm_cycles_active", "sm_cycles_elapsed", "smsp_active", "time"})
                step.counters[other] = varied(1e4);
            for (int i = 0; i < 10; ++i) step.counters[fmt::format("pipe_{}", i)] = varied(50);
        }
        for (const auto& [name, value] : point.steps[0].counters)
            point.counters.metrics.push_back({name, "", "", Origin::measured, ""});
        point.conditions.readings.clear();
        for (int i = 0; i < 200; ++i)
            point.conditions.readings.push_back({0.02 * i, std::round(varied(1700)), 3201, varied(600), 41 + i / 20});
    }
    return result;
}

Result committed_result(const std::string& name) {
    const std::string path = KBENCH_SOURCE_DIR "/results/" + name;
    return parse_result(read_file(path), path);
}

}  // namespace kbench::example
