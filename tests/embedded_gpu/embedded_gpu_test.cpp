// The embedded profiler on a GPU: times of events against kernels that count their own time, on streams and in a graph,
// and what it costs a loop of short steps.
#include <cuda_runtime.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <functional>
#include <nlohmann/json.hpp>
#include <sstream>
#include <string>
#include <tuple>
#include <vector>

#include "kbench/profile.h"
#include "tests/embedded_gpu/spin_kernels.h"
#include "tests/programs/child_process.h"

namespace kbench {
namespace {

using spinning::spin;
using testing::HasSubstr;
using Json = nlohmann::json;

/// A failed call ends the child that makes it.
void check(cudaError_t error) {
    if (error == cudaSuccess) return;
    std::fprintf(stderr, "%s\n", cudaGetErrorString(error));
    std::exit(1);
}

struct Gpu {
    Gpu() {
        check(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
        check(cudaMalloc(&spun_ns, counters * sizeof *spun_ns));
        check(cudaMemset(spun_ns, 0, counters * sizeof *spun_ns));
        spin(1, spun_ns, stream);  // loads the kernel
        check(cudaDeviceSynchronize());
    }
    cudaGraphExec_t capture(const std::function<void()>& work) const {
        cudaGraph_t graph = nullptr;
        cudaGraphExec_t executable = nullptr;
        check(cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal));
        work();
        check(cudaStreamEndCapture(stream, &graph));
        check(cudaGraphInstantiate(&executable, graph, 0));
        return executable;
    }
    /// What kernels counted of themselves, microseconds.
    std::vector<double> counted_us() const {
        std::uint64_t ns[counters] = {};
        check(cudaDeviceSynchronize());
        check(cudaMemcpy(ns, spun_ns, sizeof ns, cudaMemcpyDeviceToHost));
        std::vector<double> us;
        for (const std::uint64_t one : ns) us.push_back(static_cast<double>(one) / 1e3);
        return us;
    }

    static constexpr int counters = 4;  ///< the first is of kernels whose own time nobody asks for
    cudaStream_t stream = nullptr;
    std::uint64_t* spun_ns = nullptr;
};

const Json& scope(const Json& file, const std::string& label) {
    for (const Json& one : file.at("timeline").at("0").at("stream 0"))
        if (one.at("label") == label) return one;
    ADD_FAILURE() << "no scope " << label << " in\n" << file.dump(1);
    static const Json none = Json::object();
    return none;
}

class EmbeddedGpu : public testing::Test {
  protected:
    void SetUp() override {
        // In a child: a process that has used CUDA can have none that do.
        if (const int missing = child_.run([] {
                int count = 0;
                return cudaGetDeviceCount(&count) == cudaSuccess && count > 0 ? 0 : 1;
            });
            missing != 0)
            GTEST_SKIP() << "no GPU that CUDA can use";
    }
    Json measured(const std::string& schedule, const std::function<int()>& work) {
        child_.write("prof.schedule", schedule);
        EXPECT_EQ(child_.run(work), 0) << child_.err();
        return Json::parse(child_.read("prof.json"), nullptr, false);
    }
    ChildProcess child_;
};

/// Beside its kernel a scope holds that kernel's launch and the second event, a few microseconds.
constexpr double launch_us = 8;

TEST_F(EmbeddedGpu, ScopesTakeAsLongAsTheirKernels) {
    constexpr double lengths_us[] = {50, 200, 1000};
    constexpr int iterations = 80;
    const Json file = measured("iterations 5:\nrepeat 20\nscope *\n", [&] {
        const Gpu gpu;
        for (int i = 0; i < iterations; ++i) {
            kbench_iteration(gpu.stream);
            for (int which = 0; which < 3; ++which) {
                const std::string label = std::to_string(which);
                const Scope one(label.c_str(), gpu.stream);
                spin(lengths_us[which], gpu.spun_ns + 1 + which, gpu.stream);
            }
        }
        const std::vector<double> us = gpu.counted_us();
        std::ofstream("counted") << us[1] / iterations << ' ' << us[2] / iterations << ' ' << us[3] / iterations;
        return 0;
    });
    ASSERT_TRUE(file.at("complete")) << file.dump(1);
    std::istringstream counted(child_.read("counted"));
    double offset_us = 0;
    for (int which = 0; which < 3; ++which) {
        double counted_us = 0;
        ASSERT_TRUE(counted >> counted_us);
        const Json& one = scope(file, std::to_string(which));
        EXPECT_EQ(one.at("n"), 20);
        const double measured_us = 1e3 * one.at("avg_measured_time_ms").get<double>();
        std::printf("a kernel that counted %.2f us: %.2f us [%.2f, %.2f]\n", counted_us, measured_us,
                    1e3 * one.at("ci_low").get<double>(), 1e3 * one.at("ci_high").get<double>());
        EXPECT_GT(measured_us, counted_us - 1.1) << "the kernel's timer may tick once a microsecond";
        EXPECT_LT(measured_us, counted_us + launch_us);
        EXPECT_NEAR(1e3 * one.at("avg_iter_start_to_event_start_time_ms").get<double>(), offset_us, 3 * launch_us);
        offset_us += counted_us;
    }
    EXPECT_NEAR(1e3 * file.at("avg_iter_time_ms").get<double>(), offset_us, 3 * launch_us);
}

TEST_F(EmbeddedGpu, ScopesOfAGraphTakeAsLongAsTheirKernels) {
    const Json file = measured("iterations 5:\nrepeat 20\nscope *\n", [] {
        const Gpu gpu;
        cudaGraphExec_t graph = gpu.capture([&] {
            const Scope whole("whole", gpu.stream);
            spin(30, gpu.spun_ns, gpu.stream);
            const Scope inner("inner", gpu.stream);
            spin(100, gpu.spun_ns, gpu.stream);
        });
        for (int i = 0; i < 80; ++i) {
            kbench_iteration(gpu.stream);
            const Scope before("before", gpu.stream);
            spin(50, gpu.spun_ns, gpu.stream);
            check(cudaGraphLaunch(graph, gpu.stream));
        }
        check(cudaDeviceSynchronize());
        return 0;
    });
    ASSERT_TRUE(file.at("complete")) << file.dump(1);
    EXPECT_EQ(file.at("devices").at(0).at("notes"), Json::array());
    for (const auto& [label, us, offset_us] : {std::tuple{"whole", 130.0, 50.0}, {"inner", 100.0, 80.0}}) {
        const Json& one = scope(file, label);
        EXPECT_TRUE(one.at("in_graph"));
        EXPECT_EQ(one.at("n"), 20);
        const double measured_us = 1e3 * one.at("avg_measured_time_ms").get<double>();
        std::printf("%s of %g us in a graph: %.2f us\n", label, us, measured_us);
        EXPECT_GT(measured_us, us - 2.2);
        EXPECT_LT(measured_us, us + 2 * launch_us);
        EXPECT_NEAR(1e3 * one.at("avg_iter_start_to_event_start_time_ms").get<double>(), offset_us, 3 * launch_us);
    }
}

TEST_F(EmbeddedGpu, AnotherThreadsCaptureIsNotBroken) {
    const Json file = measured("iterations 2:60\nscope *\n", [] {
        const Gpu gpu;
        cudaStream_t captured = nullptr;
        check(cudaStreamCreate(&captured));
        check(cudaStreamBeginCapture(captured, cudaStreamCaptureModeGlobal));
        for (int i = 0; i < 62; ++i) {
            kbench_iteration(gpu.stream);
            const Scope one("one", gpu.stream), legacy("legacy", nullptr);
            spin(20, gpu.spun_ns, gpu.stream);
        }
        spin(1, gpu.spun_ns, captured);
        cudaGraph_t graph = nullptr;
        check(cudaStreamEndCapture(captured, &graph));
        return 0;
    });
    EXPECT_TRUE(file.at("complete"));
    EXPECT_GT(scope(file, "one").at("n"), 20);
}

/// Microseconds a step of a loop of steps of 10 us with three scopes, the median of several rounds.
double us_a_step(const Gpu& gpu, bool is_marked, int steps) {
    const auto start = std::chrono::steady_clock::now();
    for (int i = 0; i < steps; ++i) {
        if (!is_marked) {
            spin(10, gpu.spun_ns, gpu.stream);
            continue;
        }
        kbench_iteration(gpu.stream);
        const Scope step("step", gpu.stream), again("again", gpu.stream), inner("inner", gpu.stream);
        spin(10, gpu.spun_ns, gpu.stream);
    }
    check(cudaDeviceSynchronize());
    return std::chrono::duration<double, std::micro>(std::chrono::steady_clock::now() - start).count() / steps;
}

/// Plain and marked loops in turn, which drift alike; the median of their ratios.
int print_cost() {
    const Gpu gpu;
    us_a_step(gpu, false, 20'000);
    std::vector<double> plain, marked, ratios;
    for (int round = 0; round < 15; ++round) {
        plain.push_back(us_a_step(gpu, false, 4'000));
        marked.push_back(us_a_step(gpu, true, 4'000));
        ratios.push_back(marked.back() / plain.back());
    }
    const auto median = [](std::vector<double>& values) {
        std::ranges::sort(values);
        return values[values.size() / 2];
    };
    const double ratio = median(ratios);
    std::fprintf(stderr, "%.4f %.4f %.6f", median(plain), median(marked), ratio);
    return 0;
}

TEST_F(EmbeddedGpu, SwitchedOffAStepOfTenMicrosecondsTakesAsLong) {
    ASSERT_EQ(child_.run(print_cost), 0) << child_.err();
    double plain = 0, marked = 0, ratio = 0;
    ASSERT_EQ(std::sscanf(child_.err().c_str(), "%lf %lf %lf", &plain, &marked, &ratio), 3) << child_.err();
    std::printf("off: %.3f us a step, %.3f without calls, %+.3f %%\n", marked, plain, 100 * (ratio - 1));
    // The cost itself, 0.1 % at most, is below what two loops of launches differ by; the host's test counts it.
    EXPECT_LT(ratio, 1.01);
}

TEST_F(EmbeddedGpu, SwitchedOnAStepHasThreeMoreRecords) {
    child_.write("prof.schedule", "iterations 0:\nrepeat 1000000\nscope *\n");
    ASSERT_EQ(child_.run(print_cost), 0) << child_.err();
    double plain = 0, marked = 0, ratio = 0;
    ASSERT_EQ(std::sscanf(child_.err().c_str(), "%lf %lf %lf", &plain, &marked, &ratio), 3) << child_.err();
    std::printf("on: %.3f us a step, %.3f without calls, %+.1f %%\n", marked, plain, 100 * (ratio - 1));
    EXPECT_LT(marked, plain + 15);
    EXPECT_THAT(child_.err(), HasSubstr("wrote prof.json"));
}

}  // namespace
}  // namespace kbench
