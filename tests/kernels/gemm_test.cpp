// cuBLASLt and cuBLAS against the reference, in every precision.
#include <unistd.h>

#include <cmath>
#include <cstring>
#include <filesystem>
#include <fstream>

#include "kbench/error.h"
#include "kernels/check.h"
#include "kernels/gemm/cublaslt.h"
#include "tests/kernels/device_matrix.h"

namespace kbench::test {
namespace {

using cuda::GemmProblem;

constexpr std::size_t workspace_limit = std::size_t{32} << 20;

struct Shape {
    std::int64_t m, n, k;
    bool weight_transposed = false, bias = false, gelu = false;
    std::int64_t padding = 0;  ///< behind every row, in elements
    bool x_transposed = false;
    bool keeps_argument = false, gelu_gradient = false, bias_gradient = false;
};

GemmProblem problem_of(Precision precision, const Shape& s) {
    return {.precision = precision,
            .m = s.m,
            .n = s.n,
            .k = s.k,
            .x_transposed = s.x_transposed,
            .weight_transposed = s.weight_transposed,
            .bias = s.bias,
            .gelu = s.gelu,
            .keeps_argument = s.keeps_argument,
            .gelu_gradient = s.gelu_gradient,
            .bias_gradient = s.bias_gradient,
            .out_type = storage_type(precision),
            .ld_x = (s.x_transposed ? s.m : s.k) + s.padding,
            .ld_w = (s.weight_transposed ? s.k : s.n) + s.padding,
            .ld_out = s.n + s.padding};
}

/// Without a fused kernel for rows that are no whole vectors, cuBLASLt 13 stores the product in 16 bits before it adds
/// the bias and applies GELU; where it keeps GELU's argument, rows of x count, too.
bool rounds_before_epilogue(const GemmProblem& p) {
    const bool is_whole = p.n % 8 == 0 && (p.k % 8 == 0 || !p.keeps_argument);
    return (p.bias || p.gelu) && size_of(p.out_type) == 2 && !is_whole;
}

/// Random operands of a problem without batches, and the run of a provider on them.
struct Operands {
    GemmProblem problem;
    HostMatrix x, w, bias;

    explicit Operands(const GemmProblem& p)
        : problem(p),
          x(p.x_transposed ? HostMatrix::normal(storage_type(p.precision), p.k, p.m, 1, 1, 0, p.ld_x)
                           : HostMatrix::normal(storage_type(p.precision), p.m, p.k, 1, 1, 0, p.ld_x)),
          w(p.weight_transposed ? HostMatrix::normal(storage_type(p.precision), p.n, p.k, 2, 0.05, 0, p.ld_w)
                                : HostMatrix::normal(storage_type(p.precision), p.k, p.n, 2, 0.05, 0, p.ld_w)),
          bias(HostMatrix::normal(storage_type(p.precision), 1, p.n, 3)) {}

    template <typename Provider>
    HostMatrix run(const Provider& provider, std::size_t workspace_bytes, cudaStream_t stream = nullptr) const {
        const DeviceMatrix device_x(x), device_w(w), device_bias(bias);
        const auto out = DeviceMatrix::poisoned(problem.out_type, problem.m, problem.n, problem.ld_out);
        void* workspace = nullptr;
        KBENCH_CUDA(cudaMalloc(&workspace, workspace_bytes));
        provider.run({device_x.data(), device_w.data(), problem.bias ? device_bias.data() : nullptr, out.data()},
                     workspace, stream);
        HostMatrix result = out.download();
        KBENCH_CUDA(cudaFree(workspace));
        for (std::int64_t row = 0; row < problem.m; ++row)
            for (std::int64_t column = problem.n; column < problem.ld_out; ++column) {
                const double padding = reference::View{result.bytes.data(), result.type, problem.m, problem.ld_out,
                                                       problem.ld_out}(row, column);
                if (!std::isnan(padding)) {
                    ADD_FAILURE() << "padding of row " << row << " was written";
                    return result;
                }
            }
        return result;
    }

    std::vector<reference::Expected> expected(const std::vector<reference::Element>& elements) const {
        if (problem.x_transposed)  // as a weight's gradient is
            return reference::gemm_gradient({problem.k, problem.n, problem.m}, Direction::wgrad, x.view(), w.view(),
                                            elements);
        const Gemm gemm{problem.m, problem.n, problem.k, problem.weight_transposed};
        auto expected =
            reference::gemm(gemm, x.view(), w.view(), problem.bias ? bias.view() : reference::View{},
                            problem.gelu ? std::optional(Activation::gelu_tanh) : std::nullopt, {}, elements);
        if (rounds_before_epilogue(problem)) {
            const auto products = reference::gemm(gemm, x.view(), w.view(), {}, std::nullopt, {}, elements);
            for (std::size_t i = 0; i < expected.size(); ++i) expected[i].inner += std::abs(products[i].value);
        }
        return expected;
    }

    void expect_correct(const HostMatrix& result) const {
        const auto elements = elements_of(problem.m, problem.n, 500);
        expect_agrees(result, elements, expected(elements), problem.precision);
    }
};

/// A problem with an epilogue of training on random operands: what it leaves behind, and what that should be.
class EpilogueOfTraining {
  public:
    explicit EpilogueOfTraining(const GemmProblem& p)
        : operands_(p), aux_(HostMatrix::normal(p.out_type, p.m, p.n, 5, 1, 0, p.ld_out)) {}
    const GemmProblem& problem() const { return operands_.problem; }

    void check(const cuda::LtGemm& gemm) const {
        const GemmProblem& p = problem();
        const DeviceMatrix x(operands_.x), w(operands_.w), bias(operands_.bias);
        const auto out = DeviceMatrix::poisoned(p.out_type, p.m, p.n, p.ld_out),
                   sums = DeviceMatrix::poisoned(p.out_type, 1, p.n);
        const auto aux = p.gelu_gradient ? DeviceMatrix(aux_) : DeviceMatrix::poisoned(p.out_type, p.m, p.n, p.ld_out);
        void* workspace = nullptr;
        KBENCH_CUDA(cudaMalloc(&workspace, gemm.algorithm().workspace_bytes));
        gemm.run({x.data(), w.data(), p.bias ? bias.data() : nullptr, out.data(), p.has_aux() ? aux.data() : nullptr,
                  p.bias_gradient ? sums.data() : nullptr},
                 workspace, nullptr);
        const auto elements = elements_of(p.m, p.n, 2000);
        auto expected = operands_.expected(elements);
        if (p.gelu_gradient) expected = reference::times_slope(Activation::gelu_tanh, expected, aux_.view(), elements);
        if (p.gelu_gradient && size_of(p.out_type) == 2)  // some kernels store the product before they apply the slope
            for (reference::Expected& e : expected) e.inner += std::abs(e.value) / reference::deviations;
        {
            SCOPED_TRACE("the product");
            expect_agrees(out.download(), elements, expected, p.precision);
        }
        if (p.keeps_argument) {
            SCOPED_TRACE("what GELU is applied to");
            const Gemm plain{p.m, p.n, p.k, p.weight_transposed};
            const auto sums_of = [&](reference::View bias_view) {
                return reference::gemm(plain, operands_.x.view(), operands_.w.view(), bias_view, std::nullopt, {},
                                       elements);
            };
            auto arguments = sums_of(p.bias ? operands_.bias.view() : reference::View{});
            if (rounds_before_epilogue(p)) {
                const auto products = sums_of({});
                for (std::size_t i = 0; i < arguments.size(); ++i) arguments[i].inner += std::abs(products[i].value);
            }
            expect_agrees(aux.download(), elements, arguments, p.precision);
        }
        if (p.gelu_gradient) {
            EXPECT_TRUE(aux.download().bytes == aux_.bytes) << "GELU's argument was written";
        }
        if (p.bias_gradient) {
            SCOPED_TRACE("the bias's gradient");
            const auto all = elements_of(1, p.n);
            expect_agrees(sums.download(), all, reference::product_bias_gradient({p.k, p.n}, operands_.w.view(), all),
                          p.precision);
        }
        KBENCH_CUDA(cudaFree(workspace));
    }

  private:
    Operands operands_;
    HostMatrix aux_;
};

/// A cache in a folder of its own, gone with the test.
class GemmOnDevice : public ::testing::TestWithParam<Precision> {
  protected:
    GemmOnDevice()
        : folder_(std::filesystem::temp_directory_path() / ("kbench_gemm_test_" + std::to_string(getpid()))) {
        std::filesystem::remove_all(folder_);
    }
    ~GemmOnDevice() override { std::filesystem::remove_all(folder_); }
    std::filesystem::path file() const { return folder_ / "algorithms.json"; }

    void check_lt(const Shape& shape) {
        SCOPED_TRACE(testing::Message() << "m " << shape.m << " n " << shape.n << " k " << shape.k);
        cuda::AlgorithmCache cache(file(), false);
        const Operands operands(problem_of(GetParam(), shape));
        const cuda::LtGemm gemm(operands.problem, cache, workspace_limit);
        operands.expect_correct(operands.run(gemm, gemm.algorithm().workspace_bytes));
        EXPECT_GT(gemm.algorithm().median_us, 0);
        EXPECT_GE(gemm.algorithm().candidates, 1);
        EXPECT_TRUE(gemm.description().starts_with("cublasLt algo ")) << gemm.description();
    }

    /// Measured and not. What cuBLASLt has no kernel for is left out: in 16 bits none of the aligned shapes. Returns
    /// how many were computed.
    int check_training(std::initializer_list<Shape> shapes) {
        int computed = 0;
        for (const Shape& shape : shapes) {
            SCOPED_TRACE(testing::Message() << "m " << shape.m << " n " << shape.n << " k " << shape.k);
            const EpilogueOfTraining epilogue(problem_of(GetParam(), shape));
            cuda::AlgorithmCache cache(file(), false);
            const std::string lacks = cuda::lt_lacks(epilogue.problem(), workspace_limit, false);
            if (!lacks.empty()) {
                const bool is_aligned = shape.m % 8 == 0 && shape.n % 8 == 0 && shape.k % 8 == 0;
                EXPECT_FALSE(is_aligned && size_of(storage_type(GetParam())) == 2) << lacks;
                EXPECT_THROW(cuda::LtGemm(epilogue.problem(), cache, workspace_limit), Unsupported);
                continue;
            }
            epilogue.check(cuda::LtGemm(epilogue.problem(), cache, workspace_limit));
            if (cuda::lt_lacks(epilogue.problem(), workspace_limit, true).empty())
                epilogue.check(cuda::LtGemm(epilogue.problem(), workspace_limit));
            ++computed;
        }
        return computed;
    }

    void check_cublas(const Shape& shape) {
        SCOPED_TRACE(testing::Message() << "m " << shape.m << " n " << shape.n << " k " << shape.k);
        const Operands operands(problem_of(GetParam(), shape));
        const cuda::CublasGemm gemm(operands.problem);
        operands.expect_correct(operands.run(gemm, cuda::CublasGemm::workspace_bytes));
    }

  private:
    std::filesystem::path folder_;
};

constexpr Shape plain_shapes[] = {
    {1, 1280, 1280},        {17, 64, 100},          {1000, 100, 64},
    {64, 128, 256, true},   {17, 1283, 1280},       {33, 1280, 1283, true},
    {3072, 1280, 320},      {1000, 64, 5120, true}, {128, 256, 64, false, false, false, 8},
    {7, 50257, 1280, true}, {7, 50304, 1280, true},
};

constexpr Shape gradient_shapes[] = {
    {.m = 64, .n = 100, .k = 17, .x_transposed = true},
    {.m = 1280, .n = 3840, .k = 1000, .x_transposed = true},
    {.m = 1283, .n = 129, .k = 333, .x_transposed = true},
    {.m = 128, .n = 256, .k = 64, .padding = 8, .x_transposed = true},
    {.m = 50257, .n = 64, .k = 300, .x_transposed = true},
};

TEST_P(GemmOnDevice, BothComputeProductsOfATransposedLeftSide) {
    KBENCH_NEEDS_DEVICE();
    for (const Shape& shape : gradient_shapes) {
        check_lt(shape);
        check_cublas(shape);
    }
}

TEST_P(GemmOnDevice, LtComputesTheProduct) {
    KBENCH_NEEDS_DEVICE();
    for (const Shape& shape : plain_shapes) check_lt(shape);
}

TEST_P(GemmOnDevice, LtAddsBiasAndAppliesGelu) {
    KBENCH_NEEDS_DEVICE();
    if (GetParam() == Precision::fp64) GTEST_SKIP() << "cuBLASLt has no epilogue in fp64";
    check_lt({17, 64, 100, false, true, false});
    check_lt({1000, 1280, 320, false, true, false});
    check_lt({1000, 5120, 1280, false, true, true});
    check_lt({33, 100, 64, true, true, true});
    check_lt({33, 128, 64, false, false, true});
}

TEST_P(GemmOnDevice, LtKeepsWhatGeluIsAppliedTo) {
    KBENCH_NEEDS_DEVICE();
    const Shape with_argument{.m = 0, .n = 0, .k = 0, .gelu = true, .keeps_argument = true};
    const auto of = [&](std::int64_t m, std::int64_t n, std::int64_t k, bool bias, std::int64_t padding = 0) {
        Shape shape = with_argument;
        shape.m = m, shape.n = n, shape.k = k, shape.bias = bias, shape.padding = padding;
        return shape;
    };
    const int computed = check_training({of(4096, 5120, 1280, true), of(1024, 3072, 768, true), of(1000, 64, 320, true),
                                         of(33, 136, 100, true), of(17, 128, 64, false), of(128, 256, 64, true, 8),
                                         of(33, 100, 64, true), of(33, 129, 65, true)});
    RecordProperty("computed", computed);
}

TEST_P(GemmOnDevice, LtAppliesTheSlopeOfGeluToAGradient) {
    KBENCH_NEEDS_DEVICE();
    const auto of = [](std::int64_t m, std::int64_t n, std::int64_t k, std::int64_t padding = 0) {
        return Shape{.m = m, .n = n, .k = k, .weight_transposed = true, .padding = padding, .gelu_gradient = true};
    };
    Shape tied = of(128, 256, 64);
    tied.weight_transposed = false;
    const int computed = check_training({of(4096, 5120, 1280), of(1024, 3072, 768), of(1000, 64, 320), of(33, 136, 100),
                                         of(128, 256, 64, 8), of(33, 100, 64), of(33, 129, 65), tied});
    RecordProperty("computed", computed);
}

TEST_P(GemmOnDevice, LtAddsUpABiasesGradientBesideAWeights) {
    KBENCH_NEEDS_DEVICE();
    const auto of = [](std::int64_t m, std::int64_t n, std::int64_t k, std::int64_t padding = 0) {
        return Shape{.m = m, .n = n, .k = k, .padding = padding, .x_transposed = true, .bias_gradient = true};
    };
    const int computed =
        check_training({of(1280, 5120, 4096), of(5120, 1280, 4096), of(768, 2304, 1024), of(64, 1000, 320),
                        of(100, 136, 33), of(128, 256, 64, 8), of(1283, 129, 333), of(64, 100, 17)});
    RecordProperty("computed", computed);
}

TEST_P(GemmOnDevice, CublasComputesTheProduct) {
    KBENCH_NEEDS_DEVICE();
    for (const Shape& shape : plain_shapes) check_cublas(shape);
}

TEST_P(GemmOnDevice, ComputesInThePrecisionAskedFor) {
    KBENCH_NEEDS_DEVICE();
    if (storage_type(GetParam()) != DataType::fp32) GTEST_SKIP() << "only fp32 storage leaves a choice of multiplier";
    cuda::AlgorithmCache cache(file(), false);
    const Operands operands(problem_of(GetParam(), {1024, 1280, 1280}));
    const auto elements = elements_of(1024, 1280, 2000);
    const auto expected = operands.expected(elements);
    const cuda::LtGemm lt(operands.problem, cache, workspace_limit);
    const cuda::CublasGemm cublas(operands.problem);
    for (const HostMatrix& result :
         {operands.run(lt, workspace_limit), operands.run(cublas, cuda::CublasGemm::workspace_bytes)}) {
        std::size_t beyond_fp32 = 0;
        for (std::size_t i = 0; i < elements.size(); ++i)
            beyond_fp32 += !reference::agrees(result(elements[i].row, elements[i].column), expected[i], Precision::fp32,
                                              DataType::fp32);
        if (GetParam() == Precision::fp32) {
            EXPECT_EQ(beyond_fp32, 0u);
        } else {
            EXPECT_GT(beyond_fp32, elements.size() / 2) << "more accurate than tf32 can be";
        }
    }
}

/// The unfused attention's products: one strided batch over heads, operands sliced out of qkv, scores optionally
/// upcast.
TEST_P(GemmOnDevice, BatchesOverHeadsInsideQkv) {
    KBENCH_NEEDS_DEVICE();
    const Precision precision = GetParam();
    const DataType type = storage_type(precision);
    constexpr std::int64_t heads = 5, seq = 65, head_size = 64, width = heads * head_size;
    const auto qkv = HostMatrix::normal(type, seq, 3 * width, 1);
    const DeviceMatrix device_qkv(qkv);
    const auto* q = static_cast<const char*>(device_qkv.data());
    const AttentionShape shape{1, heads, seq, head_size};
    cuda::AlgorithmCache cache(file(), false);
    void* workspace = nullptr;
    KBENCH_CUDA(cudaMalloc(&workspace, workspace_limit));
    for (const bool upcast : {false, true}) {
        if (upcast && size_of(type) != 2) continue;
        const DataType scores_type = upcast ? DataType::fp32 : type;
        const GemmProblem scores_problem{.precision = precision,
                                         .m = seq,
                                         .n = seq,
                                         .k = head_size,
                                         .weight_transposed = true,
                                         .out_type = scores_type,
                                         .ld_x = 3 * width,
                                         .ld_w = 3 * width,
                                         .ld_out = seq,
                                         .batch = heads,
                                         .stride_x = head_size,
                                         .stride_w = head_size,
                                         .stride_out = seq * seq};
        const cuda::LtGemm lt(scores_problem, cache, workspace_limit);
        const cuda::CublasGemm cublas(scores_problem);
        const auto elements = elements_of(heads * seq, seq, 4000);
        const auto expected = reference::attention_scores({shape, upcast}, qkv.view(), elements);
        for (const bool use_lt : {true, false}) {
            const auto scores = DeviceMatrix::poisoned(scores_type, heads * seq, seq);
            const cuda::GemmPointers pointers{q, q + width * size_of(type), nullptr, scores.data()};
            use_lt ? lt.run(pointers, workspace, nullptr) : cublas.run(pointers, workspace, nullptr);
            expect_agrees(scores.download(), elements, expected, precision);
        }
    }
    const auto probabilities = HostMatrix::normal(type, heads * seq, seq, 2);
    const DeviceMatrix device_probabilities(probabilities);
    const GemmProblem context_problem{.precision = precision,
                                      .m = seq,
                                      .n = head_size,
                                      .k = seq,
                                      .out_type = type,
                                      .ld_x = seq,
                                      .ld_w = 3 * width,
                                      .ld_out = width,
                                      .batch = heads,
                                      .stride_x = seq * seq,
                                      .stride_w = head_size,
                                      .stride_out = head_size};
    const cuda::LtGemm lt(context_problem, cache, workspace_limit);
    const auto out = DeviceMatrix::poisoned(type, seq, width);
    lt.run({device_probabilities.data(), q + 2 * width * size_of(type), nullptr, out.data()}, workspace, nullptr);
    const auto elements = elements_of(seq, width, 4000);
    expect_agrees(out.download(), elements,
                  reference::attention_context({shape}, probabilities.view(), qkv.view(), elements), precision);
    KBENCH_CUDA(cudaFree(workspace));
}

TEST_P(GemmOnDevice, RemembersTheAlgorithmAndRefusesAStaleOne) {
    KBENCH_NEEDS_DEVICE();
    const Operands operands(problem_of(GetParam(), {64, 128, 256}));
    {
        cuda::AlgorithmCache cache(file(), false);
        const cuda::LtGemm measured(operands.problem, cache, workspace_limit);
        EXPECT_FALSE(measured.algorithm().from_cache);
    }
    {
        cuda::AlgorithmCache cache(file(), false);
        const cuda::LtGemm remembered(operands.problem, cache, workspace_limit);
        EXPECT_TRUE(remembered.algorithm().from_cache);
        operands.expect_correct(operands.run(remembered, remembered.algorithm().workspace_bytes));
    }
    // The same file with an algorithm that no library version has written.
    std::ifstream input(file());
    std::string text((std::istreambuf_iterator<char>(input)), {});
    const auto words = text.find('[') + 1, end = text.find(']');
    text.replace(words, end - words, R"("ff","ff","ff","ff","ff","ff","ff","ff")");
    std::ofstream(file()) << text;
    cuda::AlgorithmCache cache(file(), false);
    const cuda::LtGemm again(operands.problem, cache, workspace_limit);
    EXPECT_TRUE(cache.warnings().empty());
    EXPECT_FALSE(again.algorithm().from_cache);
    operands.expect_correct(operands.run(again, again.algorithm().workspace_bytes));
}

TEST_P(GemmOnDevice, LtRunsTheAlgorithmOfAnotherSizeAndSaysTheSameOfIt) {
    KBENCH_NEEDS_DEVICE();
    cuda::AlgorithmCache cache(file(), false);
    const Operands own(problem_of(GetParam(), {256, 256, 256}));
    const cuda::LtGemm chosen(own.problem, cache, workspace_limit);
    for (const std::int64_t k : {512, 1024}) {
        const Operands longer(problem_of(GetParam(), {256, 256, k}));
        const cuda::LtGemm pinned(longer.problem, chosen.algorithm(), workspace_limit);
        EXPECT_EQ(pinned.description(), chosen.description());
        EXPECT_GE(pinned.algorithm().workspace_bytes, chosen.algorithm().workspace_bytes);
        longer.expect_correct(longer.run(pinned, pinned.algorithm().workspace_bytes));
    }
}

TEST_P(GemmOnDevice, LtRefusesAnAlgorithmThatCannotRunTheProblem) {
    KBENCH_NEEDS_DEVICE();
    const GemmProblem problem = problem_of(GetParam(), {256, 256, 256});
    cuda::GemmAlgorithm unknown = cuda::LtGemm(problem, workspace_limit).algorithm();
    EXPECT_NO_THROW(cuda::LtGemm(problem, unknown, workspace_limit));
    std::memset(&unknown.algorithm, 0xff, sizeof unknown.algorithm);
    EXPECT_THROW(cuda::LtGemm(problem, unknown, workspace_limit), Unsupported);
}

TEST_P(GemmOnDevice, WithoutMeasuringItTakesTheSameAlgorithmAndLeavesTheSameBits) {
    KBENCH_NEEDS_DEVICE();
    const Shape shapes[] = {{64, 64, 65536},
                            {1000, 100, 64},
                            {17, 1283, 1280},
                            {.m = 192, .n = 64, .k = 16384, .x_transposed = true},
                            {.m = 1280, .n = 3840, .k = 1000, .x_transposed = true}};
    for (const Shape& shape : shapes) {
        SCOPED_TRACE(testing::Message() << "m " << shape.m << " n " << shape.n << " k " << shape.k);
        const Operands operands(problem_of(GetParam(), shape));
        const cuda::LtGemm first(operands.problem, workspace_limit), second(operands.problem, workspace_limit);
        EXPECT_EQ(first.description(), second.description());
        EXPECT_EQ(first.algorithm().candidates, 0) << "none was measured";
        const HostMatrix result = operands.run(first, first.algorithm().workspace_bytes);
        operands.expect_correct(result);
        for (int run = 0; run < 20; ++run)
            ASSERT_TRUE(operands.run(second, second.algorithm().workspace_bytes).bytes == result.bytes) << run;
    }
}

TEST_P(GemmOnDevice, BothAddAProductToWhatIsThere) {
    KBENCH_NEEDS_DEVICE();
    for (const Shape& shape : gradient_shapes) {
        SCOPED_TRACE(testing::Message() << "m " << shape.m << " n " << shape.n << " k " << shape.k);
        const GemmProblem problem = problem_of(GetParam(), shape);
        const Operands operands(problem);
        const auto before = HostMatrix::normal(problem.out_type, problem.m, problem.n, 7, 1, 0, problem.ld_out);
        const DeviceMatrix x(operands.x), w(operands.w);
        const auto elements = elements_of(problem.m, problem.n, 500);
        const auto expected = reference::products_added_to(before.view(), elements, operands.expected(elements));
        const auto check = [&](const auto& gemm, std::size_t workspace_bytes) {
            const DeviceMatrix out(before);
            void* workspace = nullptr;
            KBENCH_CUDA(cudaMalloc(&workspace, workspace_bytes));
            gemm.run({x.data(), w.data(), nullptr, out.data()}, workspace, nullptr, true);
            expect_agrees(out.download(), elements, expected, problem.precision);
            KBENCH_CUDA(cudaFree(workspace));
        };
        cuda::AlgorithmCache cache(file(), false);
        const cuda::LtGemm lt(problem, cache, workspace_limit), unmeasured(problem, workspace_limit);
        check(lt, lt.algorithm().workspace_bytes);
        check(unmeasured, unmeasured.algorithm().workspace_bytes);
        check(cuda::CublasGemm(problem), cuda::CublasGemm::workspace_bytes);
    }
}

TEST_P(GemmOnDevice, StaysWithinTheWorkspace) {
    KBENCH_NEEDS_DEVICE();
    cuda::AlgorithmCache cache(file(), false);
    const Operands operands(problem_of(GetParam(), {64, 64, 5120}));  // split-K would like a workspace
    { const cuda::LtGemm roomy(operands.problem, cache, workspace_limit); }
    const cuda::LtGemm none(operands.problem, cache, 0);
    EXPECT_EQ(none.algorithm().workspace_bytes, 0u);
    operands.expect_correct(operands.run(none, 0));
}

TEST_P(GemmOnDevice, CanBeCapturedInAGraph) {
    KBENCH_NEEDS_DEVICE();
    cuda::AlgorithmCache cache(file(), false);
    const Operands operands(problem_of(GetParam(), {64, 128, 256}));
    const cuda::LtGemm lt(operands.problem, cache, workspace_limit);
    const cuda::CublasGemm cublas(operands.problem);
    const DeviceMatrix x(operands.x), w(operands.w);
    const auto lt_out = DeviceMatrix::poisoned(operands.problem.out_type, 64, 128);
    const auto cublas_out = DeviceMatrix::poisoned(operands.problem.out_type, 64, 128);
    void* workspace = nullptr;
    KBENCH_CUDA(cudaMalloc(&workspace, workspace_limit));
    cudaStream_t stream;
    cudaGraph_t graph;
    cudaGraphExec_t exec;
    KBENCH_CUDA(cudaStreamCreate(&stream));
    KBENCH_CUDA(cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal));
    lt.run({x.data(), w.data(), nullptr, lt_out.data()}, workspace, stream);
    cublas.run({x.data(), w.data(), nullptr, cublas_out.data()}, workspace, stream);
    KBENCH_CUDA(cudaStreamEndCapture(stream, &graph));
    KBENCH_CUDA(cudaGraphInstantiate(&exec, graph, 0));
    KBENCH_CUDA(cudaGraphLaunch(exec, stream));
    operands.expect_correct(lt_out.download());
    operands.expect_correct(cublas_out.download());
    KBENCH_CUDA(cudaGraphExecDestroy(exec));
    KBENCH_CUDA(cudaGraphDestroy(graph));
    KBENCH_CUDA(cudaStreamDestroy(stream));
    KBENCH_CUDA(cudaFree(workspace));
}

INSTANTIATE_TEST_SUITE_P(Precisions, GemmOnDevice, ::testing::ValuesIn(all_precisions),
                         [](const auto& parameter) { return std::string(name(parameter.param)); });

TEST(Gemm, RefusesWhatItCannotComputeBeforeTouchingADevice) {
    cuda::AlgorithmCache cache("", false);
    const auto lt = [&](const GemmProblem& p) { cuda::LtGemm(p, cache, 0); };
    EXPECT_THROW(lt(problem_of(Precision::fp64, {8, 8, 8, false, true, false})), Unsupported);
    EXPECT_THROW(lt(problem_of(Precision::fp64, {8, 8, 8, false, false, true})), Unsupported);
    EXPECT_THROW(cuda::CublasGemm(problem_of(Precision::fp16, {8, 8, 8, false, true, false})), Unsupported);
    EXPECT_THROW(lt(problem_of(Precision::fp64, {.m = 8, .n = 8, .k = 8, .bias_gradient = true})), Unsupported);
    EXPECT_THROW(lt(problem_of(Precision::fp16, {.m = 8, .n = 12, .k = 8, .gelu_gradient = true})), Unsupported);
    EXPECT_THROW(lt(problem_of(Precision::fp16, {.m = 8, .n = 8, .k = 8, .bias = true, .bias_gradient = true})),
                 Unsupported);
    EXPECT_THROW(lt(problem_of(Precision::fp16, {.m = 8, .n = 8, .k = 8, .keeps_argument = true})), UsageError);
    EXPECT_THROW(cuda::CublasGemm(problem_of(Precision::fp16, {.m = 8, .n = 8, .k = 8, .gelu_gradient = true})),
                 Unsupported);
    EXPECT_THROW(lt(problem_of(Precision::fp16, {8, 0, 8})), UsageError);
    GemmProblem problem = problem_of(Precision::fp16, {8, 8, 8});
    problem.ld_w = 7;
    EXPECT_THROW(lt(problem), UsageError);
    problem = problem_of(Precision::fp32, {8, 8, 8});
    problem.out_type = DataType::fp16;
    EXPECT_THROW(lt(problem), Unsupported);
    problem = problem_of(Precision::fp16, {8, 8, 8, false, true, false});
    problem.batch = 2;
    EXPECT_THROW(lt(problem), Unsupported);
}

}  // namespace
}  // namespace kbench::test
