// cuDNN's functions under their own names, each passing its call on to the library that was loaded: so the headers of
// cudnn-frontend, which call them, need no library when kbench is linked or started.
#include "bench/plan/providers/cuda/cudnn_library.h"

#include <cudnn.h>
#include <dlfcn.h>
#include <fmt/format.h>

namespace {

/// Those that the provider, the peer and the frontend's headers call: type, name, parameters, arguments. One that is
/// missing here fails kbench's link.
#define KBENCH_CUDNN_FUNCTIONS(F)                                                                                      \
    F(std::size_t, cudnnGetVersion, (), ())                                                                            \
    F(const char*, cudnnGetErrorString, (cudnnStatus_t status), (status))                                              \
    F(void, cudnnGetLastErrorString, (char* text, std::size_t size), (text, size))                                     \
    F(cudnnStatus_t, cudnnCreate, (cudnnHandle_t * handle), (handle))                                                  \
    F(cudnnStatus_t, cudnnDestroy, (cudnnHandle_t handle), (handle))                                                   \
    F(cudnnStatus_t, cudnnGetStream, (cudnnHandle_t handle, cudaStream_t * stream), (handle, stream))                  \
    F(cudnnStatus_t, cudnnSetStream, (cudnnHandle_t handle, cudaStream_t stream), (handle, stream))                    \
    F(cudnnStatus_t, cudnnCreateTensorDescriptor, (cudnnTensorDescriptor_t * tensor), (tensor))                        \
    F(cudnnStatus_t, cudnnDestroyTensorDescriptor, (cudnnTensorDescriptor_t tensor), (tensor))                         \
    F(cudnnStatus_t, cudnnSetTensor4dDescriptor,                                                                       \
      (cudnnTensorDescriptor_t tensor, cudnnTensorFormat_t format, cudnnDataType_t type, int n, int c, int h, int w),  \
      (tensor, format, type, n, c, h, w))                                                                              \
    F(cudnnStatus_t, cudnnAddTensor,                                                                                   \
      (cudnnHandle_t handle, const void* alpha, const cudnnTensorDescriptor_t a_tensor, const void* a,                 \
       const void* beta, const cudnnTensorDescriptor_t c_tensor, void* c),                                             \
      (handle, alpha, a_tensor, a, beta, c_tensor, c))                                                                 \
    F(cudnnStatus_t, cudnnConvolutionBackwardBias,                                                                     \
      (cudnnHandle_t handle, const void* alpha, const cudnnTensorDescriptor_t dy_tensor, const void* dy,               \
       const void* beta, const cudnnTensorDescriptor_t db_tensor, void* db),                                           \
      (handle, alpha, dy_tensor, dy, beta, db_tensor, db))                                                             \
    F(cudnnStatus_t, cudnnSetTensorNdDescriptor,                                                                       \
      (cudnnTensorDescriptor_t tensor, cudnnDataType_t type, int rank, const int* dimensions, const int* strides),     \
      (tensor, type, rank, dimensions, strides))                                                                       \
    F(cudnnStatus_t, cudnnGetTensorNdDescriptor,                                                                       \
      (const cudnnTensorDescriptor_t tensor, int room, cudnnDataType_t* type, int* rank, int* dimensions,              \
       int* strides),                                                                                                  \
      (tensor, room, type, rank, dimensions, strides))                                                                 \
    F(cudnnStatus_t, cudnnCreateDropoutDescriptor, (cudnnDropoutDescriptor_t * dropout), (dropout))                    \
    F(cudnnStatus_t, cudnnDestroyDropoutDescriptor, (cudnnDropoutDescriptor_t dropout), (dropout))                     \
    F(cudnnStatus_t, cudnnSetDropoutDescriptor,                                                                        \
      (cudnnDropoutDescriptor_t dropout, cudnnHandle_t handle, float share, void* states, std::size_t bytes,           \
       unsigned long long seed),                                                                                       \
      (dropout, handle, share, states, bytes, seed))                                                                   \
    F(cudnnStatus_t, cudnnCreateRNNDescriptor, (cudnnRNNDescriptor_t * rnn), (rnn))                                    \
    F(cudnnStatus_t, cudnnDestroyRNNDescriptor, (cudnnRNNDescriptor_t rnn), (rnn))                                     \
    F(cudnnStatus_t, cudnnSetRNNDescriptor_v8,                                                                         \
      (cudnnRNNDescriptor_t rnn, cudnnRNNAlgo_t algorithm, cudnnRNNMode_t cell, cudnnRNNBiasMode_t bias,               \
       cudnnDirectionMode_t directions, cudnnRNNInputMode_t input, cudnnDataType_t type, cudnnDataType_t computed,     \
       cudnnMathType_t math, std::int32_t inputs, std::int32_t hidden, std::int32_t projected, std::int32_t layers,    \
       cudnnDropoutDescriptor_t dropout, std::uint32_t flags),                                                         \
      (rnn, algorithm, cell, bias, directions, input, type, computed, math, inputs, hidden, projected, layers,         \
       dropout, flags))                                                                                                \
    F(cudnnStatus_t, cudnnBuildRNNDynamic, (cudnnHandle_t handle, cudnnRNNDescriptor_t rnn, int batch),                \
      (handle, rnn, batch))                                                                                            \
    F(cudnnStatus_t, cudnnCreateRNNDataDescriptor, (cudnnRNNDataDescriptor_t * data), (data))                          \
    F(cudnnStatus_t, cudnnDestroyRNNDataDescriptor, (cudnnRNNDataDescriptor_t data), (data))                           \
    F(cudnnStatus_t, cudnnSetRNNDataDescriptor,                                                                        \
      (cudnnRNNDataDescriptor_t data, cudnnDataType_t type, cudnnRNNDataLayout_t layout, int steps, int batch,         \
       int width, const int* lengths, void* padding),                                                                  \
      (data, type, layout, steps, batch, width, lengths, padding))                                                     \
    F(cudnnStatus_t, cudnnGetRNNWeightSpaceSize,                                                                       \
      (cudnnHandle_t handle, cudnnRNNDescriptor_t rnn, std::size_t * bytes), (handle, rnn, bytes))                     \
    F(cudnnStatus_t, cudnnGetRNNTempSpaceSizes,                                                                        \
      (cudnnHandle_t handle, cudnnRNNDescriptor_t rnn, cudnnForwardMode_t mode, cudnnRNNDataDescriptor_t x,            \
       std::size_t * workspace, std::size_t * reserve),                                                                \
      (handle, rnn, mode, x, workspace, reserve))                                                                      \
    F(cudnnStatus_t, cudnnGetRNNWeightParams,                                                                          \
      (cudnnHandle_t handle, cudnnRNNDescriptor_t rnn, std::int32_t layer, std::size_t bytes, const void* space,       \
       std::int32_t linear, cudnnTensorDescriptor_t of_matrix, void** matrix, cudnnTensorDescriptor_t of_bias,         \
       void** bias),                                                                                                   \
      (handle, rnn, layer, bytes, space, linear, of_matrix, matrix, of_bias, bias))                                    \
    F(cudnnStatus_t, cudnnRNNForward,                                                                                  \
      (cudnnHandle_t handle, cudnnRNNDescriptor_t rnn, cudnnForwardMode_t mode, const std::int32_t* lengths,           \
       cudnnRNNDataDescriptor_t of_x, const void* x, cudnnRNNDataDescriptor_t of_y, void* y,                           \
       cudnnTensorDescriptor_t of_h, const void* hx, void* hy, cudnnTensorDescriptor_t of_c, const void* cx, void* cy, \
       std::size_t weight_bytes, const void* weights, std::size_t workspace_bytes, void* workspace,                    \
       std::size_t reserve_bytes, void* reserve),                                                                      \
      (handle, rnn, mode, lengths, of_x, x, of_y, y, of_h, hx, hy, of_c, cx, cy, weight_bytes, weights,                \
       workspace_bytes, workspace, reserve_bytes, reserve))                                                            \
    F(cudnnStatus_t, cudnnRNNBackwardData_v8,                                                                          \
      (cudnnHandle_t handle, cudnnRNNDescriptor_t rnn, const std::int32_t* lengths, cudnnRNNDataDescriptor_t of_y,     \
       const void* y, const void* dy, cudnnRNNDataDescriptor_t of_x, void* dx, cudnnTensorDescriptor_t of_h,           \
       const void* hx, const void* dhy, void* dhx, cudnnTensorDescriptor_t of_c, const void* cx, const void* dcy,      \
       void* dcx, std::size_t weight_bytes, const void* weights, std::size_t workspace_bytes, void* workspace,         \
       std::size_t reserve_bytes, void* reserve),                                                                      \
      (handle, rnn, lengths, of_y, y, dy, of_x, dx, of_h, hx, dhy, dhx, of_c, cx, dcy, dcx, weight_bytes, weights,     \
       workspace_bytes, workspace, reserve_bytes, reserve))                                                            \
    F(cudnnStatus_t, cudnnRNNBackwardWeights_v8,                                                                       \
      (cudnnHandle_t handle, cudnnRNNDescriptor_t rnn, cudnnWgradMode_t mode, const std::int32_t* lengths,             \
       cudnnRNNDataDescriptor_t of_x, const void* x, cudnnTensorDescriptor_t of_h, const void* hx,                     \
       cudnnRNNDataDescriptor_t of_y, const void* y, std::size_t weight_bytes, void* dweights,                         \
       std::size_t workspace_bytes, void* workspace, std::size_t reserve_bytes, void* reserve),                        \
      (handle, rnn, mode, lengths, of_x, x, of_h, hx, of_y, y, weight_bytes, dweights, workspace_bytes, workspace,     \
       reserve_bytes, reserve))                                                                                        \
    F(cudnnStatus_t, cudnnBackendCreateDescriptor,                                                                     \
      (cudnnBackendDescriptorType_t type, cudnnBackendDescriptor_t * descriptor), (type, descriptor))                  \
    F(cudnnStatus_t, cudnnBackendDestroyDescriptor, (cudnnBackendDescriptor_t descriptor), (descriptor))               \
    F(cudnnStatus_t, cudnnBackendFinalize, (cudnnBackendDescriptor_t descriptor), (descriptor))                        \
    F(cudnnStatus_t, cudnnBackendSetAttribute,                                                                         \
      (cudnnBackendDescriptor_t descriptor, cudnnBackendAttributeName_t name, cudnnBackendAttributeType_t type,        \
       std::int64_t count, const void* elements),                                                                      \
      (descriptor, name, type, count, elements))                                                                       \
    F(cudnnStatus_t, cudnnBackendGetAttribute,                                                                         \
      (cudnnBackendDescriptor_t const descriptor, cudnnBackendAttributeName_t name, cudnnBackendAttributeType_t type,  \
       std::int64_t room, std::int64_t* count, void* elements),                                                        \
      (descriptor, name, type, room, count, elements))                                                                 \
    F(cudnnStatus_t, cudnnBackendExecute,                                                                              \
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
