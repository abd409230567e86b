// Reads the format line by line. References are checked at the end, because a range is written when it closes.
#include "analysis/program/program_file.h"

#include <fmt/format.h>

#include <algorithm>
#include <fstream>
#include <istream>
#include <limits>
#include <nlohmann/json.hpp>
#include <string_view>
#include <tuple>

#include "kbench/error.h"
#include "models/base/format.h"
#include "models/base/json_text.h"

namespace kbench {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::json;

constexpr std::string_view format_name = "kbench.program/1";
constexpr std::string_view purposes[] = {"records", "bare", "names", "counters"};

/// One line, and where it stands.
class Line {
  public:
    Line(const Json& json, const std::string& path, std::size_t number) : json_(json), path_(path), number_(number) {}

    [[noreturn]] void fail(const std::string& what) const {
        throw UsageError(one_line(fmt::format("{}:{}: {}", path_, number_, what)));
    }
    const Json* find(const char* name) const {
        const auto found = json_.find(name);
        return found == json_.end() ? nullptr : &*found;
    }
    const Json& require(const char* name) const {
        const Json* value = find(name);
        if (value == nullptr) fail(fmt::format("'{}' is missing", name));
        return *value;
    }
    std::int64_t integer(const Json& value, const char* name, std::int64_t most) const {
        if (value.is_number_unsigned()) {
            const auto number = value.get<std::uint64_t>();
            if (number <= static_cast<std::uint64_t>(most)) return static_cast<std::int64_t>(number);
        }
        fail(fmt::format("'{}' must be a whole number from 0 to {}", name, most));
    }
    std::int64_t count(const char* name) const { return integer(require(name), name, most_count); }
    std::int64_t count_or(const char* name, std::int64_t otherwise) const {
        const Json* value = find(name);
        return value == nullptr ? otherwise : integer(*value, name, most_count);
    }
    int small(const char* name) const {
        return static_cast<int>(integer(require(name), name, std::numeric_limits<int>::max()));
    }
    /// The index of a launch; so many take a process a day.
    std::int64_t launch(const char* name) const { return integer(require(name), name, 10'000'000'000); }
    /// Blocks of a grid or threads of a block, as CUDA limits them: their product fits into 64 bits.
    std::array<std::int64_t, 3> extent(const char* name, const std::array<std::int64_t, 3>& most) const {
        const std::array<std::int64_t, 3> extent = counts<3>(name);
        for (std::size_t i = 0; i < extent.size(); ++i)
            if (extent[i] > most[i]) fail(fmt::format("'{}' has {}, more than {}", name, extent[i], most[i]));
        return extent;
    }
    std::string text(const Json& value, const char* name) const {
        if (!value.is_string()) fail(fmt::format("'{}' must be a text", name));
        return value.get<std::string>();
    }
    std::string text(const char* name) const { return text(require(name), name); }
    std::vector<std::string> texts(const char* name) const {
        std::vector<std::string> list;
        for (const Json& element : array(name)) list.push_back(text(element, name));
        return list;
    }
    const Json& array(const char* name) const {
        const Json& value = require(name);
        if (!value.is_array()) fail(fmt::format("'{}' must be an array", name));
        return value;
    }
    template <std::size_t size>
    std::array<std::int64_t, size> counts(const char* name) const {
        const Json& value = array(name);
        if (value.size() != size) fail(fmt::format("'{}' must be an array of {}", name, size));
        std::array<std::int64_t, size> numbers{};
        for (std::size_t i = 0; i < size; ++i) numbers[i] = integer(value[i], name, most_count);
        return numbers;
    }
    double number(const Json& value, const char* name) const {
        if (!value.is_number()) fail(fmt::format("'{}' must be a number", name));
        return value.get<double>();
    }
    void read_times(std::int64_t& start_ns, std::int64_t& end_ns) const {
        start_ns = count("start_ns");
        end_ns = count("end_ns");
        if (end_ns < start_ns) fail(fmt::format("'end_ns' is {}, before 'start_ns', {}", end_ns, start_ns));
    }
    std::size_t where() const { return number_; }

  private:
    /// Sums and differences of such numbers fit into 64 bits; in ns it is 146 years.
    static constexpr std::int64_t most_count = std::numeric_limits<std::int64_t>::max() / 2;

    const Json& json_;
    const std::string& path_;
    std::size_t number_;
};

class Reader {
  public:
    explicit Reader(std::string path) { file_.path = std::move(path); }

    /// Returns whether the line is JSON at all.
    bool take(const std::string& text, std::size_t number) {
        const std::string where = fmt::format("{}:{}", file_.path, number);
        check_json_text(text, where);
        const Json json = Json::parse(text, nullptr, false);
        if (json.is_discarded()) return false;
        const Line line(json, file_.path, number);
        if (!json.is_object()) line.fail("is no JSON object");
        const std::string kind = line.text("kind");
        if (is_first_ != (kind == "process"))
            line.fail(is_first_ ? "the first line must be of kind 'process'" : "a second line of kind 'process'");
        is_first_ = false;
        if (file_.ended) line.fail("a line after the one of kind 'end'");
        const auto row = std::ranges::find(kinds, kind, &Kind::name);
        if (row != std::end(kinds)) (this->*row->read)(line);
        return true;
    }

    bool is_first() const { return is_first_; }

    ProgramFile finish() {
        if (is_first_)
            throw UsageError(fmt::format("{}: is empty; a line of kind 'process' must begin it", file_.path));
        std::ranges::stable_sort(file_.launches, {}, &ProgramLaunch::index);
        const auto twice = std::ranges::adjacent_find(file_.launches, {}, &ProgramLaunch::index);
        if (twice != file_.launches.end())
            throw UsageError(fmt::format("{}: two launches have index {}", file_.path, twice->index));
        std::ranges::stable_sort(file_.activities, {}, [](const ProgramActivity& a) {
            return std::tuple(a.correlation, a.graph_node, a.start_ns);
        });
        std::ranges::stable_sort(file_.marks, {}, &ProgramMark::at_ns);
        mend_ranges();
        if (!file_.ended)
            file_.notes.push_back("the process ended before it could write its last records, so some may be missing");
        if (file_.dropped > 0)
            file_.notes.push_back(fmt::format("the profiler lost {}", plural(file_.dropped, "record")));
        return std::move(file_);
    }

    void cut() { file_.notes.push_back("the process died within the last line, which is left out"); }

  private:
    void process(const Line& line) {
        if (const std::string format = line.text("format"); format != format_name)
            line.fail(fmt::format("format is '{}', not '{}'", format, format_name));
        ProgramProcess& process = file_.process;
        process.purpose = line.text("purpose");
        if (std::ranges::find(purposes, process.purpose) == std::end(purposes))
            line.fail(fmt::format("purpose is '{}', not records, bare, names or counters", process.purpose));
        process.pid = line.count("pid");
        if (line.find("rank") != nullptr) process.rank = line.count("rank");
        process.arguments = line.texts("arguments");
        process.start_ns = line.count("start_ns");
    }
    void device(const Line& line) {
        file_.devices.push_back({.id = line.small("id"),
                                 .name = line.text("name"),
                                 .uuid = line.text("uuid"),
                                 .capability = line.counts<2>("capability"),
                                 .multiprocessors = line.small("sms")});
    }
    void text(const Line& line) {
        const std::int64_t id = line.count("id");
        if (id == 0) line.fail("'id' must be at least 1");
        if (!file_.texts.emplace(id, line.text("text")).second) line.fail(fmt::format("a second text {}", id));
    }
    void range(const Line& line) {
        ProgramRange range;
        range.id = line.count("id");
        range.parent = line.count("parent");
        range.text = known_text(line, "text");
        range.thread = line.count("thread");
        range.start_ns = line.count("start_ns");
        range.end_ns = line.count("end_ns");
        if (range.id == 0) line.fail("'id' must be at least 1");
        if (!file_.range_places.emplace(range.id, file_.ranges.size()).second)
            line.fail(fmt::format("a second range {}", range.id));
        file_.ranges.push_back(range);
        if (range.parent != 0) parents_.push_back({line.where(), range.parent});
    }
    void launch(const Line& line) {
        ProgramLaunch launch;
        launch.index = line.launch("index");
        launch.correlation = line.count("correlation");
        launch.call = line.text("call");
        if (line.find("inner")) launch.inner = line.text("inner");
        launch.thread = line.count("thread");
        line.read_times(launch.start_ns, launch.end_ns);
        launch.range = used_range(line);
        file_.launches.push_back(std::move(launch));
    }
    ProgramActivity activity(const Line& line, ActivityKind kind) {
        ProgramActivity activity;
        activity.kind = kind;
        activity.correlation = line.count("correlation");
        activity.graph_node = line.count_or("graph_node", 0);
        line.read_times(activity.start_ns, activity.end_ns);
        activity.device = line.small("device");
        activity.stream = line.small("stream");
        activity.range = used_range(line);
        return activity;
    }
    void kernel(const Line& line) {
        ProgramActivity kernel = activity(line, ActivityKind::kernel);
        kernel.name = known_text(line, "name");
        kernel.grid = line.extent("grid", {std::numeric_limits<int>::max(), 65535, 65535});
        kernel.block = line.extent("block", {1024, 1024, 1024});
        kernel.registers = line.small("registers");
        kernel.static_shared = line.small("static_shared");
        kernel.dynamic_shared = line.small("dynamic_shared");
        kernel.local = line.count("local");
        kernel.cluster = std::max(1, line.find("cluster") ? line.small("cluster") : 1);
        file_.activities.push_back(std::move(kernel));
    }
    void copy(const Line& line) {
        ProgramActivity copy = activity(line, ActivityKind::copy);
        copy.what = line.text("what");
        const std::vector<std::string> memory = line.texts("memory");
        if (memory.size() != 2) line.fail("'memory' must be an array of 2");
        copy.memory = {memory[0], memory[1]};
        copy.bytes = line.count("bytes");
        file_.activities.push_back(std::move(copy));
    }
    void fill(const Line& line) {
        ProgramActivity fill = activity(line, ActivityKind::fill);
        fill.bytes = line.count("bytes");
        file_.activities.push_back(std::move(fill));
    }
    void mark(const Line& line) {
        ProgramMark& mark = file_.marks.emplace_back(ProgramMark{line.launch("launches"), line.count("at_ns")});
        if (const Json* gpu_ms = line.find("gpu_ms")) mark.gpu_ms = line.number(*gpu_ms, "gpu_ms");
        if (const Json* recorded = line.find("recorded"))
            mark.recorded = recorded->is_boolean() && recorded->get<bool>();
    }
    void counters(const Line& line) {
        CountedIteration& counted = file_.counted.emplace_back();
        counted.counters = line.texts("counters");
        counted.passes = line.small("passes");
        counted.seconds = line.number(line.require("seconds"), "seconds");
        if (!(counted.seconds >= 0 && counted.seconds < 1e9)) line.fail("'seconds' must be a time from 0 on");
        counted.first_launch = line.launch("first_launch");
    }
    void counted(const Line& line) {
        if (file_.counted.empty()) line.fail("of kind 'counted' before one of kind 'counters'");
        CountedIteration& iteration = file_.counted.back();
        CountedIteration::Range range{.launch = line.launch("launch"), .values = {}};
        const Json& values = line.array("values");
        if (values.size() != iteration.counters.size())
            line.fail(fmt::format("'values' has {} numbers for {} counters", values.size(), iteration.counters.size()));
        for (const Json& value : values)
            range.values.push_back(value.is_null() ? std::nullopt : std::optional(line.number(value, "values")));
        iteration.ranges.push_back(std::move(range));
    }
    void note(const Line& line) { file_.notes.push_back(one_line(line.text("text"))); }
    void end(const Line& line) {
        file_.dropped = line.count_or("dropped", 0);
        file_.ended = true;
    }

    std::int64_t known_text(const Line& line, const char* name) {
        const std::int64_t id = line.count(name);
        if (!file_.texts.contains(id)) line.fail(fmt::format("'{}' is text {}, which no line before has", name, id));
        return id;
    }
    std::int64_t used_range(const Line& line) {
        const std::int64_t id = line.count_or("range", 0);
        if (id != 0 && !file_.range_places.contains(id)) uses_.push_back({line.where(), id});
        return id;
    }

    struct Use {
        std::size_t line;
        std::int64_t range;
    };

    /// A process that died has not written the ranges that were open: what refers to them then refers to none.
    void mend_ranges() {
        const auto is_known = [&](std::int64_t id) { return id == 0 || file_.range_places.contains(id); };
        for (const std::vector<Use>* uses : {&uses_, &parents_})
            for (const Use& use : *uses)
                if (file_.ended && !is_known(use.range))
                    throw UsageError(
                        fmt::format("{}:{}: range {} has no line of its own", file_.path, use.line, use.range));
        const auto mend = [&](std::int64_t& id) { id = is_known(id) ? id : 0; };
        for (ProgramRange& range : file_.ranges) mend(range.parent);
        for (ProgramLaunch& launch : file_.launches) mend(launch.range);
        for (ProgramActivity& activity : file_.activities) mend(activity.range);
        refuse_circles();
    }

    /// Follows parents from each range until one that was followed before.
    void refuse_circles() const {
        std::vector<std::size_t> seen(file_.ranges.size(), 0);  // by which walk; 0: by none
        for (std::size_t walk = 1; walk <= file_.ranges.size(); ++walk)
            for (std::int64_t id = file_.ranges[walk - 1].id; id != 0;) {
                const std::size_t place = file_.range_places.at(id);
                if (seen[place] == walk)
                    throw UsageError(fmt::format("{}: range {} lies within itself", file_.path, id));
                if (seen[place] != 0) break;
                seen[place] = walk;
                id = file_.ranges[place].parent;
            }
    }

    struct Kind {
        std::string_view name;
        void (Reader::*read)(const Line&);
    };
    static const std::array<Kind, 13> kinds;

    ProgramFile file_;
    bool is_first_ = true;
    std::vector<Use> uses_, parents_;
};

constexpr std::array<Reader::Kind, 13> Reader::kinds{{{"process", &Reader::process},
                                                      {"device", &Reader::device},
                                                      {"text", &Reader::text},
                                                      {"range", &Reader::range},
                                                      {"launch", &Reader::launch},
                                                      {"kernel", &Reader::kernel},
                                                      {"copy", &Reader::copy},
                                                      {"fill", &Reader::fill},
                                                      {"mark", &Reader::mark},
                                                      {"counters", &Reader::counters},
                                                      {"counted", &Reader::counted},
                                                      {"note", &Reader::note},
                                                      {"end", &Reader::end}}};

}  // namespace

const std::string& ProgramFile::text(std::int64_t id) const {
    static const std::string none;
    return id == 0 ? none : texts.at(id);
}

const ProgramRange* ProgramFile::range(std::int64_t id) const {
    return id == 0 ? nullptr : &ranges[range_places.at(id)];
}

ProgramFile read_program_file(std::istream& input, const std::string& path) {
    Reader reader(path);
    std::size_t number = 0;
    for (std::string text; std::getline(input, text);) {
        ++number;
        if (text.empty() && input.eof()) break;
        if (reader.take(text, number)) continue;
        // Only a line that does not end can have been cut.
        if (!input.eof() || reader.is_first()) throw UsageError(fmt::format("{}:{}: is not JSON", path, number));
        reader.cut();
    }
    return reader.finish();
}

std::map<std::string, std::vector<ProgramFile>> read_program_files(const fs::path& folder) {
    std::error_code failed;
    std::vector<fs::path> paths;
    for (const auto& entry : fs::directory_iterator(folder, failed))
        if (entry.path().extension() == ".jsonl") paths.push_back(entry.path());
    if (failed) throw UsageError(fmt::format("{}: cannot be read: {}", folder.string(), failed.message()));
    std::map<std::string, std::vector<ProgramFile>> files;
    for (const fs::path& path : paths) {
        std::ifstream input(path, std::ios::binary);
        if (input && input.peek() == std::ifstream::traits_type::eof()) continue;  // it died before its first record
        if (!input) throw UsageError(fmt::format("{}: cannot be opened", path.string()));
        ProgramFile file = read_program_file(input, path.string());
        files[file.process.purpose].push_back(std::move(file));
    }
    if (files.empty()) throw UsageError(fmt::format("{}: holds no records in a file .jsonl", folder.string()));
    for (auto& [purpose, list] : files)
        std::ranges::sort(list, {}, [](const ProgramFile& file) {
            return std::tuple(file.process.rank.value_or(-1), file.process.pid);
        });
    return files;
}

}  // namespace kbench
