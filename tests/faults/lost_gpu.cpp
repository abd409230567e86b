// A GPU that is lost on request: from the N-th call on all of these calls of the CUDA runtime give an error, as they do
// when the device disappears. KBENCH_LOST_GPU="719 from call 200". The linker puts them between kbench and the runtime
// (--wrap, tests/CMakeLists.txt): what is not built for this test has none of it.
#include <cuda_runtime.h>

#include <atomic>
#include <cstdlib>
#include <sstream>
#include <string>

namespace {

struct Loss {
    int error = cudaSuccess;
    long call = 0;
};

Loss parse() {
    const char* text = std::getenv("KBENCH_LOST_GPU");
    if (text == nullptr) return {};
    std::istringstream words(text);
    std::string from, call;
    Loss loss;
    words >> loss.error >> from >> call >> loss.call;
    return loss;
}

cudaError_t next() {
    static const Loss loss = parse();
    static std::atomic<long> calls = 0;
    return loss.error != cudaSuccess && ++calls >= loss.call ? static_cast<cudaError_t>(loss.error) : cudaSuccess;
}

}  // namespace

#define KBENCH_WRAPPED(name, parameters, arguments)                    \
    extern "C" cudaError_t __real_##name parameters;                   \
    extern "C" cudaError_t __wrap_##name parameters {                  \
        const cudaError_t error = next();                              \
        return error != cudaSuccess ? error : __real_##name arguments; \
    }

KBENCH_WRAPPED(cudaMalloc, (void** memory, size_t bytes), (memory, bytes))
KBENCH_WRAPPED(cudaFree, (void* memory), (memory))
KBENCH_WRAPPED(cudaMemGetInfo, (size_t * free, size_t* total), (free, total))
KBENCH_WRAPPED(cudaMemcpyAsync, (void* to, const void* from, size_t bytes, cudaMemcpyKind kind, cudaStream_t stream),
               (to, from, bytes, kind, stream))
KBENCH_WRAPPED(cudaMemsetAsync, (void* memory, int byte, size_t bytes, cudaStream_t stream),
               (memory, byte, bytes, stream))
KBENCH_WRAPPED(cudaStreamSynchronize, (cudaStream_t stream), (stream))
KBENCH_WRAPPED(cudaDeviceSynchronize, (), ())
KBENCH_WRAPPED(cudaGraphLaunch, (cudaGraphExec_t graph, cudaStream_t stream), (graph, stream))
KBENCH_WRAPPED(cudaEventRecordWithFlags, (cudaEvent_t event, cudaStream_t stream, unsigned flags),
               (event, stream, flags))
KBENCH_WRAPPED(cudaGetLastError, (), ())
