// cuDNN's functions under their own names, each passing its call on to the library that was loaded: so the headers of
// cudnn-frontend, which call them, need no library when kbench is linked or started.
#include "bench/plan/providers/cuda/cudnn_library.h"

#include <cudnn.h>
#include <dlfcn.h>
#include <fmt/format.h>

namespace {

/// Those that the provider and the frontend's headers call: type, name, parameters, arguments. One that is missing
/// here fails kbench's link.
#define KBENCH_CUDNN_FUNCTIONS(F)                                                                                     \
    F(std::size_t, cudnnGetVersion, (), ())                                                                           \
    F(const char*, cudnnGetErrorString, (cudnnStatus_t status), (status))                                             \
    F(void, cudnnGetLastErrorString, (char* text, std::size_t size), (text, size))                                    \
    F(cudnnStatus_t, cudnnCreate, (cudnnHandle_t * handle), (handle))                                                 \
    F(cudnnStatus_t, cudnnDestroy, (cudnnHandle_t handle), (handle))                                                  \
    F(cudnnStatus_t, cudnnGetStream, (cudnnHandle_t handle, cudaStream_t * stream), (handle, stream))                 \
    F(cudnnStatus_t, cudnnSetStream, (cudnnHandle_t handle, cudaStream_t stream), (handle, stream))                   \
    F(cudnnStatus_t, cudnnCreateTensorDescriptor, (cudnnTensorDescriptor_t * tensor), (tensor))                       \
    F(cudnnStatus_t, cudnnDestroyTensorDescriptor, (cudnnTensorDescriptor_t tensor), (tensor))                        \
    F(cudnnStatus_t, cudnnSetTensor4dDescriptor,                                                                      \
      (cudnnTensorDescriptor_t tensor, cudnnTensorFormat_t format, cudnnDataType_t type, int n, int c, int h, int w), \
      (tensor, format, type, n, c, h, w))                                                                             \
    F(cudnnStatus_t, cudnnSoftmaxForward,                                                                             \
      (cudnnHandle_t handle, cudnnSoftmaxAlgorithm_t algorithm, cudnnSoftmaxMode_t mode, const void* alpha,           \
       const cudnnTensorDescriptor_t x_tensor, const void* x, const void* beta,                                       \
       const cudnnTensorDescriptor_t y_tensor, void* y),                                                              \
      (handle, algorithm, mode, alpha, x_tensor, x, beta, y_tensor, y))                                               \
    F(cudnnStatus_t, cudnnBackendCreateDescriptor,                                                                    \
      (cudnnBackendDescriptorType_t type, cudnnBackendDescriptor_t * descriptor), (type, descriptor))                 \
    F(cudnnStatus_t, cudnnBackendDestroyDescriptor, (cudnnBackendDescriptor_t descriptor), (descriptor))              \
    F(cudnnStatus_t, cudnnBackendFinalize, (cudnnBackendDescriptor_t descriptor), (descriptor))                       \
    F(cudnnStatus_t, cudnnBackendSetAttribute,                                                                        \
      (cudnnBackendDescriptor_t descriptor, cudnnBackendAttributeName_t name, cudnnBackendAttributeType_t type,       \
       std::int64_t count, const void* elements),                                                                     \
      (descriptor, name, type, count, elements))                                                                      \
    F(cudnnStatus_t, cudnnBackendGetAttribute,                                                                        \
      (cudnnBackendDescriptor_t const descriptor, cudnnBackendAttributeName_t name, cudnnBackendAttributeType_t type, \
       std::int64_t room, std::int64_t* count, void* elements),                                                       \
      (descriptor, name, type, room, count, elements))                                                                \
    F(cudnnStatus_t, cudnnBackendExecute,                                                                             \
      (cudnnHandle_t handle, cudnnBackendDescriptor_t plan, cudnnBackendDescriptor_t memory), (handle, plan, memory))

class Library {
  public:
    Library() : handle_(dlopen("libcudnn.so.9", RTLD_NOW | RTLD_LOCAL)) {
        if (handle_ == nullptr) handle_ = dlopen(KBENCH_CUDNN_LIBRARY, RTLD_NOW | RTLD_LOCAL);
        if (handle_ == nullptr) {
            unavailable = fmt::format("cuDNN cannot be loaded: {}", dlerror());
            return;
        }
#define KBENCH_FIND(type, name, parameters, arguments) find(#name, name);
        KBENCH_CUDNN_FUNCTIONS(KBENCH_FIND)
    }
    std::string unavailable;  ///< why; the functions may be called when it is empty
#define KBENCH_POINTER(type, name, parameters, arguments) decltype(&::name) name = nullptr;
    KBENCH_CUDNN_FUNCTIONS(KBENCH_POINTER)

  private:
    template <class Function>
    void find(const char* name, Function*& function) {
        function = reinterpret_cast<Function*>(dlsym(handle_, name));
        if (function == nullptr) unavailable = fmt::format("the cuDNN that was loaded has no {}", name);
    }
    void* handle_;  ///< until the program ends: handles of cuDNN may outlive whoever asked first
};

const Library& library() {
    static const Library loaded;
    return loaded;
}

}  // namespace

// Hidden, lest a program that exports its symbols gives cuDNN these for its own.
#define KBENCH_FORWARD(type, name, parameters, arguments) \
    extern "C" [[gnu::visibility("hidden")]] type CUDNNWINAPI name parameters { return library().name arguments; }
KBENCH_CUDNN_FUNCTIONS(KBENCH_FORWARD)

namespace kbench {

const std::string& cudnn_unavailable() { return library().unavailable; }

std::string cudnn_version() {
    if (!cudnn_unavailable().empty()) return "";
    const std::size_t version = cudnnGetVersion();
    return fmt::format("{}.{}.{}", version / 10000, version / 100 % 100, version % 100);
}

}  // namespace kbench
