// Trains a multilayer perceptron on one or several GPUs, and measures itself with kbench/profile.h.
//
//     training_loop [--steps N] [--gpus N] [--graph]
//
// Each GPU has a batch of its own; their gradients are added up on the first. With --graph, one GPU launches forward,
// backward and update as a captured graph.
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
    cudaEvent_t uploaded = nullptr, computed = nullptr;
    float *x = device_floats(batch * inputs), *target = device_floats(batch * outputs);
    float *w1 = device_floats(weights), *w2 = w1 + inputs * hidden, *gradient = device_floats(weights);
    float *h = device_floats(batch * hidden), *h_gradient = device_floats(batch * hidden);
    float *y = device_floats(batch * outputs), *y_gradient = device_floats(batch * outputs), *loss = device_floats(1);
};

/// Adds up all gradients on the first GPU and sends the sum to the others. `received` lies on the first.
void exchange(std::vector<Gpu>& gpus, float* received) {
    Gpu& first = gpus.front();
    constexpr std::size_t bytes = sizeof(float) * weights;
    check(cudaSetDevice(first.device));
    {
        const kbench::Scope scope("exchange", first.compute);
        for (std::size_t i = 1; i < gpus.size(); ++i) {
            check(cudaStreamWaitEvent(first.compute, gpus[i].computed));
            check(cudaMemcpyPeerAsync(received, first.device, gpus[i].gradient, gpus[i].device, bytes, first.compute));
            add(first.gradient, received, 1, weights, first.compute);
        }
    }
    check(cudaEventRecord(first.computed, first.compute));
    for (std::size_t i = 1; i < gpus.size(); ++i) {
        Gpu& other = gpus[i];
        check(cudaSetDevice(other.device));
        const kbench::Scope scope("exchange", other.compute);
        check(cudaStreamWaitEvent(other.compute, first.computed));
        check(cudaMemcpyPeerAsync(other.gradient, other.device, first.gradient, first.device, bytes, other.compute));
    }
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

void step(std::vector<Gpu>& gpus, float* received, cudaGraphExec_t graph, const std::vector<Batch>& data, int number) {
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
    if (gpus.size() > 1) exchange(gpus, received);
    for (Gpu& gpu : gpus) {
        check(cudaSetDevice(gpu.device));
        gpu.update(static_cast<int>(gpus.size()));
    }
}

float loss_of(Gpu& gpu) {
    float loss = 0;
    check(cudaSetDevice(gpu.device));
    check(cudaStreamSynchronize(gpu.compute));
    check(cudaMemcpy(&loss, gpu.loss, sizeof loss, cudaMemcpyDeviceToHost));
    return loss;
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
        std::fprintf(stderr, "training_loop: %d GPUs are asked for, %d are there\n", gpu_count, available);
        return 3;
    }
    std::vector<Batch> data;
    for (unsigned seed = 0; seed < batches; ++seed) data.emplace_back(seed);
    std::vector<Gpu> gpus;
    for (int device = 0; device < gpu_count; ++device) gpus.emplace_back(device);
    check(cudaSetDevice(gpus.front().device));
    float* const received = device_floats(weights);
    const cudaGraphExec_t graph = has_graph ? capture(gpus.front()) : nullptr;

    float first_loss = 0, loss = 0;
    for (int number = 0; number < steps; ++number) {
        step(gpus, received, graph, data, number);
        if (number != 0 && number + 1 != steps) continue;
        loss = loss_of(gpus.front());
        if (number == 0) first_loss = loss;
        std::printf("step %d: loss %.4f\n", number + 1, loss);
    }
    kbench_profile_finish();
    return steps == 1 || loss < first_loss ? 0 : 1;
}
