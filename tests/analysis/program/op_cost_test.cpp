// Costs of ops against kbench's own kinds and arithmetic by hand; and none where sizes do not tell.
#include "analysis/program/op_cost.h"

#include <gtest/gtest.h>

#include "models/ops/list.h"
#include "models/ops/table.h"

namespace kbench {
namespace {

double read(const OpWork& work, Role role) { return work.cost.bytes_read[static_cast<std::size_t>(role)]; }
double written(const OpWork& work, Role role) { return work.cost.bytes_written[static_cast<std::size_t>(role)]; }

TEST(OpCost, OfAProductWithAWeight) {
    const OpWork work = op_work({.name = "aten::addmm", .sizes = {{30}, {10, 20}, {20, 30}, {}, {}}}, 2);
    EXPECT_TRUE(work.known);
    EXPECT_EQ(work.kind, "gemm");
    EXPECT_EQ(work.shape, "m10n30k20");
    EXPECT_EQ(work.matrix_flops, (Gemm{10, 30, 20}.work(Direction::fwd).flops));
    EXPECT_EQ(work.cost.flops, work.matrix_flops + 10 * 30) << "with the bias";
    EXPECT_EQ(read(work, Role::activations), 2 * 10 * 20);
    EXPECT_EQ(read(work, Role::weights), 2 * (20 * 30 + 30));
    EXPECT_EQ(written(work, Role::activations), 2 * 10 * 30);
    const OpWork linear = op_work({.name = "aten::linear", .sizes = {{2, 5, 20}, {30, 20}, {30}}}, 2);
    EXPECT_EQ(linear.cost.flops, work.cost.flops);
    EXPECT_EQ(linear.cost.bytes(), work.cost.bytes());
    EXPECT_EQ(linear.shape, work.shape);
    EXPECT_EQ(op_work({.name = "aten::mm", .sizes = {{10, 20}, {20, 30}}}, 2).cost.flops, work.matrix_flops);
    EXPECT_EQ(op_work({.name = "aten::linear", .sizes = {{2, 5, 20}, {30, 20}, {}}}, 2).cost.flops, work.matrix_flops);
}

TEST(OpCost, OfBatchedProducts) {
    const double flops = 2.0 * 6 * 4 * 5 * 3;
    const OpWork bmm = op_work({.name = "aten::bmm", .sizes = {{6, 4, 3}, {6, 3, 5}}}, 4);
    EXPECT_EQ(bmm.cost.flops, flops);
    EXPECT_EQ(read(bmm, Role::activations), 4 * 6 * (4 * 3 + 3 * 5));
    EXPECT_EQ(read(bmm, Role::weights), 0);
    EXPECT_EQ(op_work({.name = "aten::matmul", .sizes = {{2, 3, 4, 3}, {2, 3, 3, 5}}}, 4).cost.flops, flops);
    EXPECT_EQ(op_work({.name = "aten::matmul", .sizes = {{6, 4, 3}, {3, 5}}}, 4).cost.flops, flops);
    EXPECT_EQ(op_work({.name = "aten::baddbmm", .sizes = {{6, 4, 5}, {6, 4, 3}, {6, 3, 5}, {}, {}}}, 4).matrix_flops,
              flops);
}

TEST(OpCost, OfAProductsGradientsTellsWhichItIs) {
    const Sizes forward{{30}, {10, 20}, {20, 30}};
    const auto gradient = [&](Sizes sizes) {
        return op_work(
            {.name = "aten::mm", .sizes = std::move(sizes), .node = "AddmmBackward0", .forward_sizes = forward}, 2);
    };
    const OpWork dgrad = gradient({{10, 30}, {30, 20}}), wgrad = gradient({{20, 10}, {10, 30}});
    EXPECT_EQ(dgrad.direction, Direction::dgrad);
    EXPECT_EQ(wgrad.direction, Direction::wgrad);
    EXPECT_EQ(dgrad.cost.flops, wgrad.cost.flops);
    EXPECT_EQ(read(dgrad, Role::weights), 2 * 20 * 30);
    EXPECT_EQ(written(dgrad, Role::gradients), 2 * 10 * 20);
    EXPECT_EQ(written(wgrad, Role::gradients), 2 * 20 * 30);
    EXPECT_EQ(gradient({{30, 10}, {10, 20}}).direction, Direction::wgrad) << "of a transposed weight";
    const OpWork square = op_work(
        {.name = "aten::mm", .sizes = {{8, 8}, {8, 8}}, .node = "MmBackward0", .forward_sizes = {{8, 8}, {8, 8}}}, 2);
    EXPECT_EQ(square.direction, std::nullopt) << "the sizes do not tell";
    EXPECT_EQ(square.cost.flops, 2 * 8 * 8 * 8);
    const OpWork bias =
        op_work({.name = "aten::sum", .sizes = {{10, 30}, {}}, .node = "AddmmBackward0", .forward_sizes = forward}, 2);
    EXPECT_EQ(bias.kind, "bias");
    EXPECT_EQ(bias.cost.flops, (BiasAdd{10, 30}.work(Direction::bwd).flops));
}

TEST(OpCost, OfAttentionCountsThePairsThatTheKernelDoes) {
    const Sizes sizes{{2, 3, 8, 4}, {2, 3, 8, 4}, {2, 3, 8, 4}, {}, {}};
    const Attention own{{2, 3, 8, 4}, 0.5};
    const std::string causal = "void flash_fwd_kernel<Traits<4, half_t>, false, true, false>(Params)";
    const std::string name = "aten::scaled_dot_product_attention";
    const OpWork masked = op_work({.name = name, .sizes = sizes, .kernel = causal}, 2);
    EXPECT_EQ(masked.kind, "attention");
    EXPECT_EQ(masked.cost.flops, own.work(Direction::fwd).flops);
    EXPECT_EQ(masked.matrix_flops, own.work(Direction::fwd).matrix_flops);
    EXPECT_FALSE(masked.counts_all_pairs);
    EXPECT_EQ(masked.cost.bytes(), 2 * 4 * 2 * 3 * 8 * 4);
    const OpWork unknown = op_work({.name = name, .sizes = sizes, .kernel = "fmha"}, 2);
    EXPECT_TRUE(unknown.counts_all_pairs);
    EXPECT_EQ(unknown.matrix_flops, 2 * 3 * 8 * 8 * 4 * 4);
    const OpWork backward = op_work({.name = "aten::_scaled_dot_product_flash_attention_backward",
                                     .sizes = {sizes[0], sizes[0], sizes[0], sizes[0], sizes[0]},
                                     .node = "ScaledDotProductFlashAttentionBackward0",
                                     .kernel = "flash_bwd_dq_dk_dv_loop_seqk_parallel_kernel<T<1>, false, true>(P)"},
                                    2);
    EXPECT_EQ(backward.cost.flops, own.work(Direction::bwd).flops);
    // One query on a cache, with fewer heads of keys.
    const OpWork decode = op_work({.name = name, .sizes = {{2, 8, 1, 4}, {2, 2, 100, 4}, {2, 2, 100, 4}}}, 2);
    EXPECT_EQ(decode.matrix_flops, 2 * 8 * 100 * 4 * 4);
    EXPECT_FALSE(op_work({.name = name, .sizes = {{8, 4}, {8, 4}, {8, 4}}}, 2).known);
}

TEST(OpCost, OfNormsAndLossesIsThatOfKbenchsKinds) {
    const LayerNorm norm{10, 32};
    const OpWork forward = op_work({.name = "aten::layer_norm", .sizes = {{2, 5, 32}, {}, {32}, {32}, {}, {}}}, 2);
    EXPECT_EQ(forward.kind, "layernorm");
    EXPECT_EQ(forward.cost.flops, norm.work(Direction::fwd).flops);
    EXPECT_EQ(forward.cost.bytes(), 2 * (2 * 10 * 32 + 2 * 32));
    const OpWork backward = op_work({.name = "aten::native_layer_norm_backward",
                                     .sizes = {{2, 5, 32}, {2, 5, 32}, {}, {2, 5, 1}, {2, 5, 1}, {32}, {32}, {}},
                                     .node = "NativeLayerNormBackward0"},
                                    2);
    EXPECT_EQ(backward.cost.flops, norm.work(Direction::bwd).flops);
    EXPECT_FALSE(op_work({.name = "aten::layer_norm", .sizes = {{2, 5, 32}, {}, {}, {}}}, 2).known) << "no weight";
    const OpWork loss = op_work({.name = "aten::cross_entropy_loss", .sizes = {{7, 100}, {7}, {}}}, 4);
    EXPECT_EQ(loss.kind, "cross_entropy");
    EXPECT_EQ(loss.cost.flops, (CrossEntropy{8, 8, 100}.work(Direction::fwd).flops)) << "of 8 rows 7 have a target";
    EXPECT_EQ(read(loss, Role::logits), 4 * 7 * 100);
    EXPECT_EQ(op_work({.name = "aten::_softmax", .sizes = {{3, 50}, {}, {}}}, 2).cost.flops, 4 * 150);
}

TEST(OpCost, OfALossInItsParts) {
    const OpWork logs = op_work({.name = "aten::_log_softmax", .sizes = {{7, 100}, {}, {}}}, 4);
    EXPECT_EQ(logs.kind, "_log_softmax");
    EXPECT_EQ(logs.cost.flops, 4 * 700);
    EXPECT_EQ(logs.cost.bytes(), 4 * 2 * 700);
    const OpWork logs_backward = op_work({.name = "aten::_log_softmax_backward_data",
                                          .sizes = {{7, 100}, {7, 100}, {}, {}},
                                          .node = "LogSoftmaxBackward0"},
                                         4);
    EXPECT_EQ(logs_backward.cost.flops, 4 * 700);
    EXPECT_EQ(logs_backward.cost.bytes(), 4 * 3 * 700);
    const OpWork loss = op_work({.name = "aten::nll_loss_forward", .sizes = {{7, 100}, {7}, {}, {}, {}}}, 4);
    EXPECT_EQ(loss.cost.flops, 7);
    EXPECT_EQ(loss.cost.bytes(), 7 * (4 + 8)) << "a row's one number, and its target";
    const OpWork loss_backward = op_work(
        {.name = "aten::nll_loss_backward", .sizes = {{}, {7, 100}, {7}, {}, {}}, .node = "NllLossBackward0"}, 4);
    EXPECT_EQ(loss_backward.cost.flops, 7);
    EXPECT_EQ(written(loss_backward, Role::gradients), 4 * 700);
    EXPECT_EQ(loss_backward.cost.bytes(), 4 * 700 + 8 * 7);
}

TEST(OpCost, OfAnEmbedding) {
    const OpWork work = op_work({.name = "aten::embedding", .sizes = {{100, 16}, {2, 5}, {}}}, 2);
    EXPECT_EQ(work.kind, "embedding");
    EXPECT_EQ(read(work, Role::tokens), 8 * 10);
    EXPECT_EQ(read(work, Role::weights), 2 * 10 * 16);
    EXPECT_EQ(written(work, Role::activations), 2 * 10 * 16);
    const OpWork backward = op_work({.name = "aten::embedding_dense_backward",
                                     .sizes = {{2, 5, 16}, {2, 5}, {}},
                                     .node = "EmbeddingBackward0",
                                     .forward_sizes = {{100, 16}, {2, 5}}},
                                    2);
    EXPECT_EQ(backward.kind, "embedding");
    EXPECT_EQ(backward.cost.flops, 2 * 5 * 16);
    EXPECT_EQ(written(backward, Role::gradients), 2 * 100 * 16);
}

TEST(OpCost, OfElementwiseOpsBroadcasts) {
    const OpWork add = op_work({.name = "aten::add", .sizes = {{4, 1, 8}, {5, 8}, {}}}, 2);
    EXPECT_EQ(add.kind, "add");
    EXPECT_EQ(add.cost.flops, 4 * 5 * 8);
    EXPECT_EQ(add.cost.bytes(), 2 * (4 * 8 + 5 * 8 + 4 * 5 * 8));
    EXPECT_EQ(op_work({.name = "aten::mul_", .sizes = {{9}, {}}}, 4).cost.bytes(), 4 * 18) << "a number takes none";
    const OpWork relu =
        op_work({.name = "aten::threshold_backward", .sizes = {{9}, {9}, {}}, .node = "ReluBackward0"}, 2);
    EXPECT_EQ(relu.kind, "relu");
    EXPECT_EQ(relu.cost.flops, (Relu{1, 9}.work(Direction::bwd).flops));
    const OpWork tanh = op_work({.name = "aten::tanh_backward", .sizes = {{9}, {9}}, .node = "TanhBackward0"}, 2);
    EXPECT_EQ(tanh.kind, "tanh");
    EXPECT_EQ(tanh.cost.flops, 3 * 9) << "of the saved result, not of the argument";
    const OpWork copy = op_work({.name = "aten::clone", .sizes = {{9}, {}}}, 2);
    EXPECT_TRUE(copy.known);
    EXPECT_EQ(copy.cost.flops, 0);
    EXPECT_EQ(copy.cost.bytes(), 2 * 18);
}

TEST(OpCost, OfGeluIsThatOfTheFormThatItsKernelNames) {
    const auto kernel = [](const std::string& function, char form) {
        return "void at::native::vectorized_elementwise_kernel<4, at::native::" + function +
               "(at::TensorIteratorBase&, at::native::GeluType)::{lambda()#" + form + "}::operator()() const";
    };
    const OpWork tanh =
        op_work({.name = "aten::gelu", .sizes = {{3, 5}, {}}, .kernel = kernel("GeluCUDAKernelImpl", '1')}, 2);
    EXPECT_EQ(tanh.kind, "gelu");
    EXPECT_EQ(tanh.cost.flops, (Gelu{3, 5}.work(Direction::fwd).flops));
    const OpWork erf = op_work({.name = "aten::gelu_backward",
                                .sizes = {{3, 5}, {3, 5}, {}},
                                .node = "GeluBackward0",
                                .kernel = kernel("GeluBackwardCUDAKernelImpl", '2')},
                               2);
    EXPECT_EQ(erf.kind, "gelu_erf");
    EXPECT_EQ(erf.cost.flops, (GeluErf{3, 5}.work(Direction::bwd).flops));
    EXPECT_FALSE(op_work({.name = "aten::gelu", .sizes = {{3, 5}, {}}, .kernel = "gelu"}, 2).known);
}

TEST(OpCost, OfConvolutionsIsKnownOfTheirBackwardAlone) {
    const OpWork backward = op_work({.name = "aten::convolution_backward",
                                     .sizes = {{2, 6, 7, 7}, {2, 3, 9, 9}, {6, 3, 3, 3}, {}},
                                     .node = "ConvolutionBackward0"},
                                    2);
    EXPECT_EQ(backward.kind, "conv2d");
    const Conv2d own{2, 3, 9, 9, 6, 3, 3};
    EXPECT_EQ(backward.cost.flops, own.work(Direction::dgrad).flops + own.work(Direction::wgrad).flops);
    const OpWork forward = op_work({.name = "aten::conv2d", .sizes = {{2, 3, 9, 9}, {6, 3, 3, 3}, {6}}}, 2);
    EXPECT_EQ(forward.kind, "conv2d");
    EXPECT_FALSE(forward.known);
    EXPECT_EQ(forward.cost.flops, 0);
}

TEST(OpCost, OfRecurrentLayersFollowsFromTheNumberOfWeights) {
    // Two layers of both directions: in 20 and 2 * 16 wide.
    const std::int64_t gates = 4 * 16;
    const std::int64_t products = 2 * gates * (20 + 16) + 2 * gates * (32 + 16), biases = 4 * 2 * gates;
    const Sizes sizes{{7, 3, 20}, {}, {}, {products + biases}, {4, 3, 16}, {4, 3, 16}};
    const OpWork work = op_work({.name = "aten::_cudnn_rnn", .sizes = sizes, .outer = "aten::lstm"}, 4);
    EXPECT_EQ(work.kind, "lstm");
    EXPECT_EQ(work.matrix_flops, 2.0 * 7 * 3 * static_cast<double>(products));
    EXPECT_FALSE(op_work({.name = "aten::_cudnn_rnn", .sizes = sizes, .outer = "aten::gru"}, 4).known)
        << "a GRU has other weights";
    EXPECT_FALSE(op_work({.name = "aten::_cudnn_rnn", .sizes = sizes, .outer = "aten::other"}, 4).known);
}

TEST(OpCost, IsNoneWhereSizesDoNotTell) {
    for (const char* name : {"aten::addmm", "aten::linear", "aten::mm", "aten::scaled_dot_product_attention",
                             "aten::layer_norm", "aten::embedding", "aten::add", "aten::sum", "aten::softmax",
                             "aten::cross_entropy_loss", "aten::_cudnn_rnn", "aten::convolution_backward"}) {
        for (const Sizes& sizes : {Sizes{}, Sizes{{}}, Sizes{{}, {}, {}, {}, {}, {}}, Sizes{{4}, {5, 6}, {7, 8}}}) {
            const OpWork work = op_work({.name = name, .sizes = sizes}, 2);
            EXPECT_TRUE(work.known || work.cost.flops + work.cost.bytes() == 0) << name;
        }
        EXPECT_FALSE(op_work({.name = name, .sizes = {}}, 2).known) << name;
    }
    EXPECT_FALSE(op_work({.name = "aten::unheard_of", .sizes = {{5, 5}}}, 2).known);
    EXPECT_FALSE(op_work({.name = "aten::mm", .sizes = {{4, 5}, {6, 7}}}, 2).known) << "sizes that do not fit";
    const OpWork sizeless = op_work({.name = "aten::mm", .sizes = {{4, 5}, {5, 7}}}, 0);
    EXPECT_EQ(sizeless.cost.flops, 2 * 4 * 5 * 7);
    EXPECT_EQ(sizeless.cost.bytes(), 0) << "an element of unknown size";
    const std::int64_t huge = 1LL << 50;
    EXPECT_FALSE(op_work({.name = "aten::layer_norm", .sizes = {{huge, huge, 8}, {}, {8}, {8}}}, 2).known)
        << "sizes that no memory holds";
}

TEST(OpKindOf, IsKbenchsKindOrTheFrameworksName) {
    EXPECT_EQ(op_kind_of("aten::linear"), "gemm");
    EXPECT_EQ(op_kind_of("AddmmBackward0"), "gemm");
    EXPECT_EQ(op_kind_of("NativeLayerNormBackward0"), "layernorm");
    EXPECT_EQ(op_kind_of("aten::index_select"), "index_select");
    EXPECT_EQ(op_kind_of("aten::gelu_backward"), "gelu");
    EXPECT_EQ(op_kind_of("TransposeBackward0"), "transpose");
    EXPECT_EQ(op_kind_of("AdamW.step"), "adamw");
    EXPECT_EQ(op_kind_of("ns::kernel<a::b>"), "kernel<a::b>");
    for (const char* op :
         {"aten::addmm", "aten::conv2d", "aten::silu", "aten::gru", "aten::ctc_loss", "aten::hardtanh"})
        EXPECT_NE(find_op_kind(op_kind_of(op)), nullptr) << op;
}

}  // namespace
}  // namespace kbench
