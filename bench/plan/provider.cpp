// The table of providers.
#include "bench/plan/provider.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <stdexcept>

#include "kbench/error.h"

namespace kbench {

/// The function that makes a provider, declared where it is used, so that a provider is one line of the table.
#define MADE_BY(function)                                           \
    [](const ProviderContext& context) {                            \
        std::unique_ptr<Provider> function(const ProviderContext&); \
        return function(context);                                   \
    }

static std::vector<ProviderRow> built_in() {
    return {
#ifdef KBENCH_HAVE_CUDA
        {"gemv", BackendKind::cuda, "products of at most 4 rows (fp32: 1), on request of 16; each weight read once",
         MADE_BY(make_gemv)},
        // Before native, whose plain GEMM no model should run on by default.
        {"cublaslt", BackendKind::cuda, "GEMMs, bias and GELU in the epilogue, algorithm chosen by measurement",
         MADE_BY(make_cublaslt)},
        {"native", BackendKind::cuda, "kbench's own CUDA kernels", MADE_BY(make_cuda_native)},
        {"cublas", BackendKind::cuda, "GEMMs, cuBLAS's own choice of algorithm", MADE_BY(make_cublas)},
        {"native_naive", BackendKind::cuda, "GEMM ladder 1: one thread an element", MADE_BY(make_native_naive)},
        {"native_tiled", BackendKind::cuda, "GEMM ladder 2: tiles in shared memory", MADE_BY(make_native_tiled)},
        {"native_register", BackendKind::cuda, "GEMM ladder 3: tiles in registers, 16-byte loads",
         MADE_BY(make_native_register)},
        {"native_async", BackendKind::cuda, "GEMM ladder 4: cp.async into a ring of stages",
         MADE_BY(make_native_async)},
        {"native_mma", BackendKind::cuda, "GEMM ladder 5: tensor cores through mma.sync", MADE_BY(make_native_mma)},
#ifdef KBENCH_HAVE_CUDNN
        {"cudnn", BackendKind::cuda, "attention, conv2d and their gradients; only with --provider",
         MADE_BY(make_cudnn)},
#endif
#endif
        {"onednn", BackendKind::cpu,
         "GEMMs, attention, layer norm, convolutions: fp32, bf16, fp16; LSTM, GRU: bf16, fp16", MADE_BY(make_onednn)},
        {"blas", BackendKind::cpu, "GEMMs and attention through CBLAS: fp64, fp32", MADE_BY(make_blas)},
        {"native", BackendKind::cpu, "kbench's own vector loops for memory-bound steps; LSTM, GRU",
         MADE_BY(make_cpu_native)},
        {"reference", BackendKind::cpu, "plain fp64 loops, the oracle; slow, only with --provider",
         MADE_BY(make_reference)},
    };
}

namespace {

std::vector<ProviderRow>& all_rows() {
    static std::vector<ProviderRow> rows = built_in();
    return rows;
}

}  // namespace

std::span<const ProviderRow> provider_rows() { return all_rows(); }

std::string no_tf32(Precision precision) {
    return precision == Precision::tf32 ? "tf32 is a format of GPU tensor cores" : "";
}

bool register_provider(ProviderRow row) {
    if (row.name.empty() || row.name.find_first_of(",=* /") != std::string::npos)
        throw std::invalid_argument(
            fmt::format("a provider cannot be called '{}': --provider could not name it", row.name));
    const auto same = [&row](const ProviderRow& other) {
        return other.name == row.name && other.backend == row.backend;
    };
    if (std::ranges::any_of(all_rows(), same))
        throw std::invalid_argument(fmt::format("{} has a provider '{}' already", name(row.backend), row.name));
    all_rows().push_back(std::move(row));
    return true;
}

Providers make_providers(BackendKind backend, const ProviderContext& context) {
    Providers providers;
    for (const ProviderRow& row : all_rows())
        if (row.backend == backend) providers.push_back(row.make(context));
    return providers;
}

namespace {

/// "bias+gelu": what `step` computes besides its head.
Absorbed absorbed(const Step& step) {
    Absorbed kinds;
    for (std::size_t i = 0; i < step.ops.size(); ++i)
        if (i != step.head) kinds.push_back(name(step.ops[i]));
    return kinds;
}

template <class Range, class T>
bool holds(const Range& range, const T& value) {
    return std::ranges::find(range, value) != range.end();
}

/// Why a row does not take a step, and how many of its fields did.
struct Refusal {
    int passed = 0;
    std::string reason = {};
};

Refusal refusal(const ProviderOp& row, const Step& step, Precision precision) {
    const std::string_view op = op_name(step);
    if (!holds(row.directions, step.direction))
        return {1, fmt::format("has no {} in direction {}", op, name(step.direction))};
    if (!holds(row.precisions, precision)) return {2, fmt::format("has no {} in {}", op, name(precision))};
    const Absorbed along = absorbed(step);
    if (!along.empty() && !row.absorbs_anything && !holds(row.absorbs, along))
        return {3, fmt::format("its {} takes no {} in {}", op, fmt::join(along, "+"), name(precision))};
    if (step.keeps_results() && !row.leaves_results)
        return {3, fmt::format("its {} cannot also store the intermediate result", op)};
    return {4, row.why_not ? row.why_not(step, precision) : std::string()};
}

}  // namespace

std::string Provider::unsupported(const Step& step, Precision precision) const {
    Refusal nearest{0, fmt::format("has no {}", op_name(step))};
    for (const ProviderOp& row : ops) {
        if (row.kind != &step.head_op().kind()) continue;
        if (const std::string why = lacks ? lacks(precision) : std::string(); !why.empty()) return why;
        Refusal refused = refusal(row, step, precision);
        if (refused.reason.empty()) return "";
        if (refused.passed > nearest.passed) nearest = std::move(refused);
    }
    return nearest.reason;
}

const ProviderOp* Provider::row_of(const Step& step, Precision precision) const {
    for (const ProviderOp& row : ops)
        if (row.kind == &step.head_op().kind() && refusal(row, step, precision).reason.empty()) return &row;
    return nullptr;
}

bool Provider::takes_on_request_only(const Step& step, Precision precision) const {
    const ProviderOp* row = row_of(step, precision);
    return on_request_only || (row != nullptr && row->on_request_only);
}

std::unique_ptr<Computation> Provider::make(const Step& step, Precision precision) const {
    if (const std::string why = unsupported(step, precision); !why.empty()) throw Unsupported(why);
    if (const ProviderOp* row = row_of(step, precision)) return row->make(step, precision);
    throw Unsupported(fmt::format("has no {}", op_name(step)));
}

std::unique_ptr<Computation> resized(const Computation& computation, const Provider& provider, const Step& grown,
                                     Precision precision) {
    std::unique_ptr<Computation> made = computation.resized(grown, precision);
    if (!made) made = provider.make(grown, precision);
    if (made->implementation() != computation.implementation())
        throw Unsupported(fmt::format("{} {} runs {}, not {}", op_name(grown), shape_text(grown),
                                      made->implementation(), computation.implementation()));
    return made;
}

ProviderOp leaving_no_intermediates(ProviderOp row) {
    row.why_not = [otherwise = std::move(row.why_not)](const Step& step, Precision precision) -> std::string {
        if (step.keeps_intermediates()) return "cannot also store the intermediate result";
        return otherwise ? otherwise(step, precision) : "";
    };
    return row;
}

}  // namespace kbench
