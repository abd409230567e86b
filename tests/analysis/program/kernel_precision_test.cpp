// Names of kernels as the libraries have them.
#include "analysis/program/kernel_precision.h"

#include <gtest/gtest.h>

namespace kbench {
namespace {

TEST(NamedPrecision, IsThatOfWhatIsMultiplied) {
    const std::pair<const char*, Precision> names[] = {
        {"ampere_h16816gemm_128x128_ldg8_stages_64x3_nn", Precision::fp16},
        {"ampere_fp16_s16816gemm_fp16_128x128_ldg8_f2f_stages_32x5_nn", Precision::fp16},
        {"ampere_bf16_s16816gemm_bf16_128x64_ldg8_f2f_stages_64x4_tn", Precision::bf16},
        {"ampere_sgemm_128x64_tn", Precision::fp32},
        {"volta_dgemm_64x64_nn", Precision::fp64},
        {"sm90_xmma_gemm_f16f16_f16f32_f32_tn_n_tilesize128x128x64_cublas", Precision::fp16},
        {"sm90_xmma_gemm_bf16bf16_bf16f32_f32_nn_n_tilesize128x128x64_cublas", Precision::bf16},
        {"sm90_xmma_gemm_f32f32_tf32f32_f32_tn_n_tilesize64x64x32_cublas", Precision::tf32},
        {"sm80_xmma_gemm_f32f32_f32f32_f32_tn_n_tilesize32x32x8_cublas", Precision::fp32},
        {"nvjet_hsh_128x256_64x4_1x2_h_bz_coopA_TNT", Precision::fp16},
        {"nvjet_tst_192x192_64x4_2x1_v_bz_coopB_TNN", Precision::bf16},
        {"void cutlass::Kernel2<cutlass_80_tensorop_s1688gemm_128x128_16x5_tn_align4>(Params)", Precision::tf32},
        {"void cutlass::Kernel2<cutlass_80_tensorop_f16_s16816gemm_relu_f16_256x128_32x3_nn_align8>(Params)",
         Precision::fp16},
        {"turing_fp16_s1688gemm_fp16_128x128_ldg8_f2f_nn", Precision::fp16},
        {"void cutlass::Kernel2<cutlass_80_simt_sgemm_128x32_8x5_nn_align1>(Params)", Precision::fp32},
        {"void pytorch_flash::flash_fwd_kernel<Flash_fwd_kernel_traits<64, 128, 128, 4, false, false, "
         "cutlass::bfloat16_t, Flash_kernel_traits<64, 128, 128, 4, cutlass::bfloat16_t> >, false, true>(Params)",
         Precision::bf16},
        {"void gemv2T_kernel_val<int, int, __half, __half, __half, float, 128, 16>(Args, float, float)",
         Precision::fp16},
        {"void at::native::vectorized_elementwise_kernel<4, at::native::CUDAFunctor_add<c10::Half>, "
         "std::array<char*, 3ul> >(int)",
         Precision::fp16},
        {"void at::native::(anonymous namespace)::vectorized_layer_norm_kernel<float, float>(int, float)",
         Precision::fp32},
        {"void reduce<double, float>(double)", Precision::fp64},
        {"void pow<float, double>(double)", Precision::fp32},
    };
    for (const auto& [name, precision] : names) EXPECT_EQ(named_precision(name), precision) << name;
}

TEST(NamedPrecision, IsUnknownWhereNothingTells) {
    for (const char* name :
         {"triton_poi_fused_add_0", "void fill<long>(long*)", "shift16", "", "halfway(int)",
          "cudnn_generated_fort_native_sdpa_sm90_flash_fprop_wgmma_f16_knob_7_64x128x64_4x1x1_cga1x1x1_kernel0_0"})
        EXPECT_EQ(named_precision(name), std::nullopt) << name;
}

TEST(FrameworkPrecision, IsATypesOwn) {
    EXPECT_EQ(framework_precision("float16"), Precision::fp16);
    EXPECT_EQ(framework_precision("torch.bfloat16"), Precision::bf16);
    EXPECT_EQ(framework_precision("float32"), Precision::fp32);
    EXPECT_EQ(framework_precision("float64"), Precision::fp64);
    EXPECT_EQ(framework_precision("int64"), std::nullopt);
    EXPECT_EQ(framework_precision(""), std::nullopt);
}

TEST(NamedCausal, IsAnArgumentOfTheKernels) {
    const auto forward = [](const std::string& arguments) {
        return "void pytorch_flash::flash_fwd_kernel<Traits<64, 128, false, true, cutlass::half_t>, " + arguments +
               ">(pytorch_flash::Flash_fwd_params)";
    };
    EXPECT_EQ(named_causal(forward("false, true, false, false")), true);
    EXPECT_EQ(named_causal(forward("true, false, true, true")), false);
    EXPECT_EQ(named_causal("void flash_fwd_splitkv_kernel<Traits<1>, true, false>(Params)"), true);
    EXPECT_EQ(named_causal("void flash_bwd_dq_dk_dv_loop_seqk_parallel_kernel<Traits<1>, false, true, false>(P)"),
              true);
    EXPECT_EQ(named_causal("fmha_cutlassF_f16_aligned_64x64_rf_sm80(Params)"), std::nullopt);
    EXPECT_EQ(named_causal("flash_fwd_kernel"), std::nullopt);
    EXPECT_EQ(named_causal("flash_fwd_kernel<"), std::nullopt);
}

}  // namespace
}  // namespace kbench
