// Providers `cublaslt` and `cublas`: every product of a model, weights' and attention's.
#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "bench/plan/provider.h"
#include "bench/plan/providers/cuda/transposed_weight.h"
#include "bench/plan/providers/cuda/weight_problem.h"
#include "bench/plan/providers/product_slots.h"
#include "kbench/error.h"
#include "kernels/gemm/cublaslt.h"
#include "models/ops/list.h"

namespace kbench {
namespace {

using cuda::GemmPointers;
using cuda::GemmProblem;

/// Room for split-k and stream-k algorithms; more has made no shape of the recorded runs faster.
constexpr std::size_t lt_workspace_limit = std::size_t{64} << 20;

/// One problem a sequence of the batch: the heads are its strided batch.
GemmProblem scores_problem(const AttentionScores& op, Precision precision) {
    const auto& [batch, heads, seq, head_size] = op.shape;
    GemmProblem p{};
    p.precision = precision;
    p.m = p.n = seq;
    p.k = head_size;
    p.weight_transposed = true;
    p.out_type = scores_type(op.upcast, precision);
    p.ld_x = p.ld_w = 3 * heads * head_size;
    p.ld_out = seq;
    p.batch = heads;
    p.stride_x = p.stride_w = head_size;
    p.stride_out = seq * seq;
    return p;
}

GemmProblem context_problem(const AttentionContext& op, Precision precision) {
    const auto& [batch, heads, seq, head_size] = op.shape;
    GemmProblem p{};
    p.precision = precision;
    p.m = p.k = seq;
    p.n = head_size;
    p.out_type = storage_type(precision);
    p.ld_x = seq;
    p.ld_w = 3 * heads * head_size;
    p.ld_out = heads * head_size;
    p.batch = heads;
    p.stride_x = seq * seq;
    p.stride_w = p.stride_out = head_size;
    return p;
}

const std::byte* at(const void* base, std::int64_t element, DataType type) {
    return static_cast<const std::byte*>(base) + element * static_cast<std::int64_t>(size_of(type));
}

/// What differs between the two libraries: how a GEMM is made, its workspace and its description.
struct LtMaker {
    std::shared_ptr<cuda::AlgorithmCache> cache;  ///< null where no time may choose
    cudaStream_t stream;                          ///< where it will run
    cuda::LtGemm operator()(const GemmProblem& p) const {
        if (!cache) return {p, lt_workspace_limit, stream};
        return {p, *cache, lt_workspace_limit, stream};
    }
};
struct CublasMaker {
    cuda::CublasGemm operator()(const GemmProblem& p) const { return cuda::CublasGemm(p); }
};
std::string describe(const cuda::LtGemm& gemm) { return gemm.description(); }
std::string describe(const cuda::CublasGemm&) { return "cublasGemmEx"; }
std::size_t workspace_of(const cuda::LtGemm& gemm) { return gemm.algorithm().workspace_bytes; }
std::size_t workspace_of(const cuda::CublasGemm&) { return cuda::CublasGemm::workspace_bytes; }

/// A product of other sizes by the algorithm of `product`. cuBLAS chooses one by the sizes and does not say which.
cuda::LtGemm with_algorithm_of(const cuda::LtGemm& product, const GemmProblem& p) {
    return {p, product.algorithm(), lt_workspace_limit};
}
cuda::CublasGemm with_algorithm_of(const cuda::CublasGemm&, const GemmProblem&) {
    throw Unsupported("cuBLAS chooses an algorithm by the sizes and does not say which");
}

template <class Product>
class ProductComputation : public Computation {
  public:
    explicit ProductComputation(Product product) : product_(std::move(product)) {}
    std::string implementation() const override { return describe(product_); }
    std::size_t workspace_bytes() const override { return workspace_of(product_); }

  protected:
    Product product_;
};

/// The same product with its weight kept as [n, k].
GemmProblem with_transposed_weight(GemmProblem plain) {
    plain.weight_transposed = true;
    plain.ld_w = plain.k;
    return plain;
}

template <class Product>
class WeightComputation final : public ProductComputation<Product> {
  public:
    /// `transposed_from`: the weight as the checkpoint has it, when it is to be kept transposed; null to keep it as it
    /// is.
    WeightComputation(Product product, const Step& step, Precision precision,
                      const GemmProblem* transposed_from = nullptr)
        : ProductComputation<Product>(std::move(product)),
          x_(step, precision, "x"),
          weight_(step, precision, "w"),
          bias_(step, precision, "bias?"),
          argument_(step, precision, "sum?"),
          out_(step, precision, "out") {
        if (transposed_from != nullptr) plain_ = *transposed_from;
    }
    std::string implementation() const override {
        return ProductComputation<Product>::implementation() + (plain_ ? ", weight kept as [n, k]" : "");
    }
    std::optional<std::size_t> packed_bytes(std::size_t index) const override {
        if (!plain_ || !weight_.is(index)) return std::nullopt;
        return static_cast<std::size_t>(plain_->k * plain_->n) * size_of(storage_type(plain_->precision));
    }
    void pack(std::size_t index, const void* plain, void* packed) const override {
        if (packed_bytes(index)) pack_transposed(storage_type(plain_->precision), plain, plain_->k, plain_->n, packed);
    }
    std::unique_ptr<Computation> resized(const Step& grown, Precision precision) const override {
        const GemmProblem plain = weight_problem(grown.as<Gemm>(), grown, precision);
        return std::make_unique<WeightComputation>(
            with_algorithm_of(this->product_, plain_ ? with_transposed_weight(plain) : plain), grown, precision,
            plain_ ? &plain : nullptr);
    }
    void run(const Call& call) const override {
        this->product_.run({x_.of(call), weight_.of(call), bias_.of(call), out_.of(call), argument_.of(call)},
                           call.workspace, static_cast<cudaStream_t>(call.stream));
    }

  private:
    Slot x_, weight_, bias_, argument_, out_;
    std::optional<GemmProblem> plain_;
};

template <class Product>
class GradientComputation final : public ProductComputation<Product> {
  public:
    GradientComputation(Product product, const Gemm& op, const Step& step, Precision precision)
        : ProductComputation<Product>(std::move(product)),
          slots_(op, step, precision),
          gelu_x_(absorbs_gelu(step) ? Slot(step, precision, "x") : Slot()),
          bias_gradient_(step, precision, "db?"),
          stores_16_bits_(size_of(storage_type(precision)) == 2),
          accumulates_(op.accumulates && step.direction == Direction::wgrad) {}
    std::unique_ptr<Computation> resized(const Step& grown, Precision precision) const override {
        const Gemm& op = grown.as<Gemm>();
        return std::make_unique<GradientComputation>(
            with_algorithm_of(this->product_, gradient_problem(op, grown, precision)), op, grown, precision);
    }
    void run(const Call& call) const override {
        this->product_.run({slots_.left.of(call), slots_.right.of(call), nullptr, slots_.out.of(call), gelu_x_.of(call),
                            bias_gradient_.of(call)},
                           call.workspace, static_cast<cudaStream_t>(call.stream), accumulates_);
    }

    /// Some of cuBLASLt's kernels store the product before they apply the slope.
    int roundings() const override { return !gelu_x_.is_missing() && stores_16_bits_ ? 2 : 1; }

  private:
    ProductSlots slots_;
    Slot gelu_x_, bias_gradient_;
    bool stores_16_bits_, accumulates_;
};

template <class Product>
class ScoresComputation final : public ProductComputation<Product> {
  public:
    ScoresComputation(Product product, const GemmProblem& problem, const Step& step, Precision precision)
        : ProductComputation<Product>(std::move(product)),
          shape_(step.as<AttentionScores>().shape),
          problem_(problem),
          qkv_(step, precision, "qkv"),
          scores_(step, precision, "scores") {}
    std::unique_ptr<Computation> resized(const Step& grown, Precision precision) const override {
        const GemmProblem problem = scores_problem(grown.as<AttentionScores>(), precision);
        return std::make_unique<ScoresComputation>(with_algorithm_of(this->product_, problem), problem, grown,
                                                   precision);
    }
    void run(const Call& call) const override {
        const DataType type = storage_type(problem_.precision);
        const std::int64_t width = shape_.heads * shape_.head_size;
        for (std::int64_t b = 0; b < shape_.batch; ++b) {
            const std::byte* q = at(qkv_.of(call), b * shape_.seq * 3 * width, type);
            const std::byte* scores = at(scores_.of(call), b * shape_.heads * problem_.stride_out, problem_.out_type);
            this->product_.run({q, at(q, width, type), nullptr, const_cast<std::byte*>(scores)}, call.workspace,
                               static_cast<cudaStream_t>(call.stream));
        }
    }

  private:
    AttentionShape shape_;
    GemmProblem problem_;
    Slot qkv_, scores_;
};

template <class Product>
class ContextComputation final : public ProductComputation<Product> {
  public:
    ContextComputation(Product product, const GemmProblem& problem, const Step& step, Precision precision)
        : ProductComputation<Product>(std::move(product)),
          shape_(step.as<AttentionContext>().shape),
          problem_(problem),
          probabilities_(step, precision, "probabilities"),
          qkv_(step, precision, "qkv"),
          out_(step, precision, "out") {}
    std::unique_ptr<Computation> resized(const Step& grown, Precision precision) const override {
        const GemmProblem problem = context_problem(grown.as<AttentionContext>(), precision);
        return std::make_unique<ContextComputation>(with_algorithm_of(this->product_, problem), problem, grown,
                                                    precision);
    }
    void run(const Call& call) const override {
        const DataType type = storage_type(problem_.precision);
        const std::int64_t width = shape_.heads * shape_.head_size;
        for (std::int64_t b = 0; b < shape_.batch; ++b) {
            const std::byte* p = at(probabilities_.of(call), b * shape_.heads * problem_.stride_x, type);
            const std::byte* v = at(qkv_.of(call), b * shape_.seq * 3 * width + 2 * width, type);
            const std::byte* out = at(out_.of(call), b * shape_.seq * width, type);
            this->product_.run({p, v, nullptr, const_cast<std::byte*>(out)}, call.workspace,
                               static_cast<cudaStream_t>(call.stream));
        }
    }

  private:
    AttentionShape shape_;
    GemmProblem problem_;
    Slot probabilities_, qkv_, out_;
};

/// Rows of attention's products, which both libraries compute alike.
template <class Maker>
ProviderOp scores_row(Maker make) {
    return Computes<AttentionScores>{.make = [make](const AttentionScores& op, const Step& step, Precision precision) {
        const GemmProblem problem = scores_problem(op, precision);
        return std::make_unique<ScoresComputation<decltype(make(problem))>>(make(problem), problem, step, precision);
    }};
}
template <class Maker>
ProviderOp context_row(Maker make) {
    return Computes<AttentionContext>{.make = [make](const AttentionContext& op, const Step& step,
                                                     Precision precision) {
        const GemmProblem problem = context_problem(op, precision);
        return std::make_unique<ContextComputation<decltype(make(problem))>>(make(problem), problem, step, precision);
    }};
}

template <class Maker>
std::unique_ptr<Computation> make_gradient(const Maker& make, const Gemm& op, const Step& step, Precision precision) {
    auto made = make(gradient_problem(op, step, precision));
    return std::make_unique<GradientComputation<decltype(made)>>(std::move(made), op, step, precision);
}

template <class Maker>
ProviderOp gradient_row(Maker maker) {
    return Computes<Gemm>{.directions = {Direction::dgrad, Direction::wgrad},
                          .make = [maker](const Gemm& op, const Step& step, Precision precision) {
                              return make_gradient(maker, op, step, precision);
                          }};
}

/// The precisions in which cuBLASLt has epilogues.
const std::vector<Precision> with_epilogues = {Precision::fp16, Precision::bf16, Precision::tf32, Precision::fp32};

/// The problems with epilogues of training that cuBLASLt lacks, each asked for once. What it cannot fuse
/// becomes a step of its own.
class Lacking {
  public:
    explicit Lacking(bool one_order) : one_order_(one_order) {}
    std::string operator()(const GemmProblem& problem) const {
        const auto [entry, is_new] = known_->try_emplace(cuda::algorithm_key(problem, "", 0));
        if (is_new) entry->second = cuda::lt_lacks(problem, lt_workspace_limit, one_order_);
        return entry->second;
    }

  private:
    bool one_order_;
    std::shared_ptr<std::map<std::string, std::string>> known_ = std::make_shared<std::map<std::string, std::string>>();
};

/// Those in which training has GELU in an epilogue. On an H200 with 4096 rows, in bf16, GELU's slope behind a dgrad of
/// 5120 columns takes 15 us and 32 apart. In tf32 it takes 165 and 59 apart, and GELU behind a product 42 us, in which
/// DRAM could move what it reads and writes apart.
const std::vector<Precision> with_gelu_in_training = {Precision::fp16, Precision::bf16};

/// GELU's gradient behind dgrad.
ProviderOp gelu_gradient_row(const LtMaker& maker, const Lacking& lacking) {
    return Computes<Gemm>{.directions = {Direction::dgrad},
                          .precisions = with_gelu_in_training,
                          .absorbs = {{"gelu"}, {"gelu_fast"}},
                          .why_not = [lacking](const Gemm& op, const Step& step, Precision precision) -> std::string {
                              if (step.ops.size() == 1 || step.padded_columns > 0)
                                  return "is not for products alone or padded ones";
                              return lacking(gradient_problem(op, step, precision));
                          },
                          .make = [maker](const Gemm& op, const Step& step,
                                          Precision precision) { return make_gradient(maker, op, step, precision); }};
}

/// A bias's gradient fused to wgrad, which is slower than two steps: on an H200 by 8 to 10 us with 4096 rows and
/// weights of 1280 x 5120 in bf16, by 2 to 8 in tf32. `one_order`: whether sums must be made in one order.
ProviderOp bias_gradient_row(const LtMaker& maker, const Lacking& lacking, bool one_order) {
    return Computes<Gemm>{
        .directions = {Direction::wgrad},
        .precisions = with_epilogues,
        .absorbs = {{"bias"}},
        .on_request_only = true,
        .why_not = [lacking, one_order](const Gemm& op, const Step& step, Precision precision) -> std::string {
            if (step.ops.size() == 1 || step.padded_columns > 0) return "is not for products alone or padded ones";
            if (op.accumulates || step.ops.front().get_if<BiasAdd>()->accumulates)
                return "a bias's gradient in the epilogue is written, not added";
            if (op.weight_transposed) return "no bias's gradient where dy is on the left";
            // cuBLASLt says nothing of the order in which the epilogue adds rows up.
            if (one_order) return "no bias's gradient in the epilogue where sums are made in one order";
            return lacking(gradient_problem(op, step, precision));
        },
        .make = [maker](const Gemm& op, const Step& step,
                        Precision precision) { return make_gradient(maker, op, step, precision); }};
}

/// A checkpoint keeps weights as [k, n]. Hopper's tensor cores read tf32 with k innermost only, so a copy as [n, k] can
/// be faster there; which it is, is measured for each problem, and where no time may choose it is kept as it is.
std::unique_ptr<Computation> lt_gemm(const LtMaker& make, const Gemm& op, const Step& step, Precision precision) {
    const GemmProblem plain = weight_problem(op, step, precision);
    if (op.weight_transposed || step.weights_change || !make.cache)
        return std::make_unique<WeightComputation<cuda::LtGemm>>(make(plain), step, precision);
    const GemmProblem transposed = with_transposed_weight(plain);
    if (plain.keeps_argument && !cuda::lt_lacks(transposed, lt_workspace_limit, false).empty())
        return std::make_unique<WeightComputation<cuda::LtGemm>>(make(plain), step, precision);
    cuda::LtGemm as_stored = make(plain), as_copied = make(transposed);
    constexpr double worth_a_copy = 0.97;
    if (as_copied.algorithm().median_us < worth_a_copy * as_stored.algorithm().median_us)
        return std::make_unique<WeightComputation<cuda::LtGemm>>(std::move(as_copied), step, precision, &plain);
    return std::make_unique<WeightComputation<cuda::LtGemm>>(std::move(as_stored), step, precision);
}

}  // namespace

std::unique_ptr<Provider> make_cublaslt(const ProviderContext& context) {
    const LtMaker make{context.deterministic
                           ? nullptr
                           : std::make_shared<cuda::AlgorithmCache>(context.algorithm_cache, context.retune),
                       static_cast<cudaStream_t>(context.stream)};
    const auto gemm = [make](const Gemm& op, const Step& step, Precision precision) {
        return lt_gemm(make, op, step, precision);
    };
    const Lacking lacking(context.deterministic);
    // In training the backward reads what GELU was applied to: the last but one that the step makes.
    const auto cannot_keep = [lacking](const Gemm& op, const Step& step, Precision precision) -> std::string {
        if (!step.keeps_intermediates()) return "";
        if (!absorbs_gelu(step) || step.kept != std::vector{step.ops.size() - 2})
            return "can store no intermediate result but what GELU is applied to";
        if (std::ranges::count(with_gelu_in_training, precision) == 0)
            return fmt::format("leaves GELU's argument in 16 bits only, not in {}", name(precision));
        constexpr std::int64_t whole = 8;  // with others it rounds the product before it adds the bias
        if (op.k % whole != 0) return fmt::format("GELU's argument only with rows of a multiple of {} elements", whole);
        return lacking(weight_problem(op, step, precision));
    };
    return std::make_unique<Provider>(Provider{
        .name = "cublaslt",
        .ops = {Computes<Gemm>{.precisions = with_epilogues,
                               .absorbs = {{"bias"}, {"bias", "gelu"}, {"bias", "gelu_fast"}},
                               .leaves_results = true,
                               .why_not = cannot_keep,
                               .make = gemm},
                Computes<Gemm>{.precisions = {Precision::fp64}, .make = gemm},  // whose kernels have no epilogue
                gradient_row(make), gelu_gradient_row(make, lacking),
                bias_gradient_row(make, lacking, context.deterministic), scores_row(make), context_row(make)},
        .workspace_limit = lt_workspace_limit,
        .warnings = [cache = make.cache] { return cache ? cache->warnings() : std::vector<std::string>(); }});
}

std::unique_ptr<Provider> make_cublas(const ProviderContext&) {
    const CublasMaker make;
    return std::make_unique<Provider>(
        Provider{.name = "cublas",
                 .ops = {Computes<Gemm>{.make =
                                            [make](const Gemm& op, const Step& step, Precision precision) {
                                                return std::make_unique<WeightComputation<cuda::CublasGemm>>(
                                                    make(weight_problem(op, step, precision)), step, precision);
                                            }},
                         gradient_row(make), scores_row(make), context_row(make)},
                 .workspace_limit = cuda::CublasGemm::workspace_bytes});
}

}  // namespace kbench
