// cuBLASLt: descriptors of a problem, candidate algorithms, and the launch.
#include "kernels/gemm/cublaslt.h"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>
#include <optional>

#include "kbench/error.h"
#include "kernels/check.h"
#include "kernels/gemm/gemm_types.h"
#include "kernels/gemm/tune.h"
#include "kernels/multiprocessors.h"

namespace kbench::cuda {
namespace {

/// More than enough: cuBLASLt 13.0 proposes at most 8 for a transformer's problems.
constexpr int most_candidates = 64;

template <typename Handle, cublasStatus_t (*destroy)(Handle)>
struct Destroy {
    using pointer = Handle;
    void operator()(Handle handle) const { destroy(handle); }
};
using MatmulDesc = std::unique_ptr<cublasLtMatmulDesc_t, Destroy<cublasLtMatmulDesc_t, cublasLtMatmulDescDestroy>>;
using Layout = std::unique_ptr<cublasLtMatrixLayout_t, Destroy<cublasLtMatrixLayout_t, cublasLtMatrixLayoutDestroy>>;
using Preference =
    std::unique_ptr<cublasLtMatmulPreference_t, Destroy<cublasLtMatmulPreference_t, cublasLtMatmulPreferenceDestroy>>;

template <typename Value>
void set(const MatmulDesc& desc, cublasLtMatmulDescAttributes_t attribute, const Value& value) {
    KBENCH_CUDA(cublasLtMatmulDescSetAttribute(desc.get(), attribute, &value, sizeof value));
}

template <typename Value>
void set(const Layout& layout, cublasLtMatrixLayoutAttribute_t attribute, const Value& value) {
    KBENCH_CUDA(cublasLtMatrixLayoutSetAttribute(layout.get(), attribute, &value, sizeof value));
}

template <typename Value>
void set(const Preference& preference, cublasLtMatmulPreferenceAttributes_t attribute, const Value& value) {
    KBENCH_CUDA(cublasLtMatmulPreferenceSetAttribute(preference.get(), attribute, &value, sizeof value));
}

cublasLtEpilogue_t epilogue(const GemmProblem& p) {
    if (p.gelu_gradient) return CUBLASLT_EPILOGUE_DGELU;
    // The library's A is our w. Its rows are the rows of A and of the output, and so our columns.
    if (p.bias_gradient) return CUBLASLT_EPILOGUE_BGRADA;
    if (p.keeps_argument) return p.bias ? CUBLASLT_EPILOGUE_GELU_AUX_BIAS : CUBLASLT_EPILOGUE_GELU_AUX;
    if (p.gelu) return p.bias ? CUBLASLT_EPILOGUE_GELU_BIAS : CUBLASLT_EPILOGUE_GELU;
    return p.bias ? CUBLASLT_EPILOGUE_BIAS : CUBLASLT_EPILOGUE_DEFAULT;
}

MatmulDesc make_desc(const GemmProblem& p) {
    cublasLtMatmulDesc_t created;
    const cudaDataType_t scale_type = p.precision == Precision::fp64 ? CUDA_R_64F : CUDA_R_32F;
    KBENCH_CUDA(cublasLtMatmulDescCreate(&created, compute_type(p.precision), scale_type));
    MatmulDesc desc(created);
    // A row-major matrix is the transpose of a column-major one: out^T = w^T x^T. The library's rows are our columns,
    // so its bias with one value per row is ours.
    set(desc, CUBLASLT_MATMUL_DESC_TRANSA, p.weight_transposed ? CUBLAS_OP_T : CUBLAS_OP_N);
    set(desc, CUBLASLT_MATMUL_DESC_TRANSB, p.x_transposed ? CUBLAS_OP_T : CUBLAS_OP_N);
    set(desc, CUBLASLT_MATMUL_DESC_EPILOGUE, epilogue(p));
    if (p.bias || p.bias_gradient) set(desc, CUBLASLT_MATMUL_DESC_BIAS_DATA_TYPE, cuda_type(storage_type(p.precision)));
    // Choosing an algorithm reads no memory, but the pointers tell the library the alignment to expect: that of all
    // memory that kbench allocates.
    constexpr std::uintptr_t aligned = 256;
    if (p.bias_gradient) set(desc, CUBLASLT_MATMUL_DESC_BIAS_POINTER, aligned);
    if (p.has_aux()) {
        set(desc, CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_POINTER, aligned);
        set(desc, CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_LD, p.ld_out);
    }
    return desc;
}

Layout make_layout(const Stored& stored, std::int64_t batch) {
    cublasLtMatrixLayout_t created;
    KBENCH_CUDA(cublasLtMatrixLayoutCreate(&created, cuda_type(stored.type), static_cast<std::uint64_t>(stored.columns),
                                           static_cast<std::uint64_t>(stored.rows), stored.ld));
    Layout layout(created);
    if (batch > 1) {
        set(layout, CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT, static_cast<std::int32_t>(batch));
        set(layout, CUBLASLT_MATRIX_LAYOUT_STRIDED_BATCH_OFFSET, stored.stride);
    }
    return layout;
}

/// The alignment that may be assumed of an operand. It may be a slice of a wider matrix (one head's q, say), so only
/// what its rows and batches keep; no kernel needs more than 16.
std::uint32_t alignment_of(const Stored& stored) {
    const auto element = static_cast<std::int64_t>(size_of(stored.type));
    return static_cast<std::uint32_t>(std::gcd(std::gcd(stored.ld * element, stored.stride * element), 16));
}

/// The arithmetic that an algorithm may use, so that what was asked for is what runs: in fp32 neither tf32 nor
/// emulation, in tf32 no fp32. Judged by the type of inputs, because Hopper's tf32 tensor-core kernels call themselves
/// FMA kernels (cuBLASLt 13.0, algorithm 43).
std::uint64_t allowed_arithmetic(Precision precision) {
    constexpr std::uint64_t any_accumulator = CUBLASLT_NUMERICAL_IMPL_FLAGS_ACCUMULATOR_TYPE_MASK;
    constexpr std::uint64_t any_unit = CUBLASLT_NUMERICAL_IMPL_FLAGS_OP_TYPE_MASK;
    if (precision == Precision::fp32)
        return any_accumulator | CUBLASLT_NUMERICAL_IMPL_FLAGS_FMA | CUBLASLT_NUMERICAL_IMPL_FLAGS_INPUT_32F;
    if (precision == Precision::tf32) return any_accumulator | any_unit | CUBLASLT_NUMERICAL_IMPL_FLAGS_INPUT_TF32;
    return any_accumulator | any_unit | CUBLASLT_NUMERICAL_IMPL_FLAGS_OP_INPUT_TYPE_MASK;
}

std::string device_name() {
    int device = 0;
    cudaDeviceProp properties;
    KBENCH_CUDA(cudaGetDevice(&device));
    KBENCH_CUDA(cudaGetDeviceProperties(&properties, device));
    return properties.name;
}

template <typename Value>
Value config(const cublasLtMatmulAlgo_t& algorithm, cublasLtMatmulAlgoConfigAttributes_t attribute) {
    Value value{};
    std::size_t written = 0;
    KBENCH_CUDA(cublasLtMatmulAlgoConfigGetAttribute(&algorithm, attribute, &value, sizeof value, &written));
    return value;
}

}  // namespace

struct LtGemm::State {
    GemmProblem problem;
    std::shared_ptr<cublasLtContext> handle;
    MatmulDesc desc;
    Layout w, x, out;  ///< A, B, and both C and D
    GemmAlgorithm algorithm;

    explicit State(const GemmProblem& p)
        : problem(p),
          handle(shared_lt_handle()),
          desc(make_desc(p)),
          w(make_layout(stored_w(p), p.batch)),
          x(make_layout(stored_x(p), p.batch)),
          out(make_layout(stored_out(p), p.batch)) {}

    /// The workspace that an algorithm takes for this problem; nothing where cuBLASLt refuses it.
    std::optional<std::size_t> workspace_of(const GemmAlgorithm& chosen) const {
        cublasLtMatmulHeuristicResult_t result{};
        const cublasStatus_t status = cublasLtMatmulAlgoCheck(handle.get(), desc.get(), w.get(), x.get(), out.get(),
                                                              out.get(), &chosen.algorithm, &result);
        return status == CUBLAS_STATUS_SUCCESS ? std::optional(result.workspaceSize) : std::nullopt;
    }

    bool accepts(const GemmAlgorithm& cached, std::size_t workspace_limit) const {
        if (cached.workspace_bytes > workspace_limit) return false;
        const std::optional<std::size_t> bytes = workspace_of(cached);
        return bytes && *bytes <= cached.workspace_bytes;
    }

    /// Proposals, the library's guess at the fastest first. `one_order` drops those that may add partial sums in the
    /// order in which they become ready. "In place" is one: counters make its additions one after another, but no order
    /// is documented (cuBLASLt, cublasLtReductionScheme_t). The other schemes add in a step of its own.
    std::vector<GemmAlgorithm> candidates(std::size_t workspace_limit, bool one_order) const {
        cublasLtMatmulPreference_t created;
        KBENCH_CUDA(cublasLtMatmulPreferenceCreate(&created));
        const Preference preference(created);
        set(preference, CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, workspace_limit);
        set(preference, CUBLASLT_MATMUL_PREF_IMPL_MASK, allowed_arithmetic(problem.precision));
        set(preference, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES, alignment_of(stored_w(problem)));
        set(preference, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES, alignment_of(stored_x(problem)));
        set(preference, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES, alignment_of(stored_out(problem)));
        set(preference, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES, alignment_of(stored_out(problem)));
        // The other schemes add partial sums in the type of the output, and 16 bits may be too few.
        if (one_order || size_of(problem.out_type) == 2)
            set(preference, CUBLASLT_MATMUL_PREF_REDUCTION_SCHEME_MASK,
                static_cast<std::uint32_t>(CUBLASLT_REDUCTION_SCHEME_COMPUTE_TYPE));

        std::vector<cublasLtMatmulHeuristicResult_t> results(most_candidates);
        int found = 0;
        const cublasStatus_t status =
            cublasLtMatmulAlgoGetHeuristic(handle.get(), desc.get(), w.get(), x.get(), out.get(), out.get(),
                                           preference.get(), most_candidates, results.data(), &found);
        // The library may report an epilogue that it lacks for these types or transposes as an invalid value.
        const bool is_refused =
            status == CUBLAS_STATUS_NOT_SUPPORTED || (status == CUBLAS_STATUS_INVALID_VALUE && problem.has_epilogue());
        if (!is_refused) KBENCH_CUDA(status);
        std::vector<GemmAlgorithm> algorithms;
        for (int i = 0; i < found; ++i)
            if (results[i].state == CUBLAS_STATUS_SUCCESS)
                algorithms.push_back({results[i].algo, results[i].workspaceSize});
        if (algorithms.empty())
            throw Unsupported(fmt::format(
                "cuBLASLt offers no {} algorithm{} within {} bytes of workspace for gemm m {} n {} k {}, leading dimensions {} {} {}",
                name(problem.precision), problem.has_epilogue() ? " with that epilogue" : "", workspace_limit,
                problem.m, problem.n, problem.k, problem.ld_x, problem.ld_w, problem.ld_out));
        return algorithms;
    }

    cublasStatus_t launch(const GemmAlgorithm& chosen, const GemmPointers& pointers, void* workspace,
                          cudaStream_t stream, bool accumulates = false) const {
        if (problem.bias) set(desc, CUBLASLT_MATMUL_DESC_BIAS_POINTER, pointers.bias);
        if (problem.bias_gradient) set(desc, CUBLASLT_MATMUL_DESC_BIAS_POINTER, pointers.bias_gradient);
        if (problem.has_aux()) set(desc, CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_POINTER, pointers.aux);
        constexpr Scalar one(1);
        const Scalar beta(accumulates ? 1 : 0);
        return cublasLtMatmul(handle.get(), desc.get(), one.as(problem.precision), pointers.w, w.get(), pointers.x,
                              x.get(), beta.as(problem.precision), pointers.out, out.get(), pointers.out, out.get(),
                              &chosen.algorithm, workspace, chosen.workspace_bytes, stream);
    }

    LaunchGemm launcher() const {
        return [this](const GemmAlgorithm& candidate, const GemmPointers& pointers, void* workspace, cudaStream_t on) {
            return launch(candidate, pointers, workspace, on) == CUBLAS_STATUS_SUCCESS;
        };
    }
};

static void check_epilogue(const GemmProblem& problem) {
    check_problem(problem);
    if (problem.precision == Precision::fp64 && problem.has_epilogue())
        throw Unsupported("cuBLASLt has no epilogue in fp64");
    // It gives a dx of 0.001171 where 0.001167 is right, with every algorithm.
    if (problem.gelu_gradient && problem.precision == Precision::fp32)
        throw Unsupported("cuBLASLt computes GELU's slope with fewer digits than fp32 has");
    if (problem.has_aux() && problem.ld_out % 8 != 0)  // cublasLt.h, CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_LD
        throw Unsupported(fmt::format("cuBLASLt takes GELU's argument in rows of a multiple of 8 elements, not of {}",
                                      problem.ld_out));
}

std::string lt_lacks(const GemmProblem& problem, std::size_t workspace_limit, bool one_order) {
    try {
        check_epilogue(problem);
        int devices = 0;
        if (cudaGetDeviceCount(&devices) == cudaSuccess && devices > 0)
            LtGemm::State(problem).candidates(workspace_limit, one_order);
    } catch (const Unsupported& refusal) {
        return refusal.what();
    }
    return "";
}

/// The SMs of the part of the device that `stream` belongs to; 0 where it may use all.
static int some_multiprocessors(cudaStream_t stream) {
    if (stream == nullptr) return 0;
    const int some = multiprocessors_of(stream);
    return some < multiprocessors_of(nullptr) ? some : 0;
}

LtGemm::LtGemm(const GemmProblem& problem, std::size_t workspace_limit, cudaStream_t stream) {
    check_epilogue(problem);
    state_ = std::make_unique<State>(problem);
    const std::vector<GemmAlgorithm> candidates = state_->candidates(workspace_limit, true);
    state_->algorithm = candidates.front();
    if (some_multiprocessors(stream) == 0) return;
    const State measured(problem_to_measure(problem));
    state_->algorithm = first_to_start(measured.problem, candidates, workspace_limit, measured.launcher(), stream);
}

LtGemm::LtGemm(const GemmProblem& problem, AlgorithmCache& cache, std::size_t workspace_limit, cudaStream_t stream) {
    check_epilogue(problem);
    state_ = std::make_unique<State>(problem);
    const std::string key = algorithm_key(problem, device_name(), cublaslt_version(), some_multiprocessors(stream));
    if (const GemmAlgorithm* cached = cache.find(key); cached && state_->accepts(*cached, workspace_limit)) {
        state_->algorithm = *cached;
        return;
    }
    const std::vector<GemmAlgorithm> candidates = state_->candidates(workspace_limit, false);
    const State measured(problem_to_measure(problem));
    state_->algorithm = fastest(measured.problem, candidates, workspace_limit, measured.launcher(), stream);
    cache.store(key, state_->algorithm);
}

LtGemm::LtGemm(const GemmProblem& problem, const GemmAlgorithm& algorithm, std::size_t workspace_limit) {
    check_epilogue(problem);
    state_ = std::make_unique<State>(problem);
    state_->algorithm = algorithm;
    const std::optional<std::size_t> bytes = state_->workspace_of(algorithm);
    if (!bytes || *bytes > workspace_limit)
        throw Unsupported(fmt::format(
            "cuBLASLt does not run another size's algorithm on gemm m {} n {} k {} within {} bytes of workspace",
            problem.m, problem.n, problem.k, workspace_limit));
    state_->algorithm.workspace_bytes = std::max(algorithm.workspace_bytes, *bytes);
}

LtGemm::~LtGemm() = default;
LtGemm::LtGemm(LtGemm&&) noexcept = default;

void LtGemm::run(const GemmPointers& pointers, void* workspace, cudaStream_t stream, bool accumulates) const {
    KBENCH_CUDA(state_->launch(state_->algorithm, pointers, workspace, stream, accumulates));
}

const GemmAlgorithm& LtGemm::algorithm() const { return state_->algorithm; }

std::string LtGemm::description() const {
    const cublasLtMatmulAlgo_t& algorithm = state_->algorithm.algorithm;
    const auto of = [&](cublasLtMatmulAlgoConfigAttributes_t attribute) {
        return config<std::uint32_t>(algorithm, attribute);
    };
    return fmt::format("cublasLt algo {} tile {} stages {} splitk {} swizzle {} custom {} cluster {}",
                       of(CUBLASLT_ALGO_CONFIG_ID), of(CUBLASLT_ALGO_CONFIG_TILE_ID),
                       of(CUBLASLT_ALGO_CONFIG_STAGES_ID), of(CUBLASLT_ALGO_CONFIG_SPLITK_NUM),
                       of(CUBLASLT_ALGO_CONFIG_CTA_SWIZZLING), of(CUBLASLT_ALGO_CONFIG_CUSTOM_OPTION),
                       config<std::uint16_t>(algorithm, CUBLASLT_ALGO_CONFIG_CLUSTER_SHAPE_ID));
}

std::size_t cublaslt_version() { return cublasLtGetVersion(); }

}  // namespace kbench::cuda
