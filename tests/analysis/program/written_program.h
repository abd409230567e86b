// A program of known behaviour as the profiler writes it: a host that calls, and a GPU with streams that follows.
//
//     WrittenProgram program("records");
//     program.launch("embedding").host_works(50'000).launch("gemm", {.ns = 4000});
//     const ProgramFile file = program.read();
#pragma once

#include <cstdint>
#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "analysis/program/program_file.h"

namespace kbench {

struct Launched {
    std::int64_t ns = 1000;  ///< the kernel's time
    int stream = 7;
    std::int64_t blocks = 1;
};

class WrittenProgram {
  public:
    static constexpr std::int64_t call_ns = 100;     ///< a launch call of the host
    static constexpr std::int64_t latency_ns = 500;  ///< from the call's begin to the kernel's start on an idle GPU

    explicit WrittenProgram(const std::string& purpose = "records", std::int64_t pid = 1,
                            const nlohmann::json& more = nlohmann::json::object());

    /// A kernel starts when it was called and its stream is free.
    WrittenProgram& launch(const std::string& kernel, const Launched& how = {});
    /// Kernels in one graph launch, one after another.
    WrittenProgram& launch_graph(const std::vector<std::string>& kernels, std::int64_t ns = 1000);
    /// Its call is not among the launches.
    WrittenProgram& copy(const std::string& what, std::int64_t bytes, std::int64_t ns = 1000);
    WrittenProgram& fill(std::int64_t bytes, std::int64_t ns = 1000);
    WrittenProgram& host_works(std::int64_t ns);
    /// The host waits until all streams are free.
    WrittenProgram& synchronise();

    /// A range around what follows on the thread; each needs its close().
    WrittenProgram& open(const std::string& text);
    WrittenProgram& close();
    WrittenProgram& on_thread(std::int64_t thread);

    /// A mark now, of the next launch.
    WrittenProgram& mark();
    WrittenProgram& line(const nlohmann::json& json);
    WrittenProgram& end();

    const std::string& text() const { return text_; }
    ProgramFile read(const std::string& path = "records.1.jsonl") const;

  private:
    std::int64_t id_of(const std::string& text);
    std::int64_t range() const;
    nlohmann::json activity(const std::string& kind, std::int64_t ns, int stream, std::int64_t called_ns);
    void call(const std::string& name);

    struct OpenRange {
        std::int64_t id, text, start_ns;
    };
    std::string text_;
    std::map<std::string, std::int64_t> texts_;
    std::map<std::int64_t, std::vector<OpenRange>> open_;  // by thread
    std::map<int, std::int64_t> free_ns_;                  // by stream
    std::int64_t host_ns_ = 1'000'000, thread_ = 1, ranges_ = 0, correlation_ = 0, launches_ = 0;
};

/// A module's range as the hook writes it.
std::string module_text(const std::string& layer, const std::string& class_name, const std::string& dtype = "float16",
                        const std::string& line = "bench.py:40");

}  // namespace kbench
