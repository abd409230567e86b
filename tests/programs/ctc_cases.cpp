// What kbench's CTC makes of given utterances: a program for scripts/ctc-verify, which says whether it is right.
// ctc_cases BACKEND PRECISION DIRECTORY...: of each directory logits.npy [steps, batch, labels], lengths.npy,
// targets.npy [batch, longest] and target_lengths.npy, all numbers of them as in models/ops/ctc.h with one frame a
// step, become losses.npy and gradient.npy there, of the mean loss. Exit codes as kbench's.
#include <fmt/format.h>

#include <cstdio>
#include <cstring>
#include <filesystem>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "bench/device/device.h"
#include "bench/plan/data/convert.h"
#include "bench/plan/data/npy.h"
#include "bench/plan/provider.h"
#include "kbench/error.h"
#include "models/ops/list.h"

namespace kbench {
namespace {

using Bytes = std::vector<std::byte>;

template <class T>
Bytes bytes_of(const std::vector<T>& values) {
    Bytes bytes(values.size() * sizeof(T));
    std::memcpy(bytes.data(), values.data(), bytes.size());
    return bytes;
}

Bytes integers(const std::filesystem::path& file) {
    const std::vector<std::int64_t> values = read_npy_integers(file).values;
    return bytes_of(std::vector<std::int32_t>(values.begin(), values.end()));
}

Precision precision_of(const std::string& text) {
    for (const Precision precision : all_precisions)
        if (name(precision) == text) return precision;
    throw UsageError(fmt::format("precision '{}': must be fp16, bf16, tf32, fp32 or fp64", text));
}

const Provider& maker(const Providers& providers, const Step& step, Precision precision) {
    std::string reason;
    for (const auto& provider : providers) {
        reason = provider->unsupported(step, precision);
        if (reason.empty()) return *provider;
    }
    throw UsageError("nobody computes CTC: " + reason);
}

void run(Device& device, const Providers& providers, Precision precision, const std::filesystem::path& directory) {
    const FloatArray logits = read_npy_floats(directory / "logits.npy");
    const IntegerArray targets = read_npy_integers(directory / "targets.npy");
    if (logits.shape.size() != 3 || targets.shape.size() != 2)
        throw UsageError(fmt::format("{}: logits have 3 dimensions, targets 2", directory.string()));
    const Ctc op{logits.shape[0], logits.shape[1], logits.shape[2], targets.shape[1]};
    const Step step = Step::of(op, Direction::bwd);
    const DataType type = storage_type(precision), wide = type == DataType::fp64 ? type : DataType::fp32;

    Bytes stored(logits.values.size() * size_of(type));
    convert(DataType::fp64, logits.values.data(), type, stored.data(), static_cast<std::int64_t>(logits.values.size()));
    const Bytes one = wide == DataType::fp64 ? bytes_of(std::vector<double>{1}) : bytes_of(std::vector<float>{1});
    Bytes losses(static_cast<std::size_t>(op.batch) * size_of(wide));
    const Bytes of_lengths = integers(directory / "lengths.npy"), of_targets = integers(directory / "targets.npy"),
                of_target_lengths = integers(directory / "target_lengths.npy");
    std::vector<DeviceBuffer> buffers;
    std::vector<void*> pointers;
    for (const Bytes* bytes :
         std::initializer_list<const Bytes*>{&stored, &of_lengths, &of_targets, &of_target_lengths, &one, &losses}) {
        pointers.push_back(buffers.emplace_back(device, bytes->size()).data());
        device.upload(pointers.back(), bytes->data(), bytes->size());
    }
    const std::unique_ptr<Computation> computation = maker(providers, step, precision).make(step, precision);
    const DeviceBuffer workspace(device, computation->workspace_bytes());
    computation->run({pointers, workspace.data(), device.stream()});
    device.synchronize();
    device.download(stored.data(), pointers.front(), stored.size());
    device.download(losses.data(), pointers.back(), losses.size());
    const std::int64_t batch[] = {op.batch};
    write_npy(directory / "losses.npy", batch, wide, losses.data(), op.batch);
    write_npy(directory / "gradient.npy", logits.shape, type, stored.data(), op.labels);
}

int run_all(std::span<char* const> arguments) {
    if (arguments.size() < 4) throw UsageError("usage: ctc_cases cuda|cpu PRECISION DIRECTORY...");
    const std::string backend = arguments[1];
    if (backend != "cuda" && backend != "cpu") throw UsageError("'" + backend + "': must be cuda or cpu");
    const std::unique_ptr<Device> device = backend == "cuda" ? make_cuda_device() : make_cpu_device();
    const Providers providers = make_providers(device->kind(), {});
    for (const char* directory : arguments.subspan(3)) run(*device, providers, precision_of(arguments[2]), directory);
    return 0;
}

}  // namespace
}  // namespace kbench

int main(int argc, char** argv) {
    try {
        return kbench::run_all(std::span(argv, static_cast<std::size_t>(argc)));
    } catch (const kbench::UsageError& error) {
        std::fprintf(stderr, "ctc_cases: %s\n", error.what());
        return 2;
    } catch (const std::exception& error) {
        std::fprintf(stderr, "ctc_cases: %s\n", error.what());
        return 1;
    }
}
