// Where the iterations of a program begin and end, among the kernels, copies and fills of one process.
//
//     const kbench::Iterations found = kbench::find_iterations(file, symbols, kbench::calls_of_model(file));
//     found.unavailable.empty();  // whether there are any; else the whole run is one
//     found.at(0);                // place in file.activities of the first iteration's first
#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "analysis/program/program_file.h"
#include "analysis/program/symbols.h"

namespace kbench {

/// `count` iterations of `period` activities each, one after another.
struct Iterations {
    std::size_t begin = 0, period = 0, count = 0;
    std::string unavailable = {};  ///< why the whole run is one iteration; empty where iterations were found

    std::size_t at(std::size_t iteration) const { return begin + iteration * period; }
};

/// Calls of a range of interest: the places of its first and its last activity, in order.
using Spans = std::vector<std::pair<std::size_t, std::size_t>>;

/// The calls of the model itself: of the module that lies in no other.
Spans calls_of_model(const ProgramFile& file);
/// The calls of ranges called `name`: a range of the program's own, a module's place in the model, or an op.
Spans calls_of_range(const ProgramFile& file, const std::string& name);

/// The iterations of a file: the repetition of its symbols (repetition.h), begun where the longest of the `calls`
/// begin. Where there are none, where the host waits longest before a launch. The kernels of a graph are not divided.
/// Where a call holds several periods, what repeats is a part of the model, and there are no iterations.
Iterations find_iterations(const ProgramFile& file, std::span<const Symbol> symbols, const Spans& calls);

/// Iterations as the user says: each from the begin of a call to the begin of the next, the longest stretch of which
/// all launch the same.
Iterations iterations_from(std::span<const Symbol> symbols, const Spans& calls);

/// The longest stretch of `symbols` in which `iteration` stands back to back; nothing where it does not occur.
std::optional<Iterations> iterations_like(std::span<const Symbol> symbols, std::span<const Symbol> iteration);
/// The places of all `iteration`s in `symbols` right behind another one, so that what came before each is known.
std::vector<std::size_t> iterations_behind_another(std::span<const Symbol> symbols, std::span<const Symbol> iteration);

/// Iterations by number, from 0 and without `end`; nothing: to the last one.
struct IterationRange {
    std::size_t begin = 0;
    std::optional<std::size_t> end;
};
/// "A:B", either of which may be left out. Throws UsageError for anything else.
IterationRange iteration_range(const std::string& text);

/// Which of the found iterations are used, [first, last): those that `asked` names, see iteration_range(). Where it is
/// empty, all but the first, which warms up, unless there are fewer than three. Throws UsageError where there are not
/// as many.
std::pair<std::size_t, std::size_t> used_iterations(const Iterations& found, const std::string& asked);

}  // namespace kbench
