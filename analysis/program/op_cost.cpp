// A table of ops by their plain names (layers.h), and a function for each family of them.
#include "analysis/program/op_cost.h"

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <numeric>

#include "analysis/program/kernel_precision.h"
#include "analysis/program/layers.h"
#include "models/ops/list.h"

namespace kbench {
namespace {

using Shape = std::vector<std::int64_t>;

constexpr double index_bytes = 8;
constexpr double most_whole = 1e18;  ///< more is not read right, and may be no whole number

double elements(const Shape& shape) {
    return std::accumulate(shape.begin(), shape.end(), 1.0,
                           [](double all, std::int64_t size) { return all * static_cast<double>(size); });
}

/// Elements of an argument; 0 where it is no tensor.
double elements_of(const Sizes& sizes, std::size_t index) {
    return index < sizes.size() && !sizes[index].empty() ? elements(sizes[index]) : 0;
}

/// Rows of the last dimension.
std::int64_t row_count(const Shape& shape) {
    return static_cast<std::int64_t>(std::min(elements(shape), most_whole)) / std::max<std::int64_t>(1, shape.back());
}

bool has_sizes(const Sizes& sizes, std::initializer_list<std::size_t> dimensions) {
    std::size_t i = 0;
    for (const std::size_t most : dimensions) {
        if (i >= sizes.size() || sizes[i].size() != most) return false;
        ++i;
    }
    return true;
}

/// What is computed, with bytes added role by role.
class OpCount {
  public:
    OpCount(const OpCall& op_call, double bytes) : call(op_call), element_bytes_(bytes) {}

    bool is_backward() const { return !call.node.empty(); }
    Direction direction() const { return is_backward() ? Direction::bwd : Direction::fwd; }
    /// Activations in the forward, gradients in the backward.
    Role made() const { return is_backward() ? Role::gradients : Role::activations; }
    void read(Role role, double number) { add(result.cost.bytes_read, role, number * element_bytes_); }
    void write(Role role, double number) { add(result.cost.bytes_written, role, number * element_bytes_); }
    void read_indices(double number) { add(result.cost.bytes_read, Role::tokens, number * index_bytes); }
    void flops(double number) {
        result.cost.flops += number;
        result.known = true;
    }

    const OpCall& call;
    OpWork result;

  private:
    static void add(std::array<double, role_count>& bytes, Role role, double number) {
        bytes[static_cast<std::size_t>(role)] += number;
    }
    double element_bytes_;
};

/// out [m, n] = left [m, k] right [k, n], `batch` times.
struct Product {
    double m, n, k, batch = 1;
};

void multiply(OpCount& count, const Product& product, Role left, Role right, Role out) {
    const double flops = 2 * product.batch * product.m * product.n * product.k;
    count.flops(flops);
    count.result.matrix_flops = flops;
    count.read(left, product.batch * product.m * product.k);
    count.read(right, product.batch * product.k * product.n);
    count.write(out, product.batch * product.m * product.n);
    if (product.batch == 1 && std::max({product.m, product.n, product.k}) < most_whole)
        count.result.shape = shape_text({{'m', static_cast<std::int64_t>(product.m)},
                                         {'n', static_cast<std::int64_t>(product.n)},
                                         {'k', static_cast<std::int64_t>(product.k)}});
}

/// The product of two tensors with the rules of broadcasting; nothing where their sizes do not fit.
std::optional<Product> product_of(const Shape& left, const Shape& right) {
    if (left.size() < 2 || right.size() < 2 || left.back() != right[right.size() - 2]) return std::nullopt;
    const auto k = static_cast<double>(left.back()), n = static_cast<double>(right.back());
    if (k == 0 || n == 0) return std::nullopt;
    if (right.size() == 2) return Product{elements(left) / k, n, k};
    const auto m = static_cast<double>(left[left.size() - 2]);
    if (m == 0) return std::nullopt;
    return Product{m, n, k, std::max(elements(left) / (m * k), elements(right) / (k * n))};
}

/// The product in the forward of a node; nothing where its sizes are unknown.
std::optional<Product> product_of_forward(const OpCall& call) {
    const Sizes& sizes = call.forward_sizes;
    const std::string node = plain_op_name(call.node);
    if (node == "addmm" && has_sizes(sizes, {1, 2, 2})) return product_of(sizes[1], sizes[2]);
    if (node == "addmm" && has_sizes(sizes, {2, 2, 2})) return product_of(sizes[1], sizes[2]);
    if (node == "linear" && sizes.size() > 1 && sizes[1].size() == 2)
        return product_of(sizes[0], {sizes[1][1], sizes[1][0]});
    if ((node == "mm" || node == "matmul") && sizes.size() > 1) return product_of(sizes[0], sizes[1]);
    return std::nullopt;
}

/// Whether a product in the backward makes the gradient of what was multiplied (dgrad) or of the weight (wgrad).
std::optional<Direction> gradient_of(const OpCall& call, const Product& product) {
    const std::optional<Product> forward = product_of_forward(call);
    if (!forward) return std::nullopt;
    const auto is = [&](double m, double n, double k) { return product.m == m && product.n == n && product.k == k; };
    const bool dgrad = is(forward->m, forward->k, forward->n);
    const bool wgrad = is(forward->k, forward->n, forward->m) || is(forward->n, forward->k, forward->m);
    if (dgrad == wgrad) return std::nullopt;
    return dgrad ? Direction::dgrad : Direction::wgrad;
}

void multiply_or_differentiate(OpCount& count, const std::optional<Product>& product) {
    if (!product) return;
    if (!count.is_backward())
        return multiply(count, *product, Role::activations, product->batch == 1 ? Role::weights : Role::activations,
                        Role::activations);
    count.result.direction = gradient_of(count.call, *product);
    if (count.result.direction == Direction::dgrad)
        return multiply(count, *product, Role::gradients, Role::weights, Role::gradients);
    multiply(count, *product, Role::activations, Role::gradients, Role::gradients);
}

void add_bias(OpCount& count, const Product& product, const Shape& bias) {
    count.flops(product.batch * product.m * product.n);
    count.read(count.is_backward() ? Role::gradients : Role::weights, elements(bias));
}

void mm(OpCount& count) {
    if (count.call.sizes.size() >= 2)
        multiply_or_differentiate(count, product_of(count.call.sizes[0], count.call.sizes[1]));
}
void addmm(OpCount& count) {
    const Sizes& sizes = count.call.sizes;
    if (sizes.size() < 3) return;
    const std::optional<Product> product = product_of(sizes[1], sizes[2]);
    multiply_or_differentiate(count, product);
    if (product && !sizes[0].empty()) add_bias(count, *product, sizes[0]);
}
/// in [.., k], weight [n, k], bias [n] or nothing.
void linear(OpCount& count) {
    const Sizes& sizes = count.call.sizes;
    if (sizes.size() < 2 || sizes[1].size() != 2 || sizes[0].empty()) return;
    Shape in = sizes[0];
    if (in.size() == 1) in.insert(in.begin(), 1);
    const std::optional<Product> product = product_of(in, {sizes[1][1], sizes[1][0]});
    multiply_or_differentiate(count, product);
    if (product && sizes.size() > 2 && !sizes[2].empty()) add_bias(count, *product, sizes[2]);
}

/// q [b, h, queries, d], k and v [b, h_k, keys, d]; the backward has the gradient of the output before them.
void attention(OpCount& count) {
    const std::size_t first = count.is_backward() ? 1 : 0;
    const Sizes& sizes = count.call.sizes;
    if (sizes.size() < first + 3) return;
    const Shape &q = sizes[first], &k = sizes[first + 1], &v = sizes[first + 2];
    if (q.size() != 4 || k.size() != 4 || v.size() != 4 || q[3] != k[3] || k[2] != v[2]) return;
    const AttentionShape shape{q[0], q[1], q[2], q[3]};
    const double rows = shape.queries();
    const std::optional<bool> causal = named_causal(count.call.kernel);
    double pairs = rows * static_cast<double>(k[2]);
    if (causal == true && q[2] == k[2]) pairs = shape.causal_pairs();
    count.result.counts_all_pairs = !causal;
    count.read(Role::activations, elements(q) + elements(k) + elements(v));
    const double out = rows * static_cast<double>(v[3]);
    if (count.is_backward()) {
        count.read(Role::gradients, out);
        count.read(Role::activations, out);
        count.write(Role::gradients, elements(q) + elements(k) + elements(v));
    } else {
        count.write(Role::activations, out);
    }
    const Work work = Attention::work_of(count.direction(), pairs, rows, shape.head_size, false);
    count.flops(work.flops);
    count.result.matrix_flops = work.matrix_flops;
    if (q == k) count.result.shape = shape.text();
}

/// Gradients of in and weight: dout [n, k, p, q], in [n, c, h, w], weight [k, c, r, s]. The forward does not say its
/// stride and so not its output.
void convolution_backward(OpCount& count) {
    const Sizes& sizes = count.call.sizes;
    if (!has_sizes(sizes, {4, 4, 4}) || sizes[2][0] == 0) return;
    const double taps = elements(sizes[2]) / static_cast<double>(sizes[2][0]);
    const double flops = 2 * 2 * elements(sizes[0]) * taps;
    count.result.kind = Conv2d::kind;
    count.flops(flops);
    count.result.matrix_flops = flops;
    count.read(Role::gradients, elements(sizes[0]));
    count.read(Role::activations, elements(sizes[1]));
    count.read(Role::weights, elements(sizes[2]));
    count.write(Role::gradients, elements(sizes[1]) + elements(sizes[2]));
}

/// in [.., width], normalized_shape, weight [width], bias; the backward has dout before in, and the weight sixth.
void layer_norm(OpCount& count) {
    const Sizes& sizes = count.call.sizes;
    const std::size_t in = count.is_backward() ? 1 : 0, weight = count.is_backward() ? 5 : 2;
    if (sizes.size() <= weight || sizes[in].empty() || sizes[weight].size() != 1) return;
    const Shape& x = sizes[in];
    if (x.back() != sizes[weight][0] || x.back() == 0) return;
    const LayerNorm op{.rows = row_count(x), .width = x.back()};
    const auto width = static_cast<double>(op.width);
    count.flops(op.work(count.direction()).flops);
    count.result.shape = op.text();
    count.read(Role::activations, elements(x));
    if (count.is_backward()) {
        count.read(Role::gradients, elements(x));
        count.read(Role::weights, width);
        count.write(Role::gradients, elements(x) + 2 * width);
    } else {
        count.read(Role::weights, 2 * width);
        count.write(Role::activations, elements(x));
    }
}

/// In or (dout, out) of any shape, along a dimension that the sizes do not tell. Backward, as many FLOPs: times the
/// gradient, its sum, their difference, times the probability.
void softmax(OpCount& count) {
    const double all = elements_of(count.call.sizes, 0);
    if (all == 0) return;
    count.flops(Softmax::score_flops * all);
    count.read(Role::activations, all);
    if (count.is_backward()) count.read(Role::gradients, all);
    count.write(count.made(), all);
}

/// weight [vocab, width], indices.
void embedding(OpCount& count) {
    const Sizes& sizes = count.call.sizes;
    if (sizes.size() < 2 || sizes[0].size() != 2) return;
    const double rows = elements_of(sizes, 1), width = static_cast<double>(sizes[0][1]);
    if (rows == 0) return;
    count.flops(0);
    count.read_indices(rows);
    count.read(Role::weights, std::min(rows, static_cast<double>(sizes[0][0])) * width);
    count.write(Role::activations, rows * width);
}
/// dout [.., width], indices; the gradient is as large as the weight in the forward.
void embedding_backward(OpCount& count) {
    const Sizes& sizes = count.call.sizes;
    if (sizes.size() < 2 || sizes[0].empty()) return;
    count.flops(elements(sizes[0]));
    count.read(Role::gradients, elements(sizes[0]));
    count.read_indices(elements_of(sizes, 1));
    count.write(Role::gradients, elements_of(count.call.forward_sizes, 0));
}

/// logits [rows, classes], targets [rows]; the loss is one number.
void cross_entropy(OpCount& count) {
    const Sizes& sizes = count.call.sizes;
    if (!has_sizes(sizes, {2, 1})) return;
    const auto rows = static_cast<double>(sizes[0][0]), classes = static_cast<double>(sizes[0][1]);
    count.flops(CrossEntropy::work_of(Direction::fwd, sizes[0][0], sizes[0][1]).flops);
    count.read(Role::logits, rows * classes);
    count.read_indices(rows);
}
/// log-probabilities [rows, classes], targets [rows]: one number of each row.
void nll_loss(OpCount& count) {
    const Sizes& sizes = count.call.sizes;
    if (!has_sizes(sizes, {2, 1})) return;
    const auto rows = static_cast<double>(sizes[0][0]);
    count.flops(rows);
    count.read(Role::logits, rows);
    count.read_indices(rows);
}
/// dloss, log-probabilities [rows, classes], targets [rows]: zeros, but for one number of each row.
void nll_loss_backward(OpCount& count) {
    const Sizes& sizes = count.call.sizes;
    if (sizes.size() < 3 || sizes[1].size() != 2) return;
    count.flops(static_cast<double>(sizes[1][0]));
    count.read_indices(elements_of(sizes, 2));
    count.write(Role::gradients, elements(sizes[1]));
}

/// Units of a recurrent layer's product with its input and itself, in all layers and directions; nothing where the
/// number of weights fits no such layer.
std::optional<double> recurrent_products(const Shape& in, const Shape& state, double weights, std::int64_t gates) {
    const auto width = static_cast<double>(in.back()), hidden = static_cast<double>(state[2]);
    const auto all = static_cast<double>(state[0]), gate = static_cast<double>(gates) * hidden;
    for (const double directions : {1.0, 2.0}) {
        const double rest = all - directions;
        const double products = gate * (directions * (width + hidden) + rest * (directions * hidden + hidden));
        for (const double biases : {2 * all * gate, 0.0})
            if (rest >= 0 && products + biases == weights) return products;
    }
    return std::nullopt;
}

/// aten::_cudnn_rnn: in [time steps, batch, width] or packed [rows, width], then lists of weights, and fourth all
/// weights, fifth the state [layers and directions, batch, hidden]. Its backward begins with the same.
void recurrent(OpCount& count) {
    const Sizes& sizes = count.call.sizes;
    if (sizes.size() < 5 || sizes[0].size() < 2 || sizes[3].size() != 1 || sizes[4].size() != 3) return;
    const std::string kind = op_kind_of(count.call.outer);
    const auto cell = std::ranges::find(cell_names, kind);
    if (cell == std::end(cell_names)) return;
    const std::int64_t gates = gates_of(static_cast<Cell>(cell - std::begin(cell_names)));
    const std::optional<double> products =
        recurrent_products(sizes[0], sizes[4], static_cast<double>(sizes[3][0]), gates);
    if (!products) return;
    const double rows = static_cast<double>(row_count(sizes[0]));
    const double flops = (count.is_backward() ? 4 : 2) * rows * *products;
    count.result.kind = kind;
    count.flops(flops);
    count.result.matrix_flops = flops;
    count.read(Role::activations, elements(sizes[0]));
    count.read(Role::weights, static_cast<double>(sizes[3][0]));
}

/// All operands read, one result written, which is as large as broadcasting makes it.
void elementwise(OpCount& count, double flops) {
    std::vector<std::int64_t> out;
    for (const Shape& shape : count.call.sizes) {
        if (shape.size() > out.size()) out.insert(out.begin(), shape.size() - out.size(), 1);
        for (std::size_t i = 1; i <= shape.size(); ++i)
            out[out.size() - i] = std::max(out[out.size() - i], shape[shape.size() - i]);
    }
    const double all = elements(out);
    if (out.empty()) return;
    count.flops(flops * all);
    bool is_first = true;
    for (const Shape& shape : count.call.sizes) {
        if (shape.empty()) continue;
        count.read(is_first ? count.made() : Role::activations, elements(shape));
        is_first = false;
    }
    count.write(count.made(), all);
}

/// Sums: each element is read and added; how many sums there are the sizes do not tell. A linear layer's sum in the
/// backward is its bias's gradient.
void reduction(OpCount& count) {
    const double all = elements_of(count.call.sizes, 0);
    if (all == 0) return;
    const std::string node = plain_op_name(count.call.node);
    if (node == "addmm" || node == "linear") count.result.kind = BiasAdd::kind;
    count.flops(all);
    count.read(count.made(), all);
}

void same_again(OpCount& count) {
    const double all = elements_of(count.call.sizes, 0);
    if (all == 0) return;
    count.flops(0);
    count.read(count.made(), all);
    count.write(count.made(), all);
}

/// GELU comes in two forms, which the kernel's name tells: the first of two lambdas is the tanh form (PyTorch,
/// aten/src/ATen/native/cuda/ActivationGeluKernel.cu).
void gelu(OpCount& count) {
    const std::size_t at =
        count.call.kernel.find(count.is_backward() ? "GeluBackwardCUDAKernelImpl" : "GeluCUDAKernelImpl");
    if (at == std::string::npos) return;
    const std::size_t form = count.call.kernel.find("{lambda()#", at);
    if (form == std::string::npos) return;
    const char number = count.call.kernel[std::min(form + 10, count.call.kernel.size() - 1)];
    if (number != '1' && number != '2') return;
    const ActivationFacts& facts = facts_of(number == '1' ? Activation::gelu_tanh : Activation::gelu_erf);
    count.result.kind = facts.kind;
    elementwise(count, count.is_backward() ? facts.backward_flops : facts.forward_flops);
}

/// What is known of an op by its plain_op_name(): kbench's kind, and what it costs.
struct OpRow {
    std::string_view name, kind = {};   ///< `kind`: empty where kbench has no such kind
    void (*count)(OpCount&) = nullptr;  ///< also in the backward, unless that has one of its own
    void (*count_backward)(OpCount&) = nullptr;
    /// FLOPs that an element of the result takes, of an elementwise op; 0: unknown.
    double flops = 0, backward_flops = 0;
};
constexpr double relu_backward_flops = facts_of(Activation::relu).backward_flops;
constexpr OpRow op_rows[] = {
    {.name = "addmm", .kind = Gemm::kind, .count = addmm},
    {.name = "baddbmm", .kind = Gemm::kind, .count = addmm},
    {.name = "mm", .kind = Gemm::kind, .count = mm},
    {.name = "bmm", .kind = Gemm::kind, .count = mm},
    {.name = "matmul", .kind = Gemm::kind, .count = mm},
    {.name = "linear", .kind = Gemm::kind, .count = linear},
    {.name = "scaleddotproductattention", .kind = Attention::kind, .count = attention},
    {.name = "scaleddotproductflashattention", .kind = Attention::kind, .count = attention},
    {.name = "scaleddotproductefficientattention", .kind = Attention::kind, .count = attention},
    {.name = "scaleddotproductcudnnattention", .kind = Attention::kind, .count = attention},
    {.name = "layernorm", .kind = LayerNorm::kind, .count = layer_norm},
    {.name = "nativelayernorm", .kind = LayerNorm::kind, .count = layer_norm},
    {.name = "rmsnorm", .kind = RmsNorm::kind},
    {.name = "batchnorm", .kind = BatchNorm::kind},
    {.name = "nativebatchnorm", .kind = BatchNorm::kind},
    {.name = "cudnnbatchnorm", .kind = BatchNorm::kind},
    {.name = "conv2d", .kind = Conv2d::kind},
    {.name = "convolution", .count_backward = convolution_backward},
    {.name = "softmax", .kind = Softmax::kind, .count = softmax},
    {.name = "softmaxbackwarddata", .kind = Softmax::kind, .count = softmax},
    {.name = "logsoftmax", .count = softmax},
    {.name = "logsoftmaxbackwarddata", .count = softmax},
    {.name = "embedding", .kind = Embedding::kind, .count = embedding},
    {.name = "embeddingdense", .kind = Embedding::kind, .count_backward = embedding_backward},
    {.name = "crossentropyloss", .kind = CrossEntropy::kind, .count = cross_entropy},
    {.name = "nlllossnd", .count = nll_loss},
    {.name = "nllloss", .count = nll_loss, .count_backward = nll_loss_backward},
    {.name = "nlllossforward", .count = nll_loss},
    {.name = "ctcloss", .kind = Ctc::kind},
    {.name = "cudnnrnn", .count = recurrent},
    {.name = "lstm", .kind = Lstm::kind},
    {.name = "gru", .kind = Gru::kind},
    {.name = "rnntanh", .kind = Rnn::kind},
    {.name = "adamw.step", .kind = AdamW::kind},
    {.name = "sum", .count = reduction},
    {.name = "mean", .count = reduction},
    {.name = "clone", .count = same_again},
    {.name = "contiguous", .count = same_again},
    {.name = "gelu", .count = gelu},
    {.name = "relu", .kind = Relu::kind, .flops = facts_of(Activation::relu).forward_flops},
    {.name = "threshold", .kind = Relu::kind, .flops = relu_backward_flops, .backward_flops = relu_backward_flops},
    {.name = "silu",
     .kind = Silu::kind,
     .flops = facts_of(Activation::silu).forward_flops,
     .backward_flops = facts_of(Activation::silu).backward_flops},
    // Backward: dout (1 - out^2), of this and of a sigmoid, as out is saved.
    {.name = "tanh", .kind = Tanh::kind, .flops = facts_of(Activation::tanh).forward_flops, .backward_flops = 3},
    {.name = "sigmoid", .flops = 3, .backward_flops = 3},  // an exponential, an addition and a quotient
    {.name = "hardtanh", .kind = Hardtanh::kind, .flops = 2, .backward_flops = 2},  // two comparisons
    {.name = "add", .flops = 1},
    {.name = "sub", .flops = 1},
    {.name = "rsub", .flops = 1},
    {.name = "mul", .flops = 1},
    {.name = "div", .flops = 1},
    {.name = "neg", .flops = 1},
    {.name = "abs", .flops = 1},
    {.name = "reciprocal", .flops = 1},
    {.name = "pow", .flops = 1},
    {.name = "sqrt", .flops = 1},
    {.name = "exp", .flops = 1},
    {.name = "log", .flops = 1},
    {.name = "sin", .flops = 1},
    {.name = "cos", .flops = 1},
    {.name = "erf", .flops = 1},
    {.name = "maximum", .flops = 1},
    {.name = "minimum", .flops = 1},
    {.name = "rsqrt", .flops = 2},    // a root and a quotient
    {.name = "addcmul", .flops = 3},  // two products and a sum
    {.name = "addcdiv", .flops = 3},
    {.name = "lerp", .flops = 3},
};

/// Null where nothing is known of the op.
const OpRow* row_named(std::string_view name) {
    const auto row = std::ranges::find(op_rows, plain_op_name(name), &OpRow::name);
    return row == std::end(op_rows) ? nullptr : &*row;
}

/// "aten::add" is "add", "aten::gelu_backward" is "gelu"; "AddmmBackward0" is what plain_op_name() says.
std::string shown_name(std::string_view name) {
    std::string shown = unqualified(name);
    if (shown.find("Backward") != shown.npos) return plain_op_name(shown);
    constexpr std::string_view suffix = "_backward";
    if (shown.ends_with(suffix)) shown.resize(shown.size() - suffix.size());
    return shown;
}

}  // namespace

std::string op_kind_of(std::string_view name) {
    const OpRow* row = row_named(name);
    return row != nullptr && !row->kind.empty() ? std::string(row->kind) : shown_name(name);
}

OpWork op_work(const OpCall& call, double element_bytes) {
    OpCount count(call, element_bytes);
    count.result.kind = op_kind_of(call.name);
    if (const OpRow* row = row_named(call.name)) {
        const bool is_of_backward = call.name.find("backward") != call.name.npos;
        const double flops = is_of_backward ? row->backward_flops : row->flops;
        if (is_of_backward && row->count_backward != nullptr)
            row->count_backward(count);
        else if (row->count != nullptr)
            row->count(count);
        else if (flops > 0)
            elementwise(count, flops);
    }
    // Sizes that no memory holds were not read right.
    constexpr double most = 1e24;
    if (!(count.result.cost.flops < most && count.result.cost.bytes() < most)) return {.kind = count.result.kind};
    return std::move(count.result);
}

}  // namespace kbench
