// The kernels of a multilayer perceptron. Matrices are row-major fp32, and all work goes to the stream that is given.
#pragma once

#include <cuda_runtime.h>

// c[m, n] = a[m, k] b[k, n]
void product(const float* a, const float* b, float* c, int m, int n, int k, cudaStream_t stream);
// c[m, n] = a[k, m]^T b[k, n]
void product_of_transposed(const float* a, const float* b, float* c, int m, int n, int k, cudaStream_t stream);
// c[m, n] = a[m, k] b[n, k]^T
void product_by_transposed(const float* a, const float* b, float* c, int m, int n, int k, cudaStream_t stream);

// x = max(x, 0)
void relu(float* x, int count, cudaStream_t stream);
// gradient = 0 where the output of relu was 0
void relu_backward(float* gradient, const float* output, int count, cudaStream_t stream);
// gradient = 2 (output - target) / count; *loss = mean (output - target)^2
void squared_error(float* gradient, float* loss, const float* output, const float* target, int count,
                   cudaStream_t stream);
// x += factor y
void add(float* x, const float* y, float factor, int count, cudaStream_t stream);
