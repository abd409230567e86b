// Short names of the kinds of kernels that a run meets.
#include "analysis/machine/kernel_name.h"

#include <gtest/gtest.h>

namespace kbench {
namespace {

TEST(Demangled, IsTheNameItselfWhereItIsNotMangled) {
    EXPECT_EQ(demangled("_Z5scalePf"), "scale(float*)");
    for (const char* plain : {"sm90_xmma_gemm", "b", "_Znonsense", ""}) EXPECT_EQ(demangled(plain), plain);
}

TEST(ShortKernelName, CutsReturnTypeNamespacesAndParameters) {
    EXPECT_EQ(short_kernel_name("void kbench::cuda::(anonymous namespace)::layer_norm<__half, 8>(__half const*, int)"),
              "layer_norm<__half, 8>");
    EXPECT_EQ(short_kernel_name("kbench::cuda::scale(float*)"), "scale");
    EXPECT_EQ(short_kernel_name("void kbench::cuda::attention::<unnamed>::attention_fma<0>(Problem<float>)"),
              "attention_fma<0>");
}

TEST(ShortKernelName, KeepsWhatTellsLibraryKernelsApart) {
    EXPECT_EQ(short_kernel_name("sm90_xmma_gemm_f16f16_f16f32_f32_tn_n_tilesize128x128x64_cublas"),
              "sm90_xmma_gemm_f16f16_f16f32_f32_tn_n_tilesize128x128x64_cublas");
    EXPECT_EQ(
        short_kernel_name(
            "void cutlass::Kernel2<cutlass_80_simt_sgemm_128x256_8x4_nn_align1>(cutlass_80_simt_sgemm_128x256_8x4_nn_align1::Params)"),
        "Kernel2<cutlass_80_simt_sgemm_128x256_8x4_nn_align1>");
    EXPECT_EQ(
        short_kernel_name("void cublasLt::splitKreduce_kernel<32, 16, int, a::B>(cublasLt::cublasSplitKParams<a>)"),
        "splitKreduce_kernel<32, 16, int, B>");
}

TEST(ShortKernelName, GivesUpOnLongArguments) {
    const std::string arguments(200, 'x');
    EXPECT_EQ(short_kernel_name("void cutlass::device_kernel<a::" + arguments + ">(int)"), "device_kernel<...>");
}

TEST(ShortKernelName, LeavesWhatItDoesNotUnderstand) {
    EXPECT_EQ(short_kernel_name(""), "");
    EXPECT_EQ(short_kernel_name("(weird)"), "(weird)");
}

}  // namespace
}  // namespace kbench
