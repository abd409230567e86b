// Cores, pinning and CPU facts from Linux: affinity masks, /sys/devices/system/cpu and /proc/cpuinfo.
#include "cpu/threads.h"

#include <dlfcn.h>
#include <omp.h>
#include <sched.h>
#include <unistd.h>

#include <algorithm>
#include <fstream>
#include <memory>
#include <optional>
#include <set>
#include <sstream>
#include <type_traits>
#include <utility>

namespace kbench::cpu {
namespace {

/// An affinity mask for as many CPUs as any Linux kernel supports (CONFIG_NR_CPUS is at most 8192 on x86-64); cpu_set_t
/// has room for only 1024.
class CpuMask {
  public:
    static constexpr int cpus = 8192;
    CpuMask() : set_(CPU_ALLOC(cpus)) { CPU_ZERO_S(bytes(), set_.get()); }
    static std::size_t bytes() { return CPU_ALLOC_SIZE(cpus); }
    cpu_set_t* get() const { return set_.get(); }
    void add(int cpu) { CPU_SET_S(static_cast<std::size_t>(cpu), bytes(), set_.get()); }
    bool has(int cpu) const { return CPU_ISSET_S(static_cast<std::size_t>(cpu), bytes(), set_.get()); }
    int count() const { return CPU_COUNT_S(bytes(), set_.get()); }

  private:
    struct Free {
        void operator()(cpu_set_t* set) const { CPU_FREE(set); }
    };
    std::unique_ptr<cpu_set_t, Free> set_;
};

/// The first line of a file; empty when it cannot be read.
std::string first_line(const std::string& path) {
    std::ifstream file(path);
    std::string line;
    std::getline(file, line);
    return line;
}

std::string cpu_directory(int cpu) { return "/sys/devices/system/cpu/cpu" + std::to_string(cpu); }

/// How an OpenMP library tells its places.
struct OpenMpPlaces {
    int (*count)();
    int (*size)(int place);
    void (*cpus)(int place, int* cpus);
};

/// GNU's OpenMP, null pointers where the process has none. OpenBLAS and oneDNN bring it into programs that clang
/// builds, and it binds the main thread before LLVM's OpenMP looks, which then knows of that one place alone.
OpenMpPlaces places_of_gnu() {
    void* const library = dlopen("libgomp.so.1", RTLD_LAZY | RTLD_NOLOAD);
    if (library == nullptr) return {};
    const auto find = [library](auto& function, const char* name) {
        function = reinterpret_cast<std::remove_reference_t<decltype(function)>>(dlsym(library, name));
    };
    OpenMpPlaces places{};
    find(places.count, "omp_get_num_places");
    find(places.size, "omp_get_place_num_procs");
    find(places.cpus, "omp_get_place_proc_ids");
    dlclose(library);  // it stays loaded
    return places;
}

/// Adds OpenMP's places to the mask. With OMP_PROC_BIND or OMP_PLACES, OpenMP binds the main thread to one place before
/// main starts; its mask is then only a part of what the process may use, and the places are the whole. LLVM's OpenMP
/// has places without either variable, taken from the mask at its start.
void add_places(CpuMask& mask) {
    if (omp_get_proc_bind() == omp_proc_bind_false) return;
    const OpenMpPlaces own{omp_get_num_places, omp_get_place_num_procs, omp_get_place_proc_ids};
    for (const OpenMpPlaces& places : {own, places_of_gnu()}) {
        const int count = places.count && places.size && places.cpus ? places.count() : 0;
        for (int place = 0; place < count; ++place) {
            std::vector<int> cpus(static_cast<std::size_t>(places.size(place)));
            places.cpus(place, cpus.data());
            for (const int cpu : cpus)
                if (cpu >= 0 && cpu < CpuMask::cpus) mask.add(cpu);
        }
    }
}

/// What pin_threads found and left of a calling thread, or a second device would have the one CPU that the first left.
struct BeforePinning {
    std::vector<int> allowed;
    int cpu;  ///< where the thread is since
};
thread_local std::optional<BeforePinning> before_pinning;

std::vector<int> allowed_cpus() {
    CpuMask mask;
    std::vector<int> cpus;
    if (sched_getaffinity(0, CpuMask::bytes(), mask.get()) != 0) return {0};
    if (before_pinning && mask.count() == 1 && mask.has(before_pinning->cpu)) return before_pinning->allowed;
    add_places(mask);
    for (int cpu = 0; cpu < CpuMask::cpus; ++cpu)
        if (mask.has(cpu)) cpus.push_back(cpu);
    return cpus;
}

/// An identifier that the logical CPUs of one core share, and no other core has.
std::string core_of(int cpu) {
    const std::string siblings = first_line(cpu_directory(cpu) + "/topology/thread_siblings_list");
    return siblings.empty() ? "cpu " + std::to_string(cpu) : siblings;
}

/// A cache size such as "32768K", in bytes.
long parse_size(const std::string& text) {
    std::istringstream stream(text);
    long size = 0;
    char unit = ' ';
    stream >> size >> unit;
    return unit == 'K' ? size << 10 : unit == 'M' ? size << 20 : size;
}

void read_caches(int cpu, CpuInfo& info) {
    for (int index = 0;; ++index) {
        const std::string directory = cpu_directory(cpu) + "/cache/index" + std::to_string(index);
        const std::string level = first_line(directory + "/level");
        if (level.empty()) return;
        const long bytes = parse_size(first_line(directory + "/size"));
        if (level == "1" && first_line(directory + "/type") == "Data") info.l1d_bytes = bytes;
        if (level == "2") info.l2_bytes = bytes;
        if (level == "3") info.l3_bytes = bytes;
    }
}

/// Reads model and ISA from /proc/cpuinfo. Its flags, unlike CPUID's, leave out what the system does not enable.
void read_cpuinfo(CpuInfo& info) {
    std::ifstream file("/proc/cpuinfo");
    std::set<std::string> flags;
    for (std::string line; std::getline(file, line) && (info.model.empty() || flags.empty());) {
        const std::size_t colon = line.find(": ");
        if (colon == std::string::npos) continue;
        const std::string value = line.substr(colon + 2);
        if (line.starts_with("model name")) info.model = value;
        if (line.starts_with("flags")) {
            std::istringstream words(value);
            for (std::string word; words >> word;) flags.insert(word);
        }
    }
    for (const char* name : {"avx2", "avx512f", "avx512_bf16", "avx512_fp16", "amx_tile", "amx_bf16"})
        if (flags.contains(name)) info.isa.emplace_back(name);
}

}  // namespace

std::vector<int> physical_cores() {
    std::set<std::string> seen;
    std::vector<int> cores;
    for (int cpu : allowed_cpus())
        if (seen.insert(core_of(cpu)).second) cores.push_back(cpu);
    return cores;
}

std::vector<int> usable_cpus() {
    std::vector<int> cpus = physical_cores();
    const std::size_t cores = cpus.size();
    for (const int cpu : allowed_cpus())
        if (std::find(cpus.begin(), cpus.begin() + static_cast<std::ptrdiff_t>(cores), cpu) ==
            cpus.begin() + static_cast<std::ptrdiff_t>(cores))
            cpus.push_back(cpu);
    return cpus;
}

int start_threads(int wanted) {
    omp_set_dynamic(0);  // otherwise a load average decides how many threads a region has
    int came = 1;
#pragma omp parallel num_threads(wanted)
#pragma omp single
    came = omp_get_num_threads();
    omp_set_num_threads(came);
    return came;
}

bool pin_this_thread(int cpu) {
    CpuMask mask;
    mask.add(cpu);
    return sched_setaffinity(0, CpuMask::bytes(), mask.get()) == 0;
}

bool pin_threads(const std::vector<int>& cpus) {
    if (cpus.empty() || start_threads(static_cast<int>(cpus.size())) < static_cast<int>(cpus.size())) return false;
    BeforePinning before{allowed_cpus(), cpus.front()};
    int pinned = 0;
#pragma omp parallel num_threads(static_cast <int>(cpus.size())) reduction(+ : pinned)
    pinned += pin_this_thread(cpus[static_cast<std::size_t>(omp_get_thread_num())]);
    if (pinned > 0) before_pinning = std::move(before);
    return pinned == static_cast<int>(cpus.size());
}

namespace {

CpuInfo read_cpu_info() {
    CpuInfo info;
    const std::vector<int> cpus = allowed_cpus();
    std::set<std::string> sockets, l3s;
    for (int cpu : cpus) {
        sockets.insert(first_line(cpu_directory(cpu) + "/topology/physical_package_id"));
        l3s.insert(first_line(cpu_directory(cpu) + "/cache/index3/shared_cpu_list"));
    }
    info.sockets = static_cast<int>(sockets.size());
    info.l3_instances = static_cast<int>(l3s.size());
    info.physical_cores = static_cast<int>(physical_cores().size());
    info.logical_cpus = static_cast<int>(cpus.size());
    info.machine_cpus = std::max(info.logical_cpus, static_cast<int>(sysconf(_SC_NPROCESSORS_ONLN)));
    info.governor = first_line(cpu_directory(cpus.front()) + "/cpufreq/scaling_governor");
    read_caches(cpus.front(), info);
    read_cpuinfo(info);
    return info;
}

}  // namespace

const CpuInfo& cpu_info() {
    static const CpuInfo info = read_cpu_info();
    return info;
}

}  // namespace kbench::cpu
