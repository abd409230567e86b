// The order of the folders, and of the rooms inside bench/, bench/measure/ and analysis/: each includes only itself and
// those to its left, and no file one that includes it. What means something to no device includes no device's headers;
// what profiles knows no plan and no model.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <functional>
#include <iterator>
#include <map>
#include <optional>
#include <regex>
#include <set>
#include <sstream>
#include <string>
#include <string_view>
#include <vector>

namespace {

struct Folder {
    std::string name;
    std::set<std::string> may_include;
    bool knows_devices;
};

const std::vector<Folder> folders{
    {"kbench", {"kbench"}, false},             // include/kbench, which is all that an installed kbench has
    {"profile", {"kbench", "profile"}, true},  // what a user's program loads
    {"models", {"kbench", "models"}, false},
    {"analysis", {"kbench", "models", "analysis"}, false},
    {"kernels", {"kbench", "models", "analysis", "kernels"}, true},
    {"cpu", {"kbench", "models", "analysis", "cpu"}, true},
    {"bench", {"kbench", "profile", "models", "analysis", "kernels", "cpu", "bench"}, true},
};

/// Where a folder stands, and a header that is included by its name in it, from the root.
std::string from_root(const std::string& path) {
    return path == "kbench" || path.starts_with("kbench/") ? "include/" + path : path;
}

/// A folder whose rooms stand in an order of their own. Files outside of them may include all, and are named here.
struct House {
    std::string name;
    std::vector<std::string> rooms;
    std::set<std::string> files = {};
};

const std::vector<House> houses{
    {"analysis", {"result", "machine", "program", "facts", "explain", "compare", "study", "table", "report"}},
    {"bench", {"device", "profile", "plan", "measure", "micro", "command"}, {"main.cpp", "cuda_on_demand.cpp"}},
    {"bench/measure", {"machine", "point", "store", "sweep", "study", "training"}},
};

const std::regex device_header(
    R"((cuda|cublas|cupti|nvml|cudnn|cufft|curand|cusolver|cusparse|nvtx|nvperf|dnnl|cblas|openblas|mma\.h).*|)"
    R"((oneapi|cooperative_groups|cub|thrust|cute|cutlass)/.*)");

struct Include {
    int line;
    std::string header;
};

std::vector<Include> includes_of(const std::string& text) {
    static const std::regex include(R"re(^\s*#\s*include\s*[<"]([^>"]+)[>"])re");
    std::vector<Include> found;
    std::istringstream lines(text);
    std::string line;
    for (int number = 1; std::getline(lines, line); ++number)
        if (std::smatch match; std::regex_search(line, match, include)) found.push_back({number, match[1]});
    return found;
}

/// The parts of a path between slashes; "bench", "plan" and "plan.h".
std::vector<std::string> parts_of(const std::string& path) {
    std::vector<std::string> parts;
    std::istringstream text(path);
    for (std::string part; std::getline(text, part, '/');) parts.push_back(part);
    return parts;
}

/// One line "path:line: ..." for each #include in `text`, the contents of `path`, that `folder` may not have.
std::vector<std::string> violations(const Folder& folder, const std::string& path, const std::string& text) {
    std::vector<std::string> found;
    for (const auto& [line, header] : includes_of(text)) {
        const std::string where = path + ":" + std::to_string(line) + ": includes " + header;
        const std::string first = header.substr(0, header.find('/'));
        const bool is_ours = std::ranges::any_of(folders, [&](const Folder& f) { return f.name == first; });
        if (is_ours && header != first && !folder.may_include.contains(first))
            found.push_back(where + ", which is to the right of " + folder.name + "/");
        if (header.starts_with(".")) found.push_back(where + "; includes are written from the root of the repository");
        if (!folder.knows_devices && std::regex_match(header, device_header))
            found.push_back(where + ", a device's header, in " + folder.name + "/");
    }
    return found;
}

/// The same for the rooms of its house: includes of rooms that stand later, and rooms that nobody has given a place.
std::vector<std::string> room_violations(const std::string& path, const std::string& text) {
    std::vector<std::string> found;
    for (const House& house : houses) {
        const auto room_of = [&](const std::string& file) -> std::optional<std::string> {
            if (!file.starts_with(house.name + "/")) return std::nullopt;
            const std::vector<std::string> within = parts_of(file.substr(house.name.size() + 1));
            return within.size() > 1 ? std::optional(within.front()) : std::nullopt;
        };
        const auto place = [&](const std::string& room) { return std::ranges::find(house.rooms, room); };
        const std::optional<std::string> own = room_of(path);
        if (!own && path.starts_with(house.name + "/") && !house.files.contains(path.substr(house.name.size() + 1)))
            found.push_back(path + ": stands in no room of " + house.name + "/");
        if (!own) continue;
        if (place(*own) == house.rooms.end())
            found.push_back(path + ": " + *own + "/ has no place among the rooms of " + house.name + "/");
        for (const auto& [line, header] : includes_of(text))
            if (const std::optional<std::string> other = room_of(header); other && place(*other) > place(*own))
                found.push_back(path + ":" + std::to_string(line) + ": includes " + header +
                                ", which is to the right of " + house.name + "/" + *own + "/");
    }
    return found;
}

/// Contents of a file by its path from the root; none where there is no such file of ours.
using ReadFile = std::function<std::optional<std::string>(const std::string& path)>;

/// Whether a library that embeds the profiler may not have to know of `header`.
bool is_of_plan_or_model(const std::string& header) {
    const std::vector<std::string> parts = parts_of(header);
    if (parts.size() < 2) return false;
    if (parts[0] == "models") return parts[1] != "base";
    static const std::set<std::string> of_steps{"op.h", "step.h", "provider.h", "kernel.h", "reference.h"};
    if (parts[0] == "kbench") return of_steps.contains(parts[1]);
    return parts[0] == "bench" && parts.size() > 2 && parts[1] != "device" && parts[1] != "profile";
}

/// One line for each way from `path` to a header of a plan or a model, however many headers lie between.
std::vector<std::string> ways_to_models(const std::string& path, const ReadFile& read) {
    std::vector<std::string> found;
    std::set<std::string> seen;
    const std::function<void(const std::string&, const std::string&)> follow = [&](const std::string& file,
                                                                                   const std::string& way) {
        const std::optional<std::string> text = read(file);
        if (!text || !seen.insert(file).second) return;
        for (const Include& include : includes_of(*text)) {
            if (is_of_plan_or_model(include.header))
                found.push_back(way + " includes " + include.header);
            else
                follow(include.header, way + " includes " + include.header + ", which");
        }
    };
    follow(path, path);
    return found;
}

/// x.h and x.cpp are one unit, named as its header is included.
std::string unit_of(const std::string& path) {
    const std::size_t begin = path.starts_with("include/") ? std::string_view("include/").size() : 0;
    return path.substr(begin, path.rfind('.') - begin);
}

using Units = std::map<std::string, std::set<std::string>>;  // the units that each includes

Units units_of(const std::vector<std::string>& paths, const ReadFile& read) {
    Units units;
    for (const std::string& path : paths)
        for (const auto& [line, header] : includes_of(read(path).value()))
            if (unit_of(header) != unit_of(path)) units[unit_of(path)].insert(unit_of(header));
    return units;
}

/// One line for each unit from which includes lead back to it over units that stand behind it in the alphabet, so that
/// each circle is told once.
std::vector<std::string> circles(const Units& units) {
    std::vector<std::string> found;
    for (const auto& [first, ignored] : units) {
        std::set<std::string> seen;
        const std::function<bool(const std::string&, const std::string&)> follow = [&](const std::string& unit,
                                                                                       const std::string& way) {
            const auto includes = units.find(unit);
            if (includes == units.end() || unit < first || !seen.insert(unit).second) return false;
            if (includes->second.contains(first)) found.push_back(way + " includes " + first);
            return includes->second.contains(first) ||
                   std::ranges::any_of(includes->second, [&](const std::string& next) {
                       return follow(next, way + " includes " + next + ", which");
                   });
        };
        follow(first, first);
    }
    return found;
}

/// Accounts of a point, which know its facts and each other's plain results, and not how these are found.
const std::set<std::string> siblings{
    "analysis/explain/attribution",    "analysis/explain/cross_checks", "analysis/explain/cycles",
    "analysis/explain/roof_times",     "analysis/explain/serial_chain", "analysis/explain/elasticity",
    "analysis/explain/executed",       "analysis/explain/impossible",   "analysis/explain/judge",
    "analysis/explain/time_breakdown", "analysis/explain/roofline",     "analysis/explain/theft",
    "analysis/explain/units"};

const Folder& folder(const std::string& name) { return *std::ranges::find(folders, name, &Folder::name); }

std::vector<std::string> in(const std::string& name, const std::string& text) {
    return violations(folder(name), name + "/x.cpp", text);
}

std::optional<std::string> read_source(const std::string& path) {
    std::ifstream file(std::filesystem::path(KBENCH_SOURCE_DIR) / from_root(path));
    if (!file) return std::nullopt;
    return std::string{std::istreambuf_iterator<char>(file), {}};
}

/// Paths of all sources below a folder, from the root.
std::vector<std::string> sources(const std::string& below) {
    const std::set<std::string> extensions{".h", ".cuh", ".cpp", ".cu", ".in"};
    const std::filesystem::path root = KBENCH_SOURCE_DIR;
    std::vector<std::string> paths;
    for (const auto& entry : std::filesystem::recursive_directory_iterator(root / below))
        if (entry.is_regular_file() && extensions.contains(entry.path().extension().string()))
            paths.push_back(entry.path().lexically_relative(root).string());
    EXPECT_GT(paths.size(), 1u) << "the scan found almost nothing below " << root / below;
    return paths;
}

TEST(Layering, NoFolderIncludesOneToItsRight) {
    for (const Folder& f : folders)
        for (const std::string& path : sources(from_root(f.name)))
            for (const std::string& line : violations(f, path, read_source(path).value())) ADD_FAILURE() << line;
}

TEST(Layering, NoRoomIncludesOneToItsRight) {
    for (const char* house : {"analysis", "bench"})
        for (const std::string& path : sources(house))
            for (const std::string& line : room_violations(path, read_source(path).value())) ADD_FAILURE() << line;
}

TEST(Layering, NoFilesIncludeEachOther) {
    std::vector<std::string> all;
    for (const Folder& f : folders) std::ranges::copy(sources(from_root(f.name)), std::back_inserter(all));
    for (const std::string& circle : circles(units_of(all, read_source))) ADD_FAILURE() << circle;
}

TEST(Layering, AccountsOfAPointDoNotIncludeEachOther) {
    const Units units = units_of(sources("analysis/explain"), read_source);
    for (const std::string& account : siblings) {
        ASSERT_TRUE(units.contains(account)) << account;
        for (const std::string& included : units.at(account))
            EXPECT_FALSE(siblings.contains(included)) << account << " includes " << included;
    }
}

TEST(Layering, DevicesAndProfilingKnowNoPlanAndNoModel) {
    for (const char* room : {"bench/device", "bench/profile"})
        for (const std::string& path : sources(room))
            for (const std::string& way : ways_to_models(path, read_source)) ADD_FAILURE() << way;
}

TEST(LayeringScanner, ReportsEachStepToTheRightWithItsLine) {
    EXPECT_THAT(in("models", "#pragma once\n#include \"analysis/explain/time_breakdown.h\"\n"),
                testing::ElementsAre(
                    "models/x.cpp:2: includes analysis/explain/time_breakdown.h, which is to the right of models/"));
    EXPECT_EQ(
        in("analysis", "#include \"kernels/check.h\"\n#include \"cpu/blas.h\"\n#include \"bench/plan/plan.h\"").size(),
        3u);
    EXPECT_EQ(in("kbench", "#include \"models/ops/gemm.h\"\n#include \"analysis/result/result.h\"").size(), 2u);
    EXPECT_EQ(in("cpu", "#include \"bench/plan/plan.h\"").size(), 1u);
    EXPECT_EQ(in("kernels", "#include \"bench/plan/plan.h\"").size(), 1u);
    EXPECT_EQ(in("profile", "#include \"models/base/write_file.h\"\n#include \"profile/schedule.h\"").size(), 1u);
    EXPECT_EQ(in("analysis", "#include \"profile/schedule.h\"").size(), 1u);
}

TEST(LayeringScanner, ReportsKernelsAndCpuIncludingEachOther) {
    EXPECT_EQ(in("kernels", "#include \"cpu/native/softmax.h\"").size(), 1u);
    EXPECT_EQ(in("cpu", "#include \"kernels/softmax.h\"").size(), 1u);
}

TEST(LayeringScanner, ReportsDeviceHeadersInModelsAndAnalysis) {
    for (const char* header : {"cuda.h", "cuda_runtime.h", "cuda_fp16.h", "cublas_v2.h", "cublasLt.h", "cupti.h",
                               "cupti_range_profiler.h", "nvml.h", "cudnn.h", "dnnl.hpp", "oneapi/dnnl/dnnl.hpp",
                               "cblas.h", "cub/cub.cuh", "cooperative_groups/reduce.h"})
        for (const char* name : {"kbench", "models", "analysis"})
            EXPECT_EQ(in(name, "#include <" + std::string(header) + ">").size(), 1u) << name << " " << header;
    EXPECT_TRUE(in("kernels", "#include <cuda_runtime.h>").empty());
    EXPECT_TRUE(in("cpu", "#include <dnnl.hpp>").empty());
}

TEST(LayeringScanner, SeesIncludesHoweverTheyAreSpaced) {
    EXPECT_EQ(in("models", "  #  include\t\"bench/plan/plan.h\"  // why not\r\n").size(), 1u);
    EXPECT_EQ(in("models", "#include<cuda_runtime.h>").size(), 1u);
    EXPECT_EQ(in("models", "#include \"../bench/plan/plan.h\"").size(), 1u);
}

TEST(LayeringScanner, AcceptsWhatIsAllowed) {
    EXPECT_TRUE(in("models", "#include \"kbench/op.h\"\n#include <vector>\n#include <fmt/format.h>\n").empty());
    EXPECT_TRUE(in("bench", "#include \"kbench/op.h\"\n#include \"kernels/check.h\"\n#include \"cpu/blas.h\"").empty());
    EXPECT_TRUE(in("models", "// #include \"bench/plan/plan.h\" would be wrong\n").empty());
}

TEST(LayeringScanner, ReportsARoomThatLooksToItsRight) {
    EXPECT_THAT(
        room_violations("bench/device/device.h", "#include \"bench/profile/profiler.h\"\n"),
        testing::ElementsAre(
            "bench/device/device.h:1: includes bench/profile/profiler.h, which is to the right of bench/device/"));
    const std::map<std::string, std::string> wrong{
        {"bench/device/cuda/x.cpp", "bench/measure/machine/cuda/ceilings.h"},
        {"bench/profile/x.h", "bench/plan/plan.h"},
        {"bench/plan/data/x.cpp", "bench/measure/point/verify.h"},
        {"bench/measure/training/x.cpp", "bench/micro/session.h"},
        {"bench/measure/machine/x.cpp", "bench/measure/point/sampler.h"},
        {"bench/measure/point/x.cpp", "bench/measure/store/point_store.h"},
        {"bench/measure/store/x.h", "bench/measure/sweep/sweep.h"},
        {"bench/measure/sweep/x.h", "bench/measure/study/plan.h"},
        {"bench/measure/study/x.h", "bench/measure/training/train.h"},
        {"bench/micro/x.cpp", "bench/command/command.h"},
        {"analysis/result/x.h", "analysis/machine/machine.h"},
        {"analysis/machine/x.h", "analysis/program/program_file.h"},
        {"analysis/program/x.h", "analysis/facts/counters.h"},
        {"analysis/facts/x.h", "analysis/explain/time_breakdown.h"},
        {"analysis/explain/x.h", "analysis/compare/compare.h"},
        {"analysis/compare/x.h", "analysis/table/table.h"},
        {"analysis/table/x.h", "analysis/report/writers.h"},
    };
    for (const auto& [path, header] : wrong) {
        EXPECT_EQ(room_violations(path, "#include \"" + header + "\"").size(), 1u) << path;
        EXPECT_TRUE(room_violations(header, "#include \"" + path + "\"").empty()) << "the other way round";
    }
    EXPECT_EQ(room_violations("bench/attic/x.h", "").size(), 1u) << "a room without a place";
    EXPECT_EQ(room_violations("bench/measure/attic/x.h", "").size(), 1u);
    EXPECT_EQ(room_violations("bench/measure/x.h", "").size(), 1u) << "a file without a room";
}

TEST(LayeringScanner, LetsRoomsIncludeThemselvesAndOtherFolders) {
    EXPECT_TRUE(
        room_violations("bench/plan/x.h", "#include \"bench/plan/plan.h\"\n#include \"analysis/report/writers.h\"")
            .empty());
    EXPECT_TRUE(room_violations("bench/main.cpp", "#include \"bench/command/command.h\"").empty());
    EXPECT_TRUE(room_violations("bench/measure/point/x.cpp", "#include \"bench/version.h\"").empty());
    EXPECT_TRUE(room_violations("kernels/gemm/x.h", "#include \"kernels/probe/span.h\"").empty());
}

TEST(LayeringScanner, FindsCirclesHoweverManyFilesAreInThem) {
    const std::map<std::string, std::string> planted{{"x/a.h", "#include \"x/b.h\"\n#include \"x/d.h\""},
                                                     {"x/b.h", "#include \"x/c.h\""},
                                                     {"x/c.cpp", "#include \"x/c.h\"\n#include \"x/a.h\""},
                                                     {"x/d.h", "#include <vector>"},
                                                     {"include/kbench/f.h", "#include \"kbench/g.h\""},
                                                     {"include/kbench/g.cpp", "#include \"kbench/f.h\""},
                                                     {"x/e.cpp", "#include \"x/a.h\""}};
    std::vector<std::string> paths;
    for (const auto& [path, text] : planted) paths.push_back(path);
    const auto read = [&](const std::string& path) { return std::optional(planted.at(path)); };
    EXPECT_THAT(circles(units_of(paths, read)),
                testing::ElementsAre("kbench/f includes kbench/g, which includes kbench/f",
                                     "x/a includes x/b, which includes x/c, which includes x/a"));
}

TEST(LayeringScanner, FindsAModelBehindOtherHeaders) {
    const std::map<std::string, std::string> planted{
        {"bench/profile/direct.h", "#include \"models/cost.h\"\n#include \"bench/plan/step.h\""},
        {"bench/profile/far.h", "#include <vector>\n#include \"analysis/result/near.h\""},
        {"bench/profile/installed.h", "#include \"kbench/result.h\""},
        {"kbench/result.h", "#include \"kbench/op.h\""},
        {"analysis/result/near.h", "#include \"bench/profile/far.h\"\n#include \"models/model.h\""},
        {"bench/profile/right.h", "#include \"kbench/error.h\"\n#include \"bench/device/device.h\""},
        {"bench/device/device.h", "#include <cuda_runtime.h>"},
    };
    const auto read = [&](const std::string& path) {
        const auto found = planted.find(path);
        return found != planted.end() ? std::optional(found->second) : std::nullopt;
    };
    EXPECT_THAT(ways_to_models("bench/profile/direct.h", read),
                testing::ElementsAre("bench/profile/direct.h includes models/cost.h",
                                     "bench/profile/direct.h includes bench/plan/step.h"));
    EXPECT_THAT(
        ways_to_models("bench/profile/far.h", read),
        testing::ElementsAre("bench/profile/far.h includes analysis/result/near.h, which includes models/model.h"));
    EXPECT_THAT(ways_to_models("bench/profile/installed.h", read),
                testing::ElementsAre("bench/profile/installed.h includes kbench/result.h, which includes kbench/op.h"));
    EXPECT_TRUE(ways_to_models("bench/profile/right.h", read).empty());
}

}  // namespace
