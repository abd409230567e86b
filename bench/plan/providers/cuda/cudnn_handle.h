// cuDNN's handle, tensors and errors, for the calls that take no graph.
#pragma once

#include <cudnn.h>
#include <fmt/format.h>

#include <cstdint>
#include <memory>

#include "kbench/error.h"
#include "kbench/precision.h"

namespace kbench::cudnn {

using Handle = std::shared_ptr<cudnnContext>;

inline void check(cudnnStatus_t status, const char* call) {
    if (status != CUDNN_STATUS_SUCCESS)
        throw DeviceError(fmt::format("{}: {} ({})", call, cudnnGetErrorString(status), static_cast<int>(status)));
}

inline Handle make_handle() {
    cudnnHandle_t handle = nullptr;
    check(cudnnCreate(&handle), "cudnnCreate");
    return {handle, [](cudnnHandle_t h) { cudnnDestroy(h); }};
}

inline cudnnDataType_t tensor_type(Precision precision) {
    switch (storage_type(precision)) {
        case DataType::fp16: return CUDNN_DATA_HALF;
        case DataType::bf16: return CUDNN_DATA_BFLOAT16;
        case DataType::fp64: return CUDNN_DATA_DOUBLE;
        default: return CUDNN_DATA_FLOAT;
    }
}

/// Frees itself.
template <class Pointer, cudnnStatus_t (*create)(Pointer*), cudnnStatus_t (*destroy)(Pointer)>
class Descriptor {
  public:
    Descriptor() { check(create(&raw_), "a descriptor of cuDNN"); }
    ~Descriptor() { destroy(raw_); }
    Descriptor(const Descriptor&) = delete;
    Descriptor& operator=(const Descriptor&) = delete;
    operator Pointer() const { return raw_; }

  private:
    Pointer raw_ = nullptr;
};
using TensorDescriptor = Descriptor<cudnnTensorDescriptor_t, cudnnCreateTensorDescriptor, cudnnDestroyTensorDescriptor>;

using Tensor = std::shared_ptr<cudnnTensorStruct>;

/// For the calls that take no graph: NCHW, packed.
inline Tensor make_tensor(Precision precision, std::int64_t n, std::int64_t c, std::int64_t h, std::int64_t w) {
    cudnnTensorDescriptor_t raw = nullptr;
    check(cudnnCreateTensorDescriptor(&raw), "cudnnCreateTensorDescriptor");
    Tensor tensor(raw, [](cudnnTensorDescriptor_t d) { cudnnDestroyTensorDescriptor(d); });
    check(cudnnSetTensor4dDescriptor(raw, CUDNN_TENSOR_NCHW, tensor_type(precision), static_cast<int>(n),
                                     static_cast<int>(c), static_cast<int>(h), static_cast<int>(w)),
          "cudnnSetTensor4dDescriptor");
    return tensor;
}

/// A factor that cuDNN reads in double where tensors are, else in float.
class Factor {
  public:
    Factor(Precision precision, double value)
        : wide_(value), narrow_(static_cast<float>(value)), is_wide_(precision == Precision::fp64) {}
    const void* get() const { return is_wide_ ? static_cast<const void*>(&wide_) : &narrow_; }

  private:
    double wide_;
    float narrow_;
    bool is_wide_;
};

}  // namespace kbench::cudnn
