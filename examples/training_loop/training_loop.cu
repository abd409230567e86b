// Trains a multilayer perceptron on one or several GPUs, and measures itself with kbench/profile.h.
//
//     training_loop [--steps N] [--gpus N] [--graph]
//
// All GPUs have the same weights and each a batch of its own; their gradients are averaged on the first. So twice the
// GPUs do twice the work of a step. With --graph, one GPU launches forward, backward and update as a captured graph.
//
// Exit codes: 0 the loss fell, and all GPUs ended with equal weights; 1 they did not, or CUDA failed; 2 bad usage;
// 3 there are fewer GPUs.
#include <cuda_runtime.h>
#include <kbench/profile.h>

#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <random>
#include <vector>

#include "kernels.h"

namespace {

constexpr int batch = 1024, inputs = 256, hidden = 1024, outputs = 16;
constexpr int weights = inputs * hidden + hidden * outputs;
constexpr int batches = 8;  // which are there at the begin, and used in turn
constexpr float learning_rate = 0.2F;

void check(cudaError_t error) {
    if (error == cudaSuccess) return;
    std::fprintf(stderr, "training_loop: %s\n", cudaGetErrorString(error));
    std::exit(1);
}

float* device_floats(int count) {
    float* data = nullptr;
    check(cudaMalloc(&data, sizeof(float) * count));
    return data;
}

/// Between these two GPUs data goes directly, not through the host's memory, where the machine can do so.
void connect(int from, int to) {
    int can = 0;
    check(cudaDeviceCanAccessPeer(&can, from, to));
    if (can == 0) return;
    check(cudaSetDevice(from));
    check(cudaDeviceEnablePeerAccess(to, 0));
}

void upload(float* to, const float* from, int count, cudaStream_t stream) {
    check(cudaMemcpyAsync(to, from, sizeof(float) * count, cudaMemcpyHostToDevice, stream));
}

/// Inputs and targets in memory that a GPU can copy from while it computes.
struct Batch {
    explicit Batch(unsigned seed) {
        check(cudaHostAlloc(&x, sizeof(float) * batch * inputs, cudaHostAllocPortable));
        check(cudaHostAlloc(&target, sizeof(float) * batch * outputs, cudaHostAllocPortable));
        std::mt19937 random(seed);
        std::normal_distribution<float> normal;
        for (int i = 0; i < batch * inputs; ++i) x[i] = normal(random);
        for (int row = 0; row < batch; ++row)
            for (int column = 0; column < outputs; ++column) {
                const float* values = x + row * inputs + column * (inputs / outputs);
                target[row * outputs + column] = std::sin(values[0] + values[1]);
            }
    }
    float *x = nullptr, *target = nullptr;
};

struct Gpu {
    explicit Gpu(int number) : device(number) {
        check(cudaSetDevice(device));
        check(cudaStreamCreateWithFlags(&compute, cudaStreamNonBlocking));
        check(cudaStreamCreateWithFlags(&copy, cudaStreamNonBlocking));
        check(cudaEventCreateWithFlags(&uploaded, cudaEventDisableTiming));
        check(cudaEventCreateWithFlags(&computed, cudaEventDisableTiming));
        check(cudaEventCreateWithFlags(&exchanged, cudaEventDisableTiming));
        std::mt19937 random(1);  // the same weights everywhere
        std::normal_distribution<float> normal;
        std::vector<float> first(weights);
        for (int i = 0; i < weights; ++i)
            first[i] = normal(random) / std::sqrt(float(i < inputs * hidden ? inputs : hidden));
        upload(w1, first.data(), weights, compute);
        check(cudaStreamSynchronize(compute));
    }

    /// The next batch comes over the copy stream when the last step has read the one before.
    void load(const Batch& next) {
        check(cudaStreamWaitEvent(copy, computed));
        {
            const kbench::Scope scope("upload", copy);
            upload(x, next.x, batch * inputs, copy);
            upload(target, next.target, batch * outputs, copy);
        }
        check(cudaEventRecord(uploaded, copy));
        check(cudaStreamWaitEvent(compute, uploaded));
    }

    void forward() {
        const kbench::Scope scope("forward", compute);
        product(x, w1, h, batch, hidden, inputs, compute);
        relu(h, batch * hidden, compute);
        product(h, w2, y, batch, outputs, hidden, compute);
        squared_error(y_gradient, loss, y, target, batch * outputs, compute);
    }

    void backward() {
        const kbench::Scope scope("backward", compute);
        product_of_transposed(h, y_gradient, gradient + inputs * hidden, hidden, outputs, batch, compute);
        product_by_transposed(y_gradient, w2, h_gradient, batch, hidden, outputs, compute);
        relu_backward(h_gradient, h, batch * hidden, compute);
        product_of_transposed(x, h_gradient, gradient, inputs, hidden, batch, compute);
    }

    void update(int gpus) {
        const kbench::Scope scope("update", compute);
        add(w1, gradient, -learning_rate / gpus, weights, compute);
    }

    int device;
    cudaStream_t compute = nullptr, copy = nullptr;
    cudaEvent_t uploaded = nullptr, computed = nullptr, exchanged = nullptr;
    float *x = device_floats(batch * inputs), *target = device_floats(batch * outputs);
    float *w1 = device_floats(weights), *w2 = w1 + inputs * hidden, *gradient = device_floats(weights);
    float *h = device_floats(batch * hidden), *h_gradient = device_floats(batch * hidden);
    float *y = device_floats(batch * outputs), *y_gradient = device_floats(batch * outputs), *loss = device_floats(1);
};

/// Adds up all gradients on the first GPU and sends the sum to the others. `of_another` lies on the first.
void exchange(std::vector<Gpu>& gpus, float* of_another) {
    Gpu& first = gpus.front();
    constexpr std::size_t bytes = sizeof(float) * weights;
    check(cudaSetDevice(first.device));
    const kbench::Scope scope("exchange", first.compute);
    for (std::size_t i = 1; i < gpus.size(); ++i) {
        check(cudaStreamWaitEvent(first.compute, gpus[i].computed));
        check(cudaMemcpyPeerAsync(of_another, first.device, gpus[i].gradient, gpus[i].device, bytes, first.compute));
        add(first.gradient, of_another, 1, weights, first.compute);
    }
    check(cudaEventRecord(first.exchanged, first.compute));
    for (std::size_t i = 1; i < gpus.size(); ++i) {
        Gpu& other = gpus[i];
        check(cudaSetDevice(other.device));
        const kbench::Scope its_scope("exchange", other.compute);
        check(cudaStreamWaitEvent(other.compute, first.exchanged));
        check(cudaMemcpyPeerAsync(other.gradient, other.device, first.gradient, first.device, bytes, other.compute));
        check(cudaEventRecord(other.exchanged, other.compute));
    }
    // The first writes its gradient again in the next step: not before all have read it.
    check(cudaSetDevice(first.device));
    for (std::size_t i = 1; i < gpus.size(); ++i) check(cudaStreamWaitEvent(first.compute, gpus[i].exchanged));
}

cudaGraphExec_t capture(Gpu& gpu) {
    cudaGraph_t graph = nullptr;
    cudaGraphExec_t executable = nullptr;
    check(cudaStreamBeginCapture(gpu.compute, cudaStreamCaptureModeThreadLocal));
    gpu.forward();
    gpu.backward();
    gpu.update(1);
    check(cudaStreamEndCapture(gpu.compute, &graph));
    check(cudaGraphInstantiate(&executable, graph, 0));
    return executable;
}

void step(std::vector<Gpu>& gpus, float* of_another, cudaGraphExec_t graph, const std::vector<Batch>& data,
          int number) {
    for (Gpu& gpu : gpus) {
        check(cudaSetDevice(gpu.device));
        kbench_iteration(gpu.compute);
        gpu.load(data[(number + gpu.device) % batches]);
        if (graph != nullptr) {
            check(cudaGraphLaunch(graph, gpu.compute));
        } else {
            gpu.forward();
            gpu.backward();
        }
        check(cudaEventRecord(gpu.computed, gpu.compute));
    }
    if (graph != nullptr) return;
    if (gpus.size() > 1) exchange(gpus, of_another);
    for (Gpu& gpu : gpus) {
        check(cudaSetDevice(gpu.device));
        gpu.update(static_cast<int>(gpus.size()));
    }
}

/// `count` floats, once the GPU has done all its work.
std::vector<float> download(const Gpu& gpu, const float* from, int count) {
    std::vector<float> values(count);
    check(cudaSetDevice(gpu.device));
    check(cudaDeviceSynchronize());
    check(cudaMemcpy(values.data(), from, sizeof(float) * count, cudaMemcpyDeviceToHost));
    return values;
}

/// On average over the GPUs' batches.
float mean_loss(const std::vector<Gpu>& gpus) {
    float sum = 0;
    for (const Gpu& gpu : gpus) sum += download(gpu, gpu.loss, 1).front();
    return sum / static_cast<float>(gpus.size());
}

/// To the bit: all began with the same weights and took the same steps.
bool have_equal_weights(const std::vector<Gpu>& gpus) {
    const std::vector<float> first = download(gpus.front(), gpus.front().w1, weights);
    bool are_equal = true;
    for (std::size_t i = 1; i < gpus.size(); ++i)
        are_equal = are_equal && download(gpus[i], gpus[i].w1, weights) == first;
    return are_equal;
}

}  // namespace

int main(int count, char** arguments) {
    int steps = 1000, gpu_count = 1;
    bool has_graph = false;
    for (int i = 1; i < count; ++i) {
        int* const number = std::strcmp(arguments[i], "--steps") == 0  ? &steps
                            : std::strcmp(arguments[i], "--gpus") == 0 ? &gpu_count
                                                                       : nullptr;
        if (std::strcmp(arguments[i], "--graph") == 0)
            has_graph = true;
        else if (number != nullptr && i + 1 < count)
            *number = std::atoi(arguments[++i]);
        else
            steps = 0;
    }
    if (steps < 1 || gpu_count < 1 || (has_graph && gpu_count > 1)) {
        std::fprintf(stderr, "usage: training_loop [--steps N] [--gpus N] [--graph], which is for one GPU\n");
        return 2;
    }

    int available = 0;
    if (cudaGetDeviceCount(&available) != cudaSuccess || available < gpu_count) {
        std::fprintf(stderr, "training_loop: --gpus %d: this machine has %d\n", gpu_count, available);
        return 3;
    }
    std::vector<Batch> data;
    for (unsigned seed = 0; seed < batches; ++seed) data.emplace_back(seed);
    std::vector<Gpu> gpus;
    for (int device = 0; device < gpu_count; ++device) gpus.emplace_back(device);
    for (int other = 1; other < gpu_count; ++other) {
        connect(0, other);
        connect(other, 0);
    }
    check(cudaSetDevice(gpus.front().device));
    float* const of_another = device_floats(weights);
    const cudaGraphExec_t graph = has_graph ? capture(gpus.front()) : nullptr;

    float first_loss = 0, loss = 0;
    for (int number = 0; number < steps; ++number) {
        step(gpus, of_another, graph, data, number);
        if (number != 0 && number + 1 != steps) continue;
        loss = mean_loss(gpus);
        if (number == 0) first_loss = loss;
        std::printf("step %d: loss %.4f\n", number + 1, loss);
    }
    kbench_profile_finish();
    // Not-a-number is not less, either.
    if (steps > 1 && !(loss < first_loss)) {
        std::fprintf(stderr, "training_loop: the loss did not fall\n");
        return 1;
    }
    if (!have_equal_weights(gpus)) {
        std::fprintf(stderr, "training_loop: the GPUs ended with different weights\n");
        return 1;
    }
    return 0;
}
