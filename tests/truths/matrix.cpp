// Writes the matrix of known-answer tests as a table and as JSON.
#include "tests/truths/matrix.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstddef>

namespace kbench {
namespace {

using Json = nlohmann::ordered_json;

constexpr std::size_t columns = 8;
using Cells = std::array<std::string, columns>;

std::string said(const Judgement& row) {
    if (row.bound.empty()) return "-";
    return fmt::format("{}{} by {}", row.bound, row.level.empty() ? "" : ", " + row.level, row.rule);
}

std::string result(const Judgement& row) {
    std::string text(name(row.result));
    if (row.attempts > 1) text += fmt::format(" at attempt {}", row.attempts);
    return row.why.empty() ? text : fmt::format("{}: {}", text, row.why);
}

std::vector<Cells> lines_of(const Judgement& row) {
    std::vector<Cells> lines{Cells{row.truth, row.planted, said(row), "-", "-", "-", "-", result(row)}};
    for (std::size_t i = 0; i < row.figures.size(); ++i) {
        if (i > 0) lines.emplace_back();
        const JudgedFigure& figure = row.figures[i];
        lines[i][3] = figure.what;
        lines[i][4] = fmt::format("{:.6g}", figure.planted);
        lines[i][5] = figure.measured ? fmt::format("{:.6g}", *figure.measured) : "-";
        lines[i][6] = figure.measured ? fmt::format("{:+.2f}", 100 * figure.off) : "-";
    }
    return lines;
}

std::ptrdiff_t count(std::span<const Judgement> rows, TruthResult which) {
    return std::ranges::count(rows, which, &Judgement::result);
}

}  // namespace

std::string matrix_text(std::span<const Judgement> rows) {
    std::vector<Cells> lines{Cells{"truth", "planted", "said", "figure", "planted", "measured", "off %", "result"}};
    for (const Judgement& row : rows)
        for (Cells& line : lines_of(row)) lines.push_back(std::move(line));
    std::array<std::size_t, columns> width{};
    for (const Cells& line : lines)
        for (std::size_t c = 0; c < columns; ++c) width[c] = std::max(width[c], line[c].size());
    std::string text;
    const auto write = [&](const Cells& line, char fill) {
        for (std::size_t c = 0; c < columns; ++c)
            text += fmt::format("| {}{} ", line[c], std::string(width[c] - line[c].size(), fill));
        text += "|\n";
    };
    write(lines.front(), ' ');
    write({}, '-');
    for (std::size_t i = 1; i < lines.size(); ++i) write(lines[i], ' ');
    for (const Judgement& row : rows)
        if (!row.account.empty()) text += fmt::format("\n{}: {}\n{}", row.truth, result(row), row.account);
    text += fmt::format("\n{} truths: {} ok, {} unknown, {} WRONG, {} not here: {}\n", rows.size(),
                        count(rows, TruthResult::ok), count(rows, TruthResult::cannot_tell),
                        count(rows, TruthResult::wrong), count(rows, TruthResult::not_here),
                        passes(rows) ? "passed" : "FAILED");
    return text;
}

Json matrix_json(std::span<const Judgement> rows, std::uint64_t seed) {
    Json document{{"schema", "kbench.truths/1"}, {"seed", seed}, {"passed", passes(rows)}, {"truths", Json::array()}};
    for (const Judgement& row : rows) {
        Json figures = Json::array();
        for (const JudgedFigure& figure : row.figures)
            figures.push_back({{"figure", figure.what},
                               {"planted", figure.planted},
                               {"measured", figure.measured ? Json(*figure.measured) : Json()},
                               {"off_percent", figure.measured ? Json(100 * figure.off) : Json()},
                               {"holds", figure.holds}});
        document["truths"].push_back({{"truth", row.truth},
                                      {"planted", row.planted},
                                      {"bound", row.bound},
                                      {"level", row.level},
                                      {"rule", row.rule},
                                      {"figures", figures},
                                      {"result", name(row.result)},
                                      {"attempts", row.attempts},
                                      {"why", row.why}});
    }
    return document;
}

bool passes(std::span<const Judgement> rows) {
    return count(rows, TruthResult::wrong) == 0 && count(rows, TruthResult::cannot_tell) <= most_untold &&
           count(rows, TruthResult::ok) > 0;
}

}  // namespace kbench
