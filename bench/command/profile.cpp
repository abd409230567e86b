// kbench profile: schedules for programs that measure themselves (kbench/profile.h), and reports of what they measured.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <charconv>
#include <filesystem>
#include <map>
#include <optional>

#include "analysis/report/render/render.h"
#include "analysis/report/scopes.h"
#include "analysis/result/scopes.h"
#include "bench/command/command.h"
#include "bench/command/profile_options.h"
#include "bench/device/console.h"
#include "bench/plan/data/read_file.h"
#include "kbench/error.h"
#include "models/base/nearest.h"
#include "models/base/write_file.h"

namespace kbench {
namespace {

namespace fs = std::filesystem;

/// To stdout, or into a file that is not there yet.
void put_into(const std::string& out, const std::string& text) {
    if (out.empty()) return put_text(text);
    if (stands(out)) throw UsageError(fmt::format("--out {}: is there already; choose another or move it away", out));
    write_file_atomically(out, text);
    say("wrote {}\n", out);
}

ScopeProfile read_profile(const fs::path& path) { return parse_scope_profile(read_whole_file(path), path.string()); }

int schedule(const std::vector<std::string>& arguments) {
    ParsedProfile<ScheduleRequest> parsed = parse_schedule_options(arguments);
    ScheduleRequest& request = parsed.request;
    if (!parsed.help.empty()) {
        put_text(parsed.help);
    } else if (!request.check.empty()) {
        put_text(embedded::schedule_text(embedded::parse_schedule(read_whole_file(request.check), request.check)));
    } else {
        if (!request.from.empty()) {
            const ScopeRun run{request.from, {read_profile(request.from)}};
            for (const std::string& label : scope_labels({&run, 1}))
                embedded::add_scope(request.schedule, embedded::glob_of(label), request.from);
            if (request.schedule.scopes.empty())
                throw UsageError(fmt::format("--from {}: has no scope; --scopes '*' takes all", request.from));
        }
        put_into(request.out, embedded::schedule_text(request.schedule));
    }
    return 0;
}

/// The rank in "prof.RANK.json", if that is what `name` is.
std::optional<std::int64_t> rank_in(const std::string& name) {
    constexpr std::string_view begin = "prof.", end = ".json";
    if (!name.starts_with(begin) || !name.ends_with(end) || name.size() <= begin.size() + end.size())
        return std::nullopt;
    std::int64_t rank = 0;
    const char* const last = name.data() + name.size() - end.size();
    const auto [stopped, error] = std::from_chars(name.data() + begin.size(), last, rank);
    return error == std::errc() && stopped == last && rank >= 0 ? std::optional(rank) : std::nullopt;
}

/// Files of the processes that ran together.
ScopeRun read_run(const std::string& name) {
    if (!fs::is_directory(name)) return {name, {read_profile(name)}};
    const fs::path alone = fs::path(name) / "prof.json";
    std::map<std::int64_t, fs::path> ranks;
    std::error_code error;
    for (const auto& entry : fs::directory_iterator(name, error))
        if (const std::optional<std::int64_t> rank = rank_in(entry.path().filename().string()))
            ranks[*rank] = entry.path();
    if (error) throw UsageError(fmt::format("{}: {}", name, error.message()));
    if (stands(alone) && !ranks.empty())
        throw UsageError(fmt::format("{}: holds prof.json and {}, which are of two runs; name the files of one", name,
                                     ranks.begin()->second.filename().string()));
    if (!stands(alone) && ranks.empty())
        throw UsageError(fmt::format("{}: holds neither prof.json nor prof.RANK.json", name));
    ScopeRun run{name, {}};
    if (ranks.empty()) run.processes.push_back(read_profile(alone));
    for (const auto& [rank, path] : ranks) run.processes.push_back(read_profile(path));
    return run;
}

int report(const std::vector<std::string>& arguments) {
    const ParsedProfile<ScopeReportRequest> parsed = parse_scope_report(arguments);
    if (!parsed.help.empty()) {
        put_text(parsed.help);
        return 0;
    }
    const ScopeReportRequest& request = parsed.request;
    std::vector<ScopeRun> runs;
    for (const std::string& name : request.runs) runs.push_back(read_run(name));
    if (request.format == "json") {
        put_into(request.out, scopes_json(runs));
    } else {
        const Document document = scopes_document(runs);
        put_into(request.out,
                 request.format == "markdown" ? render_markdown(document) : written(document, request.format));
    }
    return 0;
}

}  // namespace

int profile_command(const std::vector<std::string>& arguments, const std::string&) {
    if (arguments.empty()) throw UsageError("profile: name what to do: schedule or report");
    const std::string& what = arguments.front();
    if (what == "--help" || what == "-h") {
        put("kbench profile WHAT: {}; `kbench profile schedule --help` and `kbench profile report --help` say more\n",
            fmt::join(profile_words(), ", "));
        return 0;
    }
    const std::vector<std::string> rest(arguments.begin() + 1, arguments.end());
    if (what == "schedule") return schedule(rest);
    if (what == "report") return report(rest);
    throw UsageError(fmt::format("profile {}: {}", what, nearest_name(what, profile_words())));
}

}  // namespace kbench
