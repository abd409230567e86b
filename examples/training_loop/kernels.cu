#include "kernels.h"

namespace {

constexpr int tile = 16, block = 256;

dim3 blocks_for(int count) { return dim3((count + block - 1) / block); }

// One element of c a thread; tiles of both matrices go through shared memory.
template <bool a_transposed, bool b_transposed>
__global__ void product_kernel(const float* a, const float* b, float* c, int m, int n, int k) {
    __shared__ float a_tile[tile][tile + 1], b_tile[tile][tile + 1];
    const int x = threadIdx.x, y = threadIdx.y, row = blockIdx.y * tile + y, column = blockIdx.x * tile + x;
    float sum = 0;
    for (int from = 0; from < k; from += tile) {
        const bool has_a = row < m && from + x < k, has_b = from + y < k && column < n;
        a_tile[y][x] = !has_a ? 0 : a_transposed ? a[(from + x) * m + row] : a[row * k + from + x];
        b_tile[y][x] = !has_b ? 0 : b_transposed ? b[column * k + from + y] : b[(from + y) * n + column];
        __syncthreads();
        for (int i = 0; i < tile; ++i) sum += a_tile[y][i] * b_tile[i][x];
        __syncthreads();
    }
    if (row < m && column < n) c[row * n + column] = sum;
}

template <bool a_transposed, bool b_transposed>
void launch_product(const float* a, const float* b, float* c, int m, int n, int k, cudaStream_t stream) {
    const dim3 grid((n + tile - 1) / tile, (m + tile - 1) / tile), threads(tile, tile);
    product_kernel<a_transposed, b_transposed><<<grid, threads, 0, stream>>>(a, b, c, m, n, k);
}

__global__ void relu_kernel(float* x, int count) {
    const int i = blockIdx.x * block + threadIdx.x;
    if (i < count) x[i] = fmaxf(x[i], 0);
}

__global__ void relu_backward_kernel(float* gradient, const float* output, int count) {
    const int i = blockIdx.x * block + threadIdx.x;
    if (i < count && output[i] <= 0) gradient[i] = 0;
}

__global__ void squared_error_kernel(float* gradient, float* loss, const float* output, const float* target,
                                     int count) {
    const int i = blockIdx.x * block + threadIdx.x;
    if (i >= count) return;
    const float difference = output[i] - target[i];
    gradient[i] = 2 * difference / count;
    atomicAdd(loss, difference * difference / count);
}

__global__ void add_kernel(float* x, const float* y, float factor, int count) {
    const int i = blockIdx.x * block + threadIdx.x;
    if (i < count) x[i] += factor * y[i];
}

}  // namespace

void product(const float* a, const float* b, float* c, int m, int n, int k, cudaStream_t stream) {
    launch_product<false, false>(a, b, c, m, n, k, stream);
}

void product_of_transposed(const float* a, const float* b, float* c, int m, int n, int k, cudaStream_t stream) {
    launch_product<true, false>(a, b, c, m, n, k, stream);
}

void product_by_transposed(const float* a, const float* b, float* c, int m, int n, int k, cudaStream_t stream) {
    launch_product<false, true>(a, b, c, m, n, k, stream);
}

void relu(float* x, int count, cudaStream_t stream) { relu_kernel<<<blocks_for(count), block, 0, stream>>>(x, count); }

void relu_backward(float* gradient, const float* output, int count, cudaStream_t stream) {
    relu_backward_kernel<<<blocks_for(count), block, 0, stream>>>(gradient, output, count);
}

void squared_error(float* gradient, float* loss, const float* output, const float* target, int count,
                   cudaStream_t stream) {
    cudaMemsetAsync(loss, 0, sizeof *loss, stream);
    squared_error_kernel<<<blocks_for(count), block, 0, stream>>>(gradient, loss, output, target, count);
}

void add(float* x, const float* y, float factor, int count, cudaStream_t stream) {
    add_kernel<<<blocks_for(count), block, 0, stream>>>(x, y, factor, count);
}
