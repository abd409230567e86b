// What each file means: Linux's sysfs-bus-pci, and the README of NVIDIA's driver (its /proc and /dev).
#include "bench/device/nvidia.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cctype>
#include <cerrno>
#include <cstring>
#include <fstream>
#include <sstream>

namespace kbench {
namespace {

namespace fs = std::filesystem;

std::string first_word(const fs::path& file) {
    std::ifstream stream(file);
    std::string word;
    stream >> word;
    return word;
}

std::vector<fs::path> entries(const fs::path& directory) {
    std::vector<fs::path> paths;
    std::error_code error;
    for (fs::directory_iterator entry(directory, error), end; !error && entry != end; entry.increment(error))
        paths.push_back(entry->path());
    std::ranges::sort(paths);
    return paths;
}

/// Display controllers of the vendor: its sound and USB controllers lie beside them.
std::vector<NvidiaFiles::Gpu> pci_gpus(const fs::path& root) {
    std::vector<NvidiaFiles::Gpu> gpus;
    for (const fs::path& device : entries(root / "sys/bus/pci/devices")) {
        if (first_word(device / "vendor") != "0x10de" || !first_word(device / "class").starts_with("0x03")) continue;
        std::error_code unbound;
        gpus.push_back({device.filename().string(), fs::read_symlink(device / "driver", unbound).filename().string()});
    }
    return gpus;
}

/// Its first line is such as "NVRM version: NVIDIA UNIX x86_64 Kernel Module  535.104.05  Sat Aug 19 01:15:15 UTC
/// 2023".
std::optional<std::string> loaded_driver(const fs::path& root) {
    std::ifstream stream(root / "proc/driver/nvidia/version");
    if (!stream) return std::nullopt;
    std::string line;
    std::getline(stream, line);
    std::istringstream words(line);
    for (std::string word; words >> word;)
        if (std::isdigit(static_cast<unsigned char>(word.front())) != 0 && word.find('.') != std::string::npos)
            return word;
    return "";
}

/// Nothing is asked of the GPU: only whether this process may (a file's mode, or a container's or job's control group).
std::string why_closed(const fs::path& node) {
    const int file = open(node.c_str(), O_RDWR | O_CLOEXEC | O_NONBLOCK);
    if (file < 0) return fmt::format("/dev/{}: {}", node.filename().string(), std::strerror(errno));
    close(file);
    return "";
}

void find_nodes(const fs::path& root, NvidiaFiles& files) {
    constexpr std::string_view stem = "nvidia";
    for (const fs::path& path : entries(root / "dev")) {
        const std::string name = path.filename().string();
        if (!name.starts_with(stem)) continue;
        const bool of_gpu = is_gpu_number(std::string_view(name).substr(stem.size()));
        files.node = files.node || of_gpu;
        if (files.closed_node.empty() && (of_gpu || name == "nvidiactl" || name == "nvidia-uvm"))
            files.closed_node = why_closed(path);
    }
}

/// "an NVIDIA GPU (0000:65:00.0)".
std::string gpus_text(const NvidiaFiles& files) {
    if (files.gpus.empty()) return "an NVIDIA GPU";
    const NvidiaFiles::Gpu& first = files.gpus.front();
    if (files.gpus.size() > 1) return fmt::format("{} NVIDIA GPUs ({} and others)", files.gpus.size(), first.address);
    return fmt::format("an NVIDIA GPU ({})", first.address);
}

std::string version_of(int cuda) { return fmt::format("{}.{}", cuda / 1000, cuda % 1000 / 10); }

std::string no_driver(const NvidiaFiles& files) {
    const auto taken = std::ranges::find_if(files.gpus, [](const auto& gpu) { return !gpu.driver.empty(); });
    return fmt::format(
        "this machine has {}, but no NVIDIA driver is loaded{}: install it, or load it with `modprobe nvidia`",
        gpus_text(files), taken == files.gpus.end() ? "" : fmt::format(" ({} has the GPU)", taken->driver));
}

std::string driver_text(const NvidiaFiles& files) {
    return files.driver && !files.driver->empty() ? "NVIDIA driver " + *files.driver : "NVIDIA driver";
}

/// The first drivers of CUDA 12.6, kbench's least, and of 13.0 (CUDA's release notes, table 3).
std::string too_old(const NvidiaFiles& files, const CudaAnswer& answer) {
    constexpr int least_cuda = 12060, thirteen = 13000;
    const int needed = answer.runtime >= thirteen ? 580 : 560;
    const std::string begin = fmt::format(
        "the {} supports CUDA {} at the most, this kbench was built with {}: update the driver ({} or newer)",
        driver_text(files), version_of(answer.driver), version_of(answer.runtime), needed);
    if (answer.driver < least_cuda) return begin;
    return fmt::format("{}, or build kbench with CUDA {} to {}", begin, version_of(least_cuda),
                       version_of(answer.driver));
}

constexpr int insufficient_driver = 35, no_device = 100;  // cudaErrorInsufficientDriver, cudaErrorNoDevice

/// What files say where CUDA says nothing more than that there is no device, or something that it cannot know.
std::string why_none_found(const NvidiaFiles& files) {
    if (!files.driver && !files.gpus.empty()) return no_driver(files);
    if (!files.closed_node.empty())
        return fmt::format(
            "this process may not use the NVIDIA GPU: {}: ask for that permission, or the scheduler for a GPU",
            files.closed_node);
    if (!files.node)
        return fmt::format(
            "the {} is loaded, but there is no /dev/nvidia0: start a container with its GPUs (`--gpus all`); elsewhere `nvidia-modprobe -c 0 -u` makes it",
            driver_text(files));
    return "";
}

}  // namespace

bool is_gpu_number(std::string_view text) {
    return !text.empty() && std::ranges::all_of(text, [](unsigned char c) { return std::isdigit(c) != 0; });
}

std::vector<std::string> nvidia_models(const fs::path& root) {
    constexpr std::string_view title = "Model:";
    std::vector<std::string> models;
    for (const fs::path& gpu : entries(root / "proc/driver/nvidia/gpus")) {
        std::ifstream lines(gpu / "information");
        for (std::string line; std::getline(lines, line);) {
            const std::size_t name = line.find_first_not_of(" \t", title.size());
            if (line.starts_with(title) && name != line.npos) models.push_back(line.substr(name));
        }
    }
    return models;
}

NvidiaFiles nvidia_files(const fs::path& root) {
    NvidiaFiles files;
    files.gpus = pci_gpus(root);
    files.driver = loaded_driver(root);
    find_nodes(root, files);
    if (fs::exists(root / "usr/lib/wsl/lib/libcuda.so.1")) {  // Windows' driver; its GPU is no file of Linux's
        files.driver = files.driver.value_or("");
        files.node = true;
    }
    return files;
}

NoGpu why_no_gpu(const NvidiaFiles& files, const CudaAnswer& answer, const char* visible) {
    const std::string_view asked = visible == nullptr ? "" : visible;
    if (const std::size_t first = asked.find_first_not_of(' ');
        visible != nullptr && (first == std::string_view::npos || asked[first] == '-'))
        return {false, fmt::format("CUDA_VISIBLE_DEVICES='{}' hides all GPUs", asked)};
    if (!answer.built)
        return {
            files.any(),
            files.any()
                ? fmt::format(
                      "this machine has {}, but this kbench was built without CUDA: build it where a CUDA toolkit >= 12.6 is (docs/install.md)",
                      gpus_text(files))
                : "this kbench was built without CUDA (toolkit >= 12.6 needed)"};
    if (answer.error == insufficient_driver && answer.driver > 0) return {files.any(), too_old(files, answer)};
    if (answer.error == insufficient_driver) {  // as CUDA says also where it finds no library of a driver
        if (!files.any()) return {false, "no NVIDIA driver is loaded"};
        if (!files.driver && !files.gpus.empty()) return {true, no_driver(files)};
        return {
            true,
            fmt::format(
                "the {} is loaded, but its library libcuda.so.1 is not found: start a container with its GPUs (`--gpus all`); elsewhere install the driver's library",
                driver_text(files))};
    }
    if (answer.error == 0 || answer.error == no_device) {
        if (!files.any()) return {false, "no NVIDIA GPU is here"};
        if (visible != nullptr)
            return {true, fmt::format("CUDA_VISIBLE_DEVICES='{}' names no GPU that CUDA finds here", asked)};
    }
    if (const std::string why = why_none_found(files); files.any() && !why.empty()) return {true, why};
    if (const CudaErrorAdvice* advice = advice_for(answer.error); advice != nullptr && (files.any() || advice->of_gpu))
        return {true, fmt::format("{} ({})", advice->advice, answer.name)};
    if (!files.any()) return {false, fmt::format("CUDA finds no GPU: {} ({})", answer.name, answer.text)};
    return {true,
            fmt::format("this machine has {}, but CUDA finds none{}: `nvidia-smi` and `dmesg | grep NVRM` may say why",
                        gpus_text(files), answer.error == 0 ? "" : fmt::format(" ({}: {})", answer.name, answer.text))};
}

std::span<const CudaErrorAdvice> cuda_error_advice() {
    // What the CUDA Runtime API's reference says of each error, and the usual cause.
    static constexpr CudaErrorAdvice rows[] = {
        {34, "cudaErrorStubLibrary", false,
         "the toolkit's stub of libcuda.so is found before the driver's: take its folder `stubs` out of LD_LIBRARY_PATH"},
        {46, "cudaErrorDevicesUnavailable", true,
         "the GPU is taken by another process: wait for it, or set its compute mode with `nvidia-smi -c DEFAULT`"},
        {209, "cudaErrorNoKernelImageForDevice", true,
         "this kbench has no code for the GPU: build it again on this machine"},
        {214, "cudaErrorECCUncorrectable", true,
         "the GPU's memory has an error that ECC cannot correct: reset it with `nvidia-smi --gpu-reset`, or restart the machine"},
        {222, "cudaErrorUnsupportedPtxVersion", true,
         "the driver is too old to compile this kbench's PTX: update it, or build kbench for this GPU on this machine"},
        {802, "cudaErrorSystemNotReady", true,
         "the machine's NVSwitches are not ready: start nvidia-fabricmanager, of the driver's version"},
        {803, "cudaErrorSystemDriverMismatch", true,
         "the driver that is loaded and its library are of different versions: restart the machine, or load the driver again"},
        {804, "cudaErrorCompatNotSupportedOnDevice", true,
         "CUDA's forward compatibility does not work on this GPU: take the package cuda-compat out of LD_LIBRARY_PATH, or update the driver"},
        {805, "cudaErrorMpsConnectionFailed", true,
         "the MPS server does not answer: start or end nvidia-cuda-mps-control"},
        {999, "cudaErrorUnknown", false,
         "CUDA cannot start on the GPU: load nvidia-uvm with `nvidia-modprobe -u`, and see `dmesg | grep NVRM`"},
    };
    return rows;
}

const CudaErrorAdvice* advice_for(int cuda_error) {
    const std::span<const CudaErrorAdvice> rows = cuda_error_advice();
    const auto row = std::ranges::find(rows, cuda_error, &CudaErrorAdvice::error);
    return row == rows.end() ? nullptr : &*row;
}

}  // namespace kbench
