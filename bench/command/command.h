// The commands of kbench: one row each, one file each.
#pragma once

#include <cstddef>
#include <filesystem>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "analysis/explain/explain.h"
#include "analysis/report/document.h"
#include "bench/command/help.h"
#include "bench/measure/store/result_files.h"
#include "kbench/result.h"

namespace kbench {

/// `arguments`: what follows the command's name. `command_line`: all of it as typed, for the result. Returns the exit
/// code; throws kbench::Error. `options` are for completion and the man page; `words`: what stands behind the name.
struct Command {
    std::string_view name, what;
    int (*run)(const std::vector<std::string>& arguments, const std::string& command_line);
    std::vector<HelpRow> (*options)() = nullptr;
    std::vector<std::string> (*words)() = nullptr;
};
std::span<const Command> commands();

int run_command(const std::vector<std::string>& arguments, const std::string& command_line);
int completion_command(const std::vector<std::string>& arguments, const std::string& command_line);
int list_command(const std::vector<std::string>& arguments, const std::string& command_line);
std::vector<std::string> list_words();
std::vector<std::string> completion_words();
std::vector<HelpRow> doctor_rows();
/// Subjects of `kbench list` with options of their own: --chip NAME, --set NAME; --id NAME; --ops.
void list_metrics(const std::vector<std::string>& options);
void list_machines(const std::vector<std::string>& options);
void list_providers(const std::vector<std::string>& options);
int table_command(const std::vector<std::string>& arguments, const std::string& command_line);
int compare_command(const std::vector<std::string>& arguments, const std::string& command_line);
int attach_command(const std::vector<std::string>& arguments, const std::string& command_line);
int ab_command(const std::vector<std::string>& arguments, const std::string& command_line);
int claim_command(const std::vector<std::string>& arguments, const std::string& command_line);
int merge_command(const std::vector<std::string>& arguments, const std::string& command_line);
int report_command(const std::vector<std::string>& arguments, const std::string& command_line);
int profile_command(const std::vector<std::string>& arguments, const std::string& command_line);
int micro_command(const std::vector<std::string>& arguments, const std::string& command_line);
int study_command(const std::vector<std::string>& arguments, const std::string& command_line);
int train_command(const std::vector<std::string>& arguments, const std::string& command_line);
int ceilings_command(const std::vector<std::string>& arguments, const std::string& command_line);
int doctor_command(const std::vector<std::string>& arguments, const std::string& command_line);

/// A report that is a file: its word in --format, its name, who writes it. `full` is report_of(explained).
struct ReportFormat {
    std::string_view name, file;
    std::string (*write)(const ExplainedResult& explained, const Document& full);
};
std::span<const ReportFormat> report_formats();
/// Throws UsageError where a report of `format`, "all" or a word of one, stands in `directory` and is of none of
/// `runs`, or no report.
void refuse_other_reports(const std::filesystem::path& directory, std::span<const Environment> runs,
                          const std::string& format = "all");
/// Where reports of `result` go, made if need be: `out`, or where that is empty the result's own folder, if a run has
/// left its lock there. A result that lies elsewhere, such as a committed one, gets kbench-runs/<time>-report.
std::filesystem::path report_directory(const std::string& out, const ResultFile& result);
/// All of them, in `directory`, over those that are there.
void write_reports(const std::filesystem::path& directory, const ExplainedResult& explained);

/// The reports, then on standard output the result as JSON, every figure or the first screen. Files first: who reads
/// standard output may go away.
void write_and_print(const std::filesystem::path& directory, const ExplainedResult& explained, std::string_view format,
                     bool verbose);

/// Says on stderr what cannot be in the result at `path`, a line each; the exit code: 1 where there is anything, else
/// 0.
int tell_impossible(std::span<const std::string> figures, const std::string& path);

/// `document` as `--format` asks: html is one page; else text as wide as the terminal, or as 120 columns of a file.
std::string written(const Document& document, std::string_view format);
/// Columns of the terminal, if standard output is one.
std::optional<std::size_t> terminal_width();

/// $KBENCH_CACHE_DIR, else $XDG_CACHE_HOME/kbench, else ~/.cache/kbench. Throws UsageError where no home is known.
std::string cache_directory();

}  // namespace kbench
