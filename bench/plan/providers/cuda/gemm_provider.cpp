// Providers `cublaslt` and `cublas`: every product of a model, weights' and attention's.
#include <fmt/format.h>

#include <algorithm>

#include "bench/plan/provider.h"
#include "bench/plan/providers/cuda/weight_problem.h"
#include "kernels/check.h"
#include "kernels/gemm/cublaslt.h"
#include "models/base/error.h"

namespace kbench {
namespace {

using cuda::GemmPointers;
using cuda::GemmProblem;

/// Room for split-k and stream-k algorithms; more has not made any GPT-2 shape faster.
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
    cuda::AlgorithmCache* cache;
    cuda::LtGemm operator()(const GemmProblem& p) const { return {p, *cache, lt_workspace_limit}; }
};
struct CublasMaker {
    cuda::CublasGemm operator()(const GemmProblem& p) const { return cuda::CublasGemm(p); }
};
std::string describe(const cuda::LtGemm& gemm) { return gemm.description(); }
std::string describe(const cuda::CublasGemm&) { return "cublasGemmEx"; }
std::size_t workspace_of(const cuda::LtGemm& gemm) { return gemm.algorithm().workspace_bytes; }
std::size_t workspace_of(const cuda::CublasGemm&) { return cuda::CublasGemm::workspace_bytes; }

template <class Product>
class ProductComputation : public Computation {
  public:
    explicit ProductComputation(Product product) : product_(std::move(product)) {}
    std::string implementation() const override { return describe(product_); }
    std::size_t workspace_bytes() const override { return workspace_of(product_); }

  protected:
    Product product_;
};

/// out[c, r] = in[r, c] for elements of T, in blocks that stay in the L1 cache.
template <class T>
void transpose(const void* in, std::int64_t rows, std::int64_t columns, void* out) {
    constexpr std::int64_t block = 32;
    const auto* from = static_cast<const T*>(in);
    auto* to = static_cast<T*>(out);
#pragma omp parallel for collapse(2) schedule(static)
    for (std::int64_t r0 = 0; r0 < rows; r0 += block)
        for (std::int64_t c0 = 0; c0 < columns; c0 += block)
            for (std::int64_t c = c0; c < std::min(c0 + block, columns); ++c)
                for (std::int64_t r = r0; r < std::min(r0 + block, rows); ++r) to[c * rows + r] = from[r * columns + c];
}

void transpose(DataType type, const void* in, std::int64_t rows, std::int64_t columns, void* out) {
    switch (size_of(type)) {
        case 2: return transpose<std::uint16_t>(in, rows, columns, out);
        case 4: return transpose<std::uint32_t>(in, rows, columns, out);
        default: return transpose<std::uint64_t>(in, rows, columns, out);
    }
}

template <class Product>
class WeightComputation final : public ProductComputation<Product> {
  public:
    /// `transposed_from`: the weight as the checkpoint has it, when it is to be kept transposed; null to keep it as it
    /// is.
    WeightComputation(Product product, bool bias, const GemmProblem* transposed_from = nullptr)
        : ProductComputation<Product>(std::move(product)), bias_(bias) {
        if (transposed_from != nullptr) plain_ = *transposed_from;
    }
    std::string implementation() const override {
        return ProductComputation<Product>::implementation() + (plain_ ? ", weight kept as [n, k]" : "");
    }
    std::optional<std::size_t> packed_bytes(std::size_t index) const override {
        if (!plain_ || index != 1) return std::nullopt;
        return static_cast<std::size_t>(plain_->k * plain_->n) * size_of(storage_type(plain_->precision));
    }
    void pack(std::size_t index, const void* plain, void* packed) const override {
        std::vector<std::byte> host(*packed_bytes(index));
        transpose(storage_type(plain_->precision), plain, plain_->k, plain_->n, host.data());
        KBENCH_CUDA(cudaMemcpy(packed, host.data(), host.size(), cudaMemcpyHostToDevice));
    }
    void run(std::span<void* const> pointers, void* workspace, void* stream) const override {
        OperandCursor in(pointers);
        const void* x = in.next();
        const void* w = in.next();
        const void* bias = in.next_if(bias_);
        this->product_.run({x, w, bias, in.next()}, workspace, static_cast<cudaStream_t>(stream));
    }

  private:
    bool bias_;
    std::optional<GemmProblem> plain_;
};

template <class Product>
class ScoresComputation final : public ProductComputation<Product> {
  public:
    ScoresComputation(Product product, const AttentionScores& op, const GemmProblem& problem)
        : ProductComputation<Product>(std::move(product)), shape_(op.shape), problem_(problem) {}
    void run(std::span<void* const> pointers, void* workspace, void* stream) const override {
        const DataType type = storage_type(problem_.precision);
        const std::int64_t width = shape_.heads * shape_.head_size;
        for (std::int64_t b = 0; b < shape_.batch; ++b) {
            const std::byte* q = at(pointers[0], b * shape_.seq * 3 * width, type);
            const std::byte* scores = at(pointers[1], b * shape_.heads * problem_.stride_out, problem_.out_type);
            this->product_.run({q, at(q, width, type), nullptr, const_cast<std::byte*>(scores)}, workspace,
                               static_cast<cudaStream_t>(stream));
        }
    }

  private:
    AttentionShape shape_;
    GemmProblem problem_;
};

template <class Product>
class ContextComputation final : public ProductComputation<Product> {
  public:
    ContextComputation(Product product, const AttentionContext& op, const GemmProblem& problem)
        : ProductComputation<Product>(std::move(product)), shape_(op.shape), problem_(problem) {}
    void run(std::span<void* const> pointers, void* workspace, void* stream) const override {
        const DataType type = storage_type(problem_.precision);
        const std::int64_t width = shape_.heads * shape_.head_size;
        for (std::int64_t b = 0; b < shape_.batch; ++b) {
            const std::byte* p = at(pointers[0], b * shape_.heads * problem_.stride_x, type);
            const std::byte* v = at(pointers[1], b * shape_.seq * 3 * width + 2 * width, type);
            const std::byte* out = at(pointers[2], b * shape_.seq * width, type);
            this->product_.run({p, v, nullptr, const_cast<std::byte*>(out)}, workspace,
                               static_cast<cudaStream_t>(stream));
        }
    }

  private:
    AttentionShape shape_;
    GemmProblem problem_;
};

template <class Maker>
std::unique_ptr<Computation> make_product(const StepKind& kind, Precision precision, const Maker& make) {
    using Product = decltype(make(GemmProblem{}));
    if (const auto* step = std::get_if<GemmStep>(&kind))
        return std::make_unique<WeightComputation<Product>>(make(weight_problem(*step, precision)), step->bias);
    if (const auto* scores = std::get_if<AttentionScores>(&kind)) {
        const GemmProblem problem = scores_problem(*scores, precision);
        return std::make_unique<ScoresComputation<Product>>(make(problem), *scores, problem);
    }
    const auto& context = std::get<AttentionContext>(kind);
    const GemmProblem problem = context_problem(context, precision);
    return std::make_unique<ContextComputation<Product>>(make(problem), context, problem);
}

/// Empty for the products that both libraries compute.
std::string not_a_product(const StepKind& kind) {
    const bool product = std::holds_alternative<GemmStep>(kind) || std::holds_alternative<AttentionScores>(kind) ||
                         std::holds_alternative<AttentionContext>(kind);
    return product ? "" : fmt::format("has no {}", op_name(kind));
}

class CublasLt final : public Provider {
  public:
    explicit CublasLt(const ProviderContext& context) : cache_(context.algorithm_cache, context.retune) {}
    std::string_view name() const override { return "cublaslt"; }
    std::string unsupported(const StepKind& kind, Precision precision) const override {
        if (std::string reason = not_a_product(kind); !reason.empty()) return reason;
        const auto* step = std::get_if<GemmStep>(&kind);
        if (step == nullptr) return "";
        if (step->residual) return "its epilogue takes no residual";
        if (precision == Precision::fp64 && (step->bias || step->gelu)) return "its fp64 has no epilogue";
        return "";
    }
    std::unique_ptr<Computation> make(const StepKind& kind, Precision precision) override {
        const LtMaker make_lt{&cache_};
        const auto* step = std::get_if<GemmStep>(&kind);
        if (step == nullptr || step->gemm.weight_transposed) return make_product(kind, precision, make_lt);
        // A checkpoint keeps weights as [k, n]. Hopper's tensor cores read tf32 with k innermost only, so a copy as
        // [n, k] can be faster there; which it is, is measured for each problem.
        const GemmProblem plain = weight_problem(*step, precision);
        GemmProblem transposed = plain;
        transposed.weight_transposed = true;
        transposed.ld_w = plain.k;
        cuda::LtGemm as_stored = make_lt(plain), as_copied = make_lt(transposed);
        constexpr double worth_a_copy = 0.97;
        if (as_copied.algorithm().median_us < worth_a_copy * as_stored.algorithm().median_us)
            return std::make_unique<WeightComputation<cuda::LtGemm>>(std::move(as_copied), step->bias, &plain);
        return std::make_unique<WeightComputation<cuda::LtGemm>>(std::move(as_stored), step->bias);
    }
    std::int64_t workspace_limit() const override { return lt_workspace_limit; }
    std::vector<std::string> warnings() const override { return cache_.warnings(); }

  private:
    cuda::AlgorithmCache cache_;
};

class Cublas final : public Provider {
  public:
    std::string_view name() const override { return "cublas"; }
    std::string unsupported(const StepKind& kind, Precision) const override {
        if (std::string reason = not_a_product(kind); !reason.empty()) return reason;
        const auto* step = std::get_if<GemmStep>(&kind);
        return step != nullptr && (step->bias || step->gelu || step->residual) ? "cuBLAS has no epilogue" : "";
    }
    std::int64_t workspace_limit() const override { return cuda::CublasGemm::workspace_bytes; }
    std::unique_ptr<Computation> make(const StepKind& kind, Precision precision) override {
        return make_product(kind, precision, CublasMaker{});
    }
};

}  // namespace

std::unique_ptr<Provider> make_cublaslt(const ProviderContext& context) { return std::make_unique<CublasLt>(context); }
std::unique_ptr<Provider> make_cublas(const ProviderContext&) { return std::make_unique<Cublas>(); }

}  // namespace kbench
