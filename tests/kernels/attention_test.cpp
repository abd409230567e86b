// Fused causal attention against plain fp64 loops, every element, within a bound that follows from the precision.
#include "kernels/attention/attention.h"

#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <memory>
#include <random>
#include <string>
#include <thread>
#include <tuple>
#include <vector>

#include "kbench/error.h"
#include "kernels/check.h"

namespace kbench::cuda {
namespace {

constexpr std::size_t guard_bytes = 1024;

struct Shape {
    std::int64_t batch, heads, seq, head_size;
    std::int64_t rows() const { return batch * seq; }
    std::int64_t width() const { return heads * head_size; }
};

struct DeviceDelete {
    void operator()(void* pointer) const { cudaFree(pointer); }
};

/// Device memory between two guards; all of it starts as bytes of 0xff, which is NaN in every floating-point type.
class GuardedBuffer {
  public:
    explicit GuardedBuffer(std::size_t bytes) : bytes_(bytes) {
        void* memory = nullptr;
        KBENCH_CUDA(cudaMalloc(&memory, bytes + 2 * guard_bytes));
        memory_.reset(static_cast<unsigned char*>(memory));
        KBENCH_CUDA(cudaMemset(memory_.get(), 0xff, bytes + 2 * guard_bytes));
    }
    void* data() const { return memory_.get() + guard_bytes; }
    void write(const std::vector<unsigned char>& from) const {
        KBENCH_CUDA(cudaMemcpy(data(), from.data(), bytes_, cudaMemcpyHostToDevice));
    }
    std::vector<unsigned char> read() const {
        std::vector<unsigned char> to(bytes_);
        KBENCH_CUDA(cudaMemcpy(to.data(), data(), bytes_, cudaMemcpyDeviceToHost));
        return to;
    }
    bool guards_intact() const {
        std::vector<unsigned char> all(bytes_ + 2 * guard_bytes);
        KBENCH_CUDA(cudaMemcpy(all.data(), memory_.get(), all.size(), cudaMemcpyDeviceToHost));
        const auto poison = [](unsigned char byte) { return byte == 0xff; };
        return std::all_of(all.begin(), all.begin() + guard_bytes, poison) &&
               std::all_of(all.end() - guard_bytes, all.end(), poison);
    }

  private:
    std::size_t bytes_;
    std::unique_ptr<unsigned char, DeviceDelete> memory_;
};

template <class T>
void put(std::vector<unsigned char>& bytes, std::size_t index, T value) {
    std::memcpy(bytes.data() + index * sizeof(T), &value, sizeof(T));
}
template <class T>
T get(const std::vector<unsigned char>& bytes, std::size_t index) {
    T value;
    std::memcpy(&value, bytes.data() + index * sizeof(T), sizeof(T));
    return value;
}

std::vector<unsigned char> encode(DataType type, const std::vector<double>& values) {
    std::vector<unsigned char> bytes(values.size() * size_of(type));
    for (std::size_t i = 0; i < values.size(); ++i) {
        if (type == DataType::fp16) put(bytes, i, __double2half(values[i]));
        if (type == DataType::bf16) put(bytes, i, __double2bfloat16(values[i]));
        if (type == DataType::fp32) put(bytes, i, static_cast<float>(values[i]));
        if (type == DataType::fp64) put(bytes, i, values[i]);
    }
    return bytes;
}

std::vector<double> decode(DataType type, const std::vector<unsigned char>& bytes) {
    std::vector<double> values(bytes.size() / size_of(type));
    for (std::size_t i = 0; i < values.size(); ++i) {
        if (type == DataType::fp16) values[i] = __half2float(get<__half>(bytes, i));
        if (type == DataType::bf16) values[i] = __bfloat162float(get<__nv_bfloat16>(bytes, i));
        if (type == DataType::fp32) values[i] = get<float>(bytes, i);
        if (type == DataType::fp64) values[i] = get<double>(bytes, i);
    }
    return values;
}

/// An output element, what bounds its error: the sum of p |v|, the largest sum of |q k| of its row, and its keys.
struct Expected {
    double value, magnitude, score_magnitude;
    std::int64_t keys;
};

void expect_row(const Shape& shape, double scale, const std::vector<double>& qkv, std::int64_t row, std::int64_t head,
                Expected* out) {
    const std::int64_t stride = 3 * shape.width(), keys = row % shape.seq + 1, first = row - row % shape.seq;
    const auto at = [&](std::int64_t r, int part, std::int64_t column) {
        return qkv[static_cast<std::size_t>(r * stride + part * shape.width() + head * shape.head_size + column)];
    };
    std::vector<double> weight(static_cast<std::size_t>(keys));
    double score_magnitude = 0.0, sum = 0.0;
    for (std::int64_t j = 0; j < keys; ++j) {
        double magnitude = 0.0;
        for (std::int64_t d = 0; d < shape.head_size; ++d) {
            const double term = at(row, 0, d) * at(first + j, 1, d);
            weight[j] += term;
            magnitude += std::abs(term);
        }
        score_magnitude = std::max(score_magnitude, magnitude);
    }
    const double maximum = *std::max_element(weight.begin(), weight.end());
    for (double& w : weight) sum += w = std::exp(scale * (w - maximum));
    for (std::int64_t d = 0; d < shape.head_size; ++d) out[d] = {0.0, 0.0, score_magnitude, keys};
    for (std::int64_t j = 0; j < keys; ++j)
        for (std::int64_t d = 0; d < shape.head_size; ++d) {
            const double term = weight[j] / sum * at(first + j, 2, d);
            out[d].value += term;
            out[d].magnitude += std::abs(term);
        }
}

std::vector<Expected> expect(const Shape& shape, double scale, const std::vector<double>& qkv) {
    std::vector<Expected> expected(static_cast<std::size_t>(shape.rows() * shape.width()));
    const unsigned workers = std::max(1u, std::thread::hardware_concurrency());
    std::vector<std::jthread> threads;
    for (unsigned worker = 0; worker < workers; ++worker)
        threads.emplace_back([&, worker] {
            for (std::int64_t row = worker; row < shape.rows(); row += workers)
                for (std::int64_t head = 0; head < shape.heads; ++head)
                    expect_row(shape, scale, qkv, row, head,
                               expected.data() + row * shape.width() + head * shape.head_size);
        });
    threads.clear();
    return expected;
}

/// |error| <= u_store |value| + relative * sum of p |v|, where `relative` adds up: twice the error of an exponent (once
/// in the probability, once in its sum), that error being scale times a score's; the rounding of probabilities to the
/// multiplier's format (and of q, k and v, which only tf32 rounds); 4 u for the exponential; sqrt(n) u for sums of n
/// terms (Higham and Mary, SIAM J. Sci. Comput. 41(5), 2019), of which probabilities take part in two.
double error_bound(const Expected& expected, const Shape& shape, double scale, Precision precision) {
    const double sum_u = accumulator_roundoff(precision);
    const double operand_u = precision == Precision::tf32 ? unit_roundoff(precision) : 0.0;
    const double probability_u =
        precision == Precision::fp32 || precision == Precision::fp64 ? 0.0 : unit_roundoff(precision);
    const double score_error = (2 * operand_u + (std::sqrt(shape.head_size) + 2) * sum_u) * expected.score_magnitude;
    const double relative = 2 * scale * score_error + probability_u + operand_u +
                            (4 + 2 * std::sqrt(static_cast<double>(expected.keys))) * sum_u;
    // fp16 probabilities under 2^-14 lose relative precision: half of its smallest number for each key.
    const double subnormal = precision == Precision::fp16 ? 0x1p-25 * static_cast<double>(expected.keys) : 0.0;
    return unit_roundoff(storage_type(precision)) * std::abs(expected.value) + relative * expected.magnitude +
           subnormal;
}

std::vector<double> normal_values(std::size_t count, unsigned seed) {
    std::mt19937 generator(seed);
    std::normal_distribution<double> normal;
    std::vector<double> values(count);
    for (double& value : values) value = normal(generator);
    return values;
}

/// One problem on the device, with its inputs as stored.
class Case {
  public:
    Case(const Shape& shape, double scale, Precision precision, const std::vector<double>& qkv)
        : type_(storage_type(precision)),
          qkv_(static_cast<std::size_t>(shape.rows() * 3 * shape.width()) * size_of(type_)),
          out_(static_cast<std::size_t>(shape.rows() * shape.width()) * size_of(type_)),
          arguments_{qkv_.data(), out_.data(), shape.batch, shape.heads, shape.seq, shape.head_size, scale, precision} {
        const std::vector<unsigned char> bytes = encode(type_, qkv);
        stored_ = decode(type_, bytes);
        qkv_.write(bytes);
    }
    void launch(cudaStream_t stream = nullptr) const { attention_forward(arguments_, stream); }
    std::vector<double> out() const { return decode(type_, out_.read()); }
    std::vector<unsigned char> out_bytes() const { return out_.read(); }
    const std::vector<double>& stored() const { return stored_; }
    bool guards_intact() const { return qkv_.guards_intact() && out_.guards_intact(); }

  private:
    DataType type_;
    GuardedBuffer qkv_, out_;
    AttentionArguments arguments_;
    std::vector<double> stored_;
};

/// The first element whose error is over `precision`'s bound (or is NaN), as a text; empty where there is none.
std::string first_wrong(const Shape& shape, double scale, Precision precision, const std::vector<double>& out,
                        const std::vector<Expected>& expected) {
    for (std::size_t i = 0; i < out.size(); ++i) {
        const double bound = error_bound(expected[i], shape, scale, precision);
        if (std::abs(out[i] - expected[i].value) <= bound) continue;
        const auto width = static_cast<std::size_t>(shape.width());
        return "row " + std::to_string(i / width) + " column " + std::to_string(i % width) + ": " +
               std::to_string(out[i]) + ", expected " + std::to_string(expected[i].value) + " within " +
               std::to_string(bound / std::abs(expected[i].value)) + " relative";
    }
    return {};
}

class AttentionTest : public testing::Test {
  protected:
    void SetUp() override {
        int devices = 0;
        if (cudaGetDeviceCount(&devices) != cudaSuccess || devices == 0) GTEST_SKIP() << "no CUDA device";
    }
};

class AttentionShapes : public AttentionTest, public testing::WithParamInterface<std::tuple<Precision, int>> {};

TEST_P(AttentionShapes, MatchesReferenceAtEveryElement) {
    const auto [precision, head_size] = GetParam();
    for (const std::int64_t seq : {1, 17, 64, 1000, 1024})
        for (const std::int64_t batch : {1, 3}) {
            const Shape shape{batch, 2, seq, head_size};
            SCOPED_TRACE(testing::Message() << "batch " << batch << " seq " << seq);
            const double scale = 1.0 / std::sqrt(head_size);
            const auto count = static_cast<std::size_t>(shape.rows() * 3 * shape.width());
            const Case run(shape, scale, precision, normal_values(count, static_cast<unsigned>(seq + batch)));
            run.launch();
            const std::vector<Expected> expected = expect(shape, scale, run.stored());
            ASSERT_EQ(first_wrong(shape, scale, precision, run.out(), expected), "");
            EXPECT_TRUE(run.guards_intact());
        }
}

INSTANTIATE_TEST_SUITE_P(All, AttentionShapes,
                         testing::Combine(testing::ValuesIn(all_precisions), testing::Values(64, 128, 80, 100, 32, 33)),
                         [](const auto& instance) {
                             return std::string(name(std::get<0>(instance.param))) + "_head" +
                                    std::to_string(std::get<1>(instance.param));
                         });

class AttentionPrecisions : public AttentionTest, public testing::WithParamInterface<Precision> {};

TEST_P(AttentionPrecisions, SaturatedSoftmaxAveragesTheKeysOfTheLargestScore) {
    // Small integers make every score exact, so a huge scale leaves weights of 0 and equal weights for ties.
    const Shape shape{1, 3, 200, 64};
    std::mt19937 generator(7);
    std::uniform_int_distribution<int> integers(-2, 2);
    std::vector<double> qkv(static_cast<std::size_t>(shape.rows() * 3 * shape.width()));
    for (double& value : qkv) value = integers(generator);
    for (const double scale : {1e3, 1e30, 1e300}) {
        SCOPED_TRACE(scale);
        const Case run(shape, scale, GetParam(), qkv);
        run.launch();
        std::vector<Expected> expected = expect(shape, scale, run.stored());
        for (Expected& element : expected) element.score_magnitude = 0.0;
        EXPECT_EQ(first_wrong(shape, scale, GetParam(), run.out(), expected), "");
    }
}

TEST_P(AttentionPrecisions, ManyRowsTakeAnotherTileAndMatchToo) {
    const Shape few{1, 1, 200, 64}, many{15, 14, 200, 64};
    const auto kernel = [](const Shape& shape) {
        return attention_kernel_name(
            {nullptr, nullptr, shape.batch, shape.heads, shape.seq, shape.head_size, 1.0, GetParam()});
    };
    EXPECT_NE(kernel(few), kernel(many));
    const Case run(many, 0.125, GetParam(), normal_values(static_cast<std::size_t>(many.rows() * 3 * many.width()), 5));
    run.launch();
    EXPECT_EQ(first_wrong(many, 0.125, GetParam(), run.out(), expect(many, 0.125, run.stored())), "");
    EXPECT_TRUE(run.guards_intact());
}

TEST_P(AttentionPrecisions, RepeatedRunsAreBitEqualAlsoFromAGraph) {
    const Shape shape{2, 5, 700, 64};
    const Case run(shape, 0.125, GetParam(),
                   normal_values(static_cast<std::size_t>(shape.rows() * 3 * shape.width()), 3));
    run.launch();
    const std::vector<unsigned char> first = run.out_bytes();

    cudaStream_t stream = nullptr;
    cudaGraph_t graph = nullptr;
    cudaGraphExec_t executable = nullptr;
    KBENCH_CUDA(cudaStreamCreate(&stream));
    KBENCH_CUDA(cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal));
    run.launch(stream);
    KBENCH_CUDA(cudaStreamEndCapture(stream, &graph));
    KBENCH_CUDA(cudaGraphInstantiate(&executable, graph, 0));
    for (int repetition = 0; repetition < 3; ++repetition) {
        KBENCH_CUDA(cudaGraphLaunch(executable, stream));
        KBENCH_CUDA(cudaStreamSynchronize(stream));
        EXPECT_TRUE(first == run.out_bytes());
    }
    KBENCH_CUDA(cudaGraphExecDestroy(executable));
    KBENCH_CUDA(cudaGraphDestroy(graph));
    KBENCH_CUDA(cudaStreamDestroy(stream));
}

INSTANTIATE_TEST_SUITE_P(All, AttentionPrecisions, testing::ValuesIn(all_precisions),
                         [](const auto& instance) { return std::string(name(instance.param)); });

TEST_F(AttentionTest, OfEqualValuesTheOutputIsThatValue) {
    // Also in tf32, whose probabilities are rounded by up to 2^-11 of themselves: their sum is that of the rounded
    // ones.
    const Shape shape{1, 2, 64, 64};
    std::vector<double> qkv = normal_values(static_cast<std::size_t>(shape.rows() * 3 * shape.width()), 13);
    const auto value = [](std::size_t column) { return 1 + static_cast<double>(column % 64) / 64; };
    const auto width = static_cast<std::size_t>(shape.width());
    for (std::size_t i = 0; i < qkv.size(); ++i)
        if (i % (3 * width) >= 2 * width) qkv[i] = value(i % width);
    for (const Precision precision : {Precision::tf32, Precision::fp32, Precision::fp64}) {
        const Case run(shape, 0.125, precision, qkv);
        run.launch();
        const std::vector<double> out = run.out();
        for (std::size_t i = 0; i < out.size(); ++i) {
            // A rounding for each key, which on tensor cores is one unit.
            const double roundings = 2 * static_cast<double>(i / width + 8);
            ASSERT_NEAR(out[i] / value(i), 1, roundings * accumulator_roundoff(precision))
                << name(precision) << ", query " << i / width;
        }
    }
}

TEST_F(AttentionTest, Tf32RoundsItsOperandsAndFp32DoesNot) {
    const Shape shape{1, 2, 128, 64};
    const std::vector<double> qkv = normal_values(static_cast<std::size_t>(shape.rows() * 3 * shape.width()), 11);
    const Case tf32(shape, 0.125, Precision::tf32, qkv), fp32(shape, 0.125, Precision::fp32, qkv);
    tf32.launch();
    fp32.launch();
    const std::vector<Expected> expected = expect(shape, 0.125, tf32.stored());
    EXPECT_EQ(first_wrong(shape, 0.125, Precision::fp32, fp32.out(), expected), "");
    EXPECT_NE(first_wrong(shape, 0.125, Precision::fp32, tf32.out(), expected), "");
}

TEST(AttentionLimits, WiderHeadsAreUnsupportedWithTheLimitNamed) {
    const AttentionArguments arguments{nullptr, nullptr, 1, 1, 1, 129, 1.0, Precision::fp16};
    try {
        attention_forward(arguments, nullptr);
        FAIL() << "head_size 129 was accepted";
    } catch (const Unsupported& error) {
        EXPECT_THAT(error.what(), testing::AllOf(testing::HasSubstr("129"), testing::HasSubstr("128")));
    }
}

TEST(AttentionLimits, KernelNameTellsPrecisionPaddedHeadAndTile) {
    AttentionArguments arguments{nullptr, nullptr, 1, 1, 1, 64, 1.0, Precision::fp16};
    EXPECT_THAT(attention_kernel_name(arguments), testing::MatchesRegex("attention_mma<fp16,64,[0-9]+x[0-9]+x[0-9]+>"));
    arguments.precision = Precision::fp32;
    arguments.head_size = 65;
    EXPECT_THAT(attention_kernel_name(arguments), testing::MatchesRegex("attention_fma<fp32,96,[0-9]+x[0-9]+x[0-9]+>"));
}

}  // namespace
}  // namespace kbench::cuda
