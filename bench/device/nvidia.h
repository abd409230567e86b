// The NVIDIA GPUs that a machine has whether CUDA can use them or not, and why it cannot. Reads /sys, /proc and /dev;
// knows no CUDA header.
#pragma once

#include <filesystem>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace kbench {

/// What a machine's files say of its NVIDIA GPUs.
struct NvidiaFiles {
    struct Gpu {
        std::string address;  ///< on the PCI bus: "0000:65:00.0"
        std::string driver;   ///< the kernel's driver that it is bound to: "nvidia", "nouveau"; empty: none
    };
    std::vector<Gpu> gpus;
    std::optional<std::string> driver;  ///< NVIDIA's that is loaded: its version, empty where that is not told
    bool node = false;                  ///< whether there is a /dev/nvidia0, or another number
    /// A file of /dev/nvidia* that this process cannot open, and why: "/dev/nvidia0: Permission denied".
    std::string closed_node;

    bool any() const { return !gpus.empty() || driver || node; }
};

/// Whether `text` is digits alone, as in --device 1 or after the "nvidia" of /dev/nvidia1.
bool is_gpu_number(std::string_view text);

/// Opens the nodes that it finds, for a moment. `root`: in front of all paths, for tests.
NvidiaFiles nvidia_files(const std::filesystem::path& root = "/");

/// The models of those whose driver is loaded: "NVIDIA H100 80GB HBM3".
std::vector<std::string> nvidia_models(const std::filesystem::path& root = "/");

/// What CUDA answered when it was asked for devices; a cudaError_t by number, name and text.
struct CudaAnswer {
    bool built = true;  ///< false: this kbench has no CUDA, and nobody was asked
    int error = 0;
    std::string name = {}, text = {};
    int devices = 0;
    int driver = 0;   ///< the CUDA that the driver's library supports: 12020 is 12.2; 0: there is no such library
    int runtime = 0;  ///< the CUDA that this kbench was built with
};

/// Why a machine computes on no GPU.
struct NoGpu {
    bool present =
        false;        ///< it has an NVIDIA GPU that the user did not hide: a fault, which a CPU must not stand in for
    std::string why;  ///< and what helps, without an end of line or sentence
};

/// `visible`: CUDA_VISIBLE_DEVICES, null where it is not set. Empty, or beginning with a negative number as -1, it is
/// the user's wish to have no GPU. Call it where `answer` has no devices.
NoGpu why_no_gpu(const NvidiaFiles& files, const CudaAnswer& answer, const char* visible);

/// What a CUDA error says of the machine and what helps, which CUDA's own text does not.
struct CudaErrorAdvice {
    int error;  ///< a cudaError_t
    std::string_view name;
    bool of_gpu;  ///< whether only a machine with a GPU can have it
    std::string_view advice;
};
std::span<const CudaErrorAdvice> cuda_error_advice();
/// Null where an error says nothing of the machine.
const CudaErrorAdvice* advice_for(int cuda_error);

}  // namespace kbench
