#include "tests/analysis/program/written_program.h"

#include <algorithm>
#include <sstream>

namespace kbench {

using Json = nlohmann::json;

WrittenProgram::WrittenProgram(const std::string& purpose, std::int64_t pid, const Json& more) {
    Json process{{"kind", "process"},
                 {"format", "kbench.program/1"},
                 {"purpose", purpose},
                 {"pid", pid},
                 {"arguments", {"python3", "-u", "models/bench.py", "--batch", "1"}},
                 {"start_ns", 1}};
    process.update(more);
    line(process);
    line({{"kind", "device"},
          {"id", 0},
          {"name", "NVIDIA H200"},
          {"uuid", "GPU-0"},
          {"capability", {9, 0}},
          {"sms", 132}});
}

WrittenProgram& WrittenProgram::launch(const std::string& kernel, const Launched& how) {
    const std::int64_t name = id_of(kernel), called_ns = host_ns_;
    call("cuLaunchKernel");
    Json json = activity("kernel", how.ns, how.stream, called_ns);
    json.update({{"name", name}, {"grid", {how.blocks, 1, 1}}, {"block", {128, 1, 1}}, {"registers", 32}});
    json.update({{"static_shared", 0}, {"dynamic_shared", 0}, {"local", 0}, {"cluster", 1}});
    return line(json);
}

WrittenProgram& WrittenProgram::launch_graph(const std::vector<std::string>& kernels, std::int64_t ns) {
    for (const std::string& kernel : kernels) id_of(kernel);
    const std::int64_t called_ns = host_ns_;
    call("cuGraphLaunch");
    std::int64_t node = (std::int64_t{5} << 32) + 1;
    for (const std::string& kernel : kernels) {
        Json json = activity("kernel", ns, 7, called_ns);
        json.update({{"name", id_of(kernel)}, {"grid", {1, 1, 1}}, {"block", {128, 1, 1}}, {"registers", 32}});
        json.update({{"static_shared", 0}, {"dynamic_shared", 0}, {"local", 0}, {"graph_node", node++}});
        line(json);
    }
    return *this;
}

WrittenProgram& WrittenProgram::copy(const std::string& what, std::int64_t bytes, std::int64_t ns) {
    ++correlation_;
    Json json = activity("copy", ns, 7, host_ns_);
    json.update({{"what", what}, {"memory", {"pageable", "device"}}, {"bytes", bytes}});
    host_ns_ += call_ns;
    return line(json);
}

WrittenProgram& WrittenProgram::fill(std::int64_t bytes, std::int64_t ns) {
    ++correlation_;
    Json json = activity("fill", ns, 7, host_ns_);
    json["bytes"] = bytes;
    host_ns_ += call_ns;
    return line(json);
}

WrittenProgram& WrittenProgram::host_works(std::int64_t ns) {
    host_ns_ += ns;
    return *this;
}

WrittenProgram& WrittenProgram::synchronise() {
    for (const auto& [stream, free_ns] : free_ns_) host_ns_ = std::max(host_ns_, free_ns);
    return *this;
}

WrittenProgram& WrittenProgram::open(const std::string& text) {
    open_[thread_].push_back({++ranges_, id_of(text), host_ns_});
    return *this;
}

WrittenProgram& WrittenProgram::close() {
    const OpenRange closed = open_[thread_].back();
    open_[thread_].pop_back();
    return line({{"kind", "range"},
                 {"id", closed.id},
                 {"parent", range()},
                 {"text", closed.text},
                 {"thread", thread_},
                 {"start_ns", closed.start_ns},
                 {"end_ns", host_ns_}});
}

WrittenProgram& WrittenProgram::on_thread(std::int64_t thread) {
    thread_ = thread;
    return *this;
}

WrittenProgram& WrittenProgram::mark() {
    return line({{"kind", "mark"}, {"launches", launches_}, {"at_ns", host_ns_}});
}

WrittenProgram& WrittenProgram::line(const Json& json) {
    text_ += json.dump() + "\n";
    return *this;
}

WrittenProgram& WrittenProgram::end() {
    return line({{"kind", "end"}, {"launches", launches_}, {"dropped", 0}, {"end_ns", host_ns_}});
}

ProgramFile WrittenProgram::read(const std::string& path) const {
    std::istringstream input(text_);
    return read_program_file(input, path);
}

std::int64_t WrittenProgram::id_of(const std::string& text) {
    const auto [known, is_new] = texts_.try_emplace(text, static_cast<std::int64_t>(texts_.size()) + 1);
    if (is_new) line({{"kind", "text"}, {"id", known->second}, {"text", text}});
    return known->second;
}

std::int64_t WrittenProgram::range() const {
    const auto own = open_.find(thread_);
    return own == open_.end() || own->second.empty() ? 0 : own->second.back().id;
}

Json WrittenProgram::activity(const std::string& kind, std::int64_t ns, int stream, std::int64_t called_ns) {
    std::int64_t& free_ns = free_ns_[stream];
    const std::int64_t start_ns = std::max(free_ns, called_ns + latency_ns);
    free_ns = start_ns + ns;
    return {{"kind", kind},         {"correlation", correlation_},
            {"start_ns", start_ns}, {"end_ns", free_ns},
            {"device", 0},          {"stream", stream},
            {"graph_node", 0},      {"range", range()}};
}

void WrittenProgram::call(const std::string& name) {
    line({{"kind", "launch"},
          {"index", launches_++},
          {"correlation", ++correlation_},
          {"call", name},
          {"thread", thread_},
          {"start_ns", host_ns_},
          {"end_ns", host_ns_ + call_ns},
          {"range", range()}});
    host_ns_ += call_ns;
}

std::string module_text(const std::string& layer, const std::string& class_name, const std::string& dtype,
                        const std::string& line) {
    return "kbench:" + Json{{"layer", layer}, {"class", class_name}, {"dtype", dtype}, {"line", line}}.dump();
}

}  // namespace kbench
