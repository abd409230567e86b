// cuBLAS and CUPTI for the program `kbench`: opened when it starts, where they are found. Without them it starts all
// the same and computes on the CPU, so that one program is for every machine. Whoever links kbench's libraries links
// both. x86-64: elsewhere the program links them, too.
#include <dlfcn.h>
#include <fmt/format.h>
#include <glob.h>

#include <cstdlib>
#include <string>
#include <vector>

#include "kbench/error.h"

namespace {

enum Library { cublas, cublas_lt, cupti };

std::string file_name(Library library) {
    constexpr const char* names[] = {"cublas", "cublasLt", "cupti"};
    return fmt::format("lib{}.so.{}", names[library], KBENCH_CUDA_MAJOR);
}

/// In place of every function that was not found.
template <Library library>
[[noreturn]] void missing() {
    throw kbench::DeviceError(fmt::format(
        "no {0} with all that kbench calls was found in LD_LIBRARY_PATH, CUDA_HOME, the Python environment's nvidia/cu{1} or /usr/local/cuda: install CUDA {1} or its wheels from PyPI, or use --backend cpu",
        file_name(library), KBENCH_CUDA_MAJOR));
}

/// What kbench calls, by library. The program is linked to a library again when a function of it is missing here.
#define KBENCH_CUDA_FUNCTIONS(F)                           \
    F(cublas, cublasCreate_v2)                             \
    F(cublas, cublasDestroy_v2)                            \
    F(cublas, cublasGemmEx_64)                             \
    F(cublas, cublasGemmStridedBatchedEx_64)               \
    F(cublas, cublasGetStatusName)                         \
    F(cublas, cublasGetStatusString)                       \
    F(cublas, cublasSetMathMode)                           \
    F(cublas, cublasSetStream_v2)                          \
    F(cublas, cublasSetWorkspace_v2)                       \
    F(cublas_lt, cublasLtCreate)                           \
    F(cublas_lt, cublasLtDestroy)                          \
    F(cublas_lt, cublasLtGetVersion)                       \
    F(cublas_lt, cublasLtMatmul)                           \
    F(cublas_lt, cublasLtMatmulAlgoCheck)                  \
    F(cublas_lt, cublasLtMatmulAlgoConfigGetAttribute)     \
    F(cublas_lt, cublasLtMatmulAlgoGetHeuristic)           \
    F(cublas_lt, cublasLtMatmulDescCreate)                 \
    F(cublas_lt, cublasLtMatmulDescDestroy)                \
    F(cublas_lt, cublasLtMatmulDescSetAttribute)           \
    F(cublas_lt, cublasLtMatmulPreferenceCreate)           \
    F(cublas_lt, cublasLtMatmulPreferenceDestroy)          \
    F(cublas_lt, cublasLtMatmulPreferenceSetAttribute)     \
    F(cublas_lt, cublasLtMatrixLayoutCreate)               \
    F(cublas_lt, cublasLtMatrixLayoutDestroy)              \
    F(cublas_lt, cublasLtMatrixLayoutSetAttribute)         \
    F(cupti, cuptiActivityDisable)                         \
    F(cupti, cuptiActivityEnable)                          \
    F(cupti, cuptiActivityFlushAll)                        \
    F(cupti, cuptiActivityGetNextRecord)                   \
    F(cupti, cuptiActivityGetNumDroppedRecords)            \
    F(cupti, cuptiActivityRegisterCallbacks)               \
    F(cupti, cuptiDeviceGetChipName)                       \
    F(cupti, cuptiFinalize)                                \
    F(cupti, cuptiGetErrorMessage)                         \
    F(cupti, cuptiGetResultString)                         \
    F(cupti, cuptiPCSamplingDisable)                       \
    F(cupti, cuptiPCSamplingEnable)                        \
    F(cupti, cuptiPCSamplingGetData)                       \
    F(cupti, cuptiPCSamplingGetNumStallReasons)            \
    F(cupti, cuptiPCSamplingGetStallReasons)               \
    F(cupti, cuptiPCSamplingSetConfigurationAttribute)     \
    F(cupti, cuptiPCSamplingStart)                         \
    F(cupti, cuptiPCSamplingStop)                          \
    F(cupti, cuptiProfilerGetCounterAvailability)          \
    F(cupti, cuptiProfilerHostConfigAddMetrics)            \
    F(cupti, cuptiProfilerHostDeinitialize)                \
    F(cupti, cuptiProfilerHostEvaluateToGpuValues)         \
    F(cupti, cuptiProfilerHostGetBaseMetrics)              \
    F(cupti, cuptiProfilerHostGetConfigImage)              \
    F(cupti, cuptiProfilerHostGetConfigImageSize)          \
    F(cupti, cuptiProfilerHostGetMetricProperties)         \
    F(cupti, cuptiProfilerHostGetNumOfPasses)              \
    F(cupti, cuptiProfilerHostGetSubMetrics)               \
    F(cupti, cuptiProfilerHostGetSupportedChips)           \
    F(cupti, cuptiProfilerHostInitialize)                  \
    F(cupti, cuptiProfilerInitialize)                      \
    F(cupti, cuptiRangeProfilerCounterDataGetRangeInfo)    \
    F(cupti, cuptiRangeProfilerCounterDataImageInitialize) \
    F(cupti, cuptiRangeProfilerDecodeData)                 \
    F(cupti, cuptiRangeProfilerDisable)                    \
    F(cupti, cuptiRangeProfilerEnable)                     \
    F(cupti, cuptiRangeProfilerGetCounterDataInfo)         \
    F(cupti, cuptiRangeProfilerGetCounterDataSize)         \
    F(cupti, cuptiRangeProfilerPopRange)                   \
    F(cupti, cuptiRangeProfilerPushRange)                  \
    F(cupti, cuptiRangeProfilerSetConfig)                  \
    F(cupti, cuptiRangeProfilerStart)                      \
    F(cupti, cuptiRangeProfilerStop)

/// A function under its own name jumps to where its address points, with arguments and stack as they are.
#define KBENCH_FORWARD(library, name)                                                                            \
    __attribute__((used)) void* address_of_##name asm("address_of_" #name) =                                     \
        reinterpret_cast<void*>(&missing<library>);                                                              \
    asm(".pushsection .text\n.globl " #name "\n.type " #name ", @function\n" #name ":\n\tjmp *address_of_" #name \
        "(%rip)\n.popsection");
KBENCH_CUDA_FUNCTIONS(KBENCH_FORWARD)

/// Folders in which the loader does not look by itself.
std::vector<std::string> folders() {
    std::vector<std::string> patterns;
    const auto below = [&](const char* variable, const std::string& folder) {
        if (const char* value = std::getenv(variable); value != nullptr && value[0] == '/')
            patterns.push_back(value + folder);
    };
    // Wheels of CUDA 13 share a folder; those of CUDA 12 have one a library.
    const std::string wheels =
        fmt::format("/lib/python3*/site-packages/nvidia/{{cu{},cublas,cuda_cupti}}/lib", KBENCH_CUDA_MAJOR);
    for (const char* toolkit : {"CUDA_HOME", "CUDA_PATH"})
        for (const char* folder : {"/lib64", "/extras/CUPTI/lib64"}) below(toolkit, folder);
    below("VIRTUAL_ENV", wheels);
    below("CONDA_PREFIX", "/lib");
    below("CONDA_PREFIX", wheels);
    below("HOME", "/.local" + wheels);
    for (const char* folder : {"/lib64", "/extras/CUPTI/lib64"})
        patterns.push_back(std::string("/usr/local/cuda") + folder);
    std::vector<std::string> found;
    for (const std::string& pattern : patterns) {
        glob_t paths{};
        if (glob(pattern.c_str(), GLOB_BRACE, nullptr, &paths) == 0)
            found.insert(found.end(), paths.gl_pathv, paths.gl_pathv + paths.gl_pathc);
        globfree(&paths);
    }
    return found;
}

/// Global, so that what one library opens by name finds the others.
void* open(Library library) {
    void* handle = dlopen(file_name(library).c_str(), RTLD_LAZY | RTLD_GLOBAL);
    if (handle != nullptr) return handle;
    static const std::vector<std::string> elsewhere = folders();
    for (const std::string& folder : elsewhere) {
        handle = dlopen((folder + "/" + file_name(library)).c_str(), RTLD_LAZY | RTLD_GLOBAL);
        if (handle != nullptr) break;
    }
    return handle;
}

const bool opened = [] {
    void* const handles[] = {open(cublas), open(cublas_lt), open(cupti)};
#define KBENCH_FIND(library, name)                                                                    \
    if (void* const address = handles[library] != nullptr ? dlsym(handles[library], #name) : nullptr) \
        address_of_##name = address;
    KBENCH_CUDA_FUNCTIONS(KBENCH_FIND)
    return true;
}();

}  // namespace
