// Results in directories: reading one or all of them, and writing one.
#pragma once

#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "analysis/table/table_query.h"

namespace kbench {

/// The folder of a sweep's directory in which its finished points lie.
inline constexpr std::string_view points_folder = "points";

/// Whether a result's file in a directory is called `name`.
bool is_result_name(std::string_view name);

/// The directory's result.json or result.json.gz; empty where it has none. Throws UsageError where it has both.
std::filesystem::path result_file_in(const std::filesystem::path& directory);

/// Decompressed where it is gzip's. Throws UsageError, one line: cannot be read, is no result,
/// or holds a point twice.
ResultFile read_result_file(const std::filesystem::path& path);

/// The points' files in a points folder by name, without what is temporary; none when there is no such folder.
std::vector<std::filesystem::path> point_files(const std::filesystem::path& folder);

/// The results called `name`: a file; a directory's result.json or result.json.gz; without one, its finished points and
/// the results of all directories in it, by name. Throws UsageError when there is none.
std::vector<ResultFile> read_results(const std::string& name);

/// result.json in `directory`, or result.json.gz, by rename; the other of the two is there no more.
void write_result(const std::filesystem::path& directory, const Result& result, bool compressed);

}  // namespace kbench
