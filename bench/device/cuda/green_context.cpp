// The driver's calls for green contexts, found at run time.
#include "bench/device/cuda/green_context.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <memory>
#include <utility>

#include "bench/device/multiprocessors.h"
#include "kbench/error.h"
#include "kernels/check.h"
#include "kernels/driver.h"

namespace kbench::cuda {
namespace {

/// The driver's functions; only their types are taken from its header, so nothing is linked. All are of CUDA 12.4 but
/// for the stream's, which is of 12.5.
struct Driver {
    decltype(&cuDeviceGet) device_get = driver_function<decltype(&cuDeviceGet)>("cuDeviceGet");
    decltype(&cuDeviceGetDevResource) resource_of =
        driver_function<decltype(&cuDeviceGetDevResource)>("cuDeviceGetDevResource", 12040);
    decltype(&cuDevSmResourceSplitByCount) split =
        driver_function<decltype(&cuDevSmResourceSplitByCount)>("cuDevSmResourceSplitByCount", 12040);
    decltype(&cuDevResourceGenerateDesc) describe =
        driver_function<decltype(&cuDevResourceGenerateDesc)>("cuDevResourceGenerateDesc", 12040);
    decltype(&cuGreenCtxCreate) create = driver_function<decltype(&cuGreenCtxCreate)>("cuGreenCtxCreate", 12040);
    decltype(&cuGreenCtxDestroy) destroy = driver_function<decltype(&cuGreenCtxDestroy)>("cuGreenCtxDestroy", 12040);
    decltype(&cuGreenCtxStreamCreate) make_stream =
        driver_function<decltype(&cuGreenCtxStreamCreate)>("cuGreenCtxStreamCreate", 12050);
};

const Driver& driver() {
    static const Driver functions;
    return functions;
}

struct Gpu {
    CUdevice device = 0;
    CUdevResource all{};  ///< its SMs
};

Gpu gpu_of(int ordinal) {
    KBENCH_CUDA(cudaFree(nullptr));  // a green context needs the primary one to be there
    Gpu gpu;
    check_driver(driver().device_get(&gpu.device, ordinal), "cuDeviceGet");
    check_driver(driver().resource_of(gpu.device, &gpu.all, CU_DEV_RESOURCE_TYPE_SM), "cuDeviceGetDevResource");
    return gpu;
}

/// At least so many SMs of `gpu`, as the driver rounds up; none (smCount 0) where there are not so many.
CUdevResource part_of(const Gpu& gpu, int multiprocessors) {
    CUdevResource part{}, rest{};
    unsigned groups = 1;
    const CUresult status = driver().split(&part, &groups, &gpu.all, &rest, 0, static_cast<unsigned>(multiprocessors));
    if (status != CUDA_SUCCESS || groups != 1) part.sm.smCount = 0;
    return part;
}

std::vector<int> counts_of(const Gpu& gpu) {
    const int all = static_cast<int>(gpu.all.sm.smCount);
    std::vector<int> counts;
    for (int asked = 1; asked < all; ++asked) {
        const int given = static_cast<int>(part_of(gpu, asked).sm.smCount);
        if (given > 0 && given < all && (counts.empty() || given > counts.back())) counts.push_back(given);
        asked = std::max(asked, given);  // all up to there are rounded to it
    }
    counts.push_back(all);
    return counts;
}

}  // namespace

GreenContext::GreenContext(int ordinal, int multiprocessors) {
    const Gpu gpu = gpu_of(ordinal);
    CUdevResource part = multiprocessors > 0 ? part_of(gpu, multiprocessors) : CUdevResource{};
    if (static_cast<int>(part.sm.smCount) != multiprocessors || multiprocessors <= 0)
        throw UsageError(
            fmt::format("--sms {}: this GPU can be taken as {} SMs", multiprocessors, counts_text(counts_of(gpu))));
    CUdevResourceDesc description = nullptr;
    check_driver(driver().describe(&description, &part, 1), "cuDevResourceGenerateDesc");
    check_driver(driver().create(&context_, description, gpu.device, CU_GREEN_CTX_DEFAULT_STREAM), "cuGreenCtxCreate");
    CUstream stream = nullptr;
    try {
        check_driver(driver().make_stream(&stream, context_, CU_STREAM_NON_BLOCKING, 0), "cuGreenCtxStreamCreate");
    } catch (...) {
        driver().destroy(context_);
        throw;
    }
    stream_ = stream;
}

GreenContext::~GreenContext() {
    cudaStreamDestroy(stream_);
    driver().destroy(context_);
}

const GreenContext& kept_green_context(int ordinal, int multiprocessors) {
    // Never destroyed: at the end of the process the driver may be gone before.
    static auto& kept = *new std::map<std::pair<int, int>, std::unique_ptr<GreenContext>>;
    std::unique_ptr<GreenContext>& part = kept[{ordinal, multiprocessors}];
    if (!part) part = std::make_unique<GreenContext>(ordinal, multiprocessors);
    return *part;
}

std::vector<int> possible_multiprocessors(int ordinal) { return counts_of(gpu_of(ordinal)); }

}  // namespace kbench::cuda
