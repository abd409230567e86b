// `kbench compare` for people: a document for a terminal or as Markdown.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <ranges>
#include <utility>

#include "analysis/explain/conclusions.h"
#include "analysis/machine/machine.h"
#include "analysis/report/render/render.h"
#include "analysis/report/sections/sections.h"
#include "analysis/report/writers.h"
#include "models/base/format.h"
#include "models/base/lists.h"

namespace kbench {
namespace {

/// Puts headings, tables and sentences one below the other, as sections side by side.
class Page {
  public:
    void heading(std::string title, bool is_folded = false) {
        sections_.push_back({.title = std::move(title), .is_folded = is_folded});
    }
    void table(Rows rows) { sections_.back().add(std::move(rows)); }
    void chart(Chart chart) { sections_.back().add(std::move(chart)); }
    /// A sentence under a word.
    void item(std::string about, std::string text) {
        std::vector<Block>& blocks = sections_.back().blocks;
        if (blocks.empty() || !std::holds_alternative<Facts>(blocks.back())) blocks.push_back(Facts{});
        std::get<Facts>(blocks.back()).facts.push_back({std::move(about), std::move(text), ""});
    }
    void lead(std::string text) { sections_.back().add(Paragraph{std::move(text), Tone::lead}); }
    void note(std::string text) { sections_.back().add(Paragraph{std::move(text)}); }
    /// The sections of another page, under a heading of their own.
    void under(std::string title, Page&& page) {
        sections_.push_back({std::move(title), {}, std::move(page.sections_)});
    }
    std::vector<Section> sections() && { return std::move(sections_); }

  private:
    std::vector<Section> sections_;
};

/// All three with the decimals of the value.
std::string bracket(const Interval& interval, int digits = 3) {
    const int decimals = decimals_for(interval.value, digits);
    return fmt::format("[{:.{}f}, {:.{}f}]", interval.low, decimals, interval.high, decimals);
}

std::string ratio_cell(const Interval& ratio, int digits = 3) {
    return ratio.value > 0 ? significant(ratio.value, digits) : "";
}
std::string interval_cell(const Interval& ratio, int digits = 3) {
    return ratio.value > 0 ? bracket(ratio, digits) : "";
}

/// Changes are read in per mille, machines in factors.
int ratio_digits(const Interval& ratio) { return ratio.value > 0.5 && ratio.value < 2 ? 4 : 3; }

std::string cell(const std::optional<double>& value) { return value ? significant(*value) : ""; }

std::string device_of(const NamedResult& run) {
    const Environment& environment = run.result.environment;
    const bool is_gpu = environment.gpu && (run.result.points.empty() || run.result.points.front().backend() == "cuda");
    return is_gpu ? device_name(*environment.gpu)
                  : fmt::format("{}, {} threads", environment.host.cpu, environment.host.threads);
}

void write_runs(Page& page, const Comparison& comparison) {
    page.heading("The runs: ratios are the later one's time over A's, with 95 % intervals");
    Rows table{{words(""), words("name"), words("device"), words("measured", 1), words("file", 2)}};
    for (std::size_t r = 0; r < comparison.runs.size(); ++r) {
        const NamedResult& run = *comparison.runs[r];
        table.rows.push_back(
            {run_letter(r), run.name, device_of(run), run.result.environment.started_at.substr(0, 10), run.path});
    }
    page.table(std::move(table));
}

std::string change_cell(const std::optional<Change>& change) { return change ? std::string(name(*change)) : ""; }

std::vector<std::string> titles_of(const PairComparison& pair) {
    std::vector<const Point*> points;
    for (const PointComparison& point : pair.points) points.push_back(point.a.point);
    return short_titles(points);
}

/// What short titles of several points leave out is said once.
std::string common_title(const PairComparison& pair) {
    if (pair.points.size() < 2) return ": " + pair.points.front().title;
    const Point& first = *pair.points.front().a.point;
    std::string text;
    for (const Axis& axis : axes()) {
        // Words, such as a precision, stand in the tables below.
        const AxisValue* value = first.axes.find(axis.name);
        if (value == nullptr || axis.kind == AxisKind::word || (!axis.always_told && first.axes.is_usual(axis)))
            continue;
        const auto is_same = [&](const PointComparison& p) {
            const AxisValue* other = p.a.point->axes.find(axis.name);
            return other != nullptr && *other == *value;
        };
        if (std::ranges::all_of(pair.points, is_same)) text += " " + said(axis, *value);
    }
    return text.empty() ? text : ":" + text;
}

std::string verdict_cell(const PointSide& side) {
    if (!side.verdict) return {};
    const bool is_not_known = side.verdict->bound == Bound::not_identifiable;
    return is_not_known && side.bandwidth.answer == BandwidthAnswer::no ? "not bandwidth"
                                                                        : std::string(name(side.verdict->bound));
}

/// Every point on one line, before the details of each.
void write_summary(Page& page, const PairComparison& pair, const std::string& b) {
    constexpr std::string_view naive_words[] = {"bandwidth", "FLOP/s", "no evidence: either", "neither", ""};
    const std::vector<std::string> titles = titles_of(pair);
    Rows table{{words("point"), figures(b + "/A"), figures("DRAM A/" + b, 3), figures("FLOP/s A/" + b, 3),
                words("times follow", 1), words("A's verdict", 2), words(b + "'s verdict")}};
    bool is_known = false;
    for (std::size_t p = 0; p < pair.points.size(); ++p) {
        const PointComparison& point = pair.points[p];
        is_known |= point.a.verdict || point.b.verdict;
        table.rows.push_back(
            {titles[p], ratio_cell(point.ratio), cell(point.naive.bandwidth), cell(point.naive.flops),
             point.same_roofs ? "the same roofs" : std::string(naive_words[static_cast<std::size_t>(point.naive.fit)]),
             verdict_cell(point.a), verdict_cell(point.b)});
    }
    if (!is_known || pair.points.size() < 2) return;
    page.heading("Is it bandwidth? Roofs, what the whole follows, and the verdicts");
    page.table(std::move(table));
}

/// Nobody takes a larger ratio for what runs differ by anyhow.
constexpr double doubtful_ratio = 1.25;

/// What single runs cannot tell, and what that is known from.
std::string spread_note(const PointComparison& point) {
    std::string note =
        point.spread
            ? fmt::format("two single runs: cannot tell below {:.2g} % ({}, deviation {:.2g} %)",
                          100 * point.spread->least_difference(), point.spread->basis, 100 * point.spread->deviation)
            : std::string(
                  "two single runs: what differs from run to run is not in the intervals and not known here (kbench doctor --noise measures it, kbench ab compares in turn)");
    if (point.other_card) note += "; these are two cards of one kind, which may differ by more";
    return note;
}

void write_end_to_end(Page& page, const PairComparison& pair, const std::string& b) {
    const std::vector<std::string> titles = titles_of(pair);
    page.heading(fmt::format("End to end{}", common_title(pair)));
    Rows table{{words("point"), figures("A ms"), figures(b + " ms"), figures(b + "/A"), figures("interval"),
                figures("A TFLOP/s", 1), figures(b + " TFLOP/s", 1), figures("A GB/s", 2), figures(b + " GB/s", 2),
                words("change")}};
    const auto per_ms = [](double amount, const Interval& ms, double unit) {
        return amount > 0 && ms.value > 0 ? significant(amount / ms.value * unit) : std::string();
    };
    for (std::size_t p = 0; p < pair.points.size(); ++p) {
        const PointComparison& point = pair.points[p];
        const int digits = ratio_digits(point.ratio);
        table.rows.push_back({titles[p], significant(point.a.ms.value, time_digits),
                              significant(point.b.ms.value, time_digits), ratio_cell(point.ratio, digits),
                              interval_cell(point.ratio, digits), per_ms(point.a.point->cost.flops, point.a.ms, 1e-9),
                              per_ms(point.b.point->cost.flops, point.b.ms, 1e-9),
                              per_ms(point.a.all.dram_bytes, point.a.ms, 1e-6),
                              per_ms(point.b.all.dram_bytes, point.b.ms, 1e-6), change_cell(point.change)});
    }
    page.table(std::move(table));
    std::vector<std::string> notes;
    for (const PointComparison& point : pair.points)
        if (point.ratio.value > 1 / doubtful_ratio && point.ratio.value < doubtful_ratio)
            add_once(notes, spread_note(point));
    for (std::string& note : notes) page.note(std::move(note));
    if (!pair.left_out.empty())
        page.note(fmt::format("left out, as only one of the two measured them: {}{}", pair.left_out.size(),
                              pair.left_out.size() == 1 ? " point (" + pair.left_out.front() + ")" : " points"));
}

std::string roof_cell(const std::optional<Roof>& roof, bool bytes) {
    if (!roof) return "none";
    return fmt::format("{}{}", bytes ? format_bytes_per_s(roof->per_s) : format_flop_per_s(roof->per_s),
                       roof->origin == Origin::estimated ? " (datasheet)" : "");
}

void write_roofs(Page& page, const PointComparison& point) {
    const PointRoofs &a = point.a.roofs, &b = point.b.roofs;
    if (!a.unavailable.empty() && !b.unavailable.empty()) return;
    Rows table{{words("roof"), figures("A"), figures(point.b.letter), figures("A/" + point.b.letter)}};
    const auto add = [&](std::string what, std::optional<Roof> PointRoofs::*roof, bool bytes) {
        table.rows.push_back({std::move(what), roof_cell(a.*roof, bytes), roof_cell(b.*roof, bytes),
                              a.*roof && b.*roof ? significant((a.*roof)->per_s / (b.*roof)->per_s) : ""});
    };
    const std::string precision(name(point.a.point->precision()));
    add("DRAM", &PointRoofs::bandwidth, true);
    add(precision + " matrix products", &PointRoofs::matrix, false);
    add(precision + " everything else", &PointRoofs::plain, false);
    page.table(std::move(table));
}

/// "compute 94 %"
std::string bound_cell(const GroupSide& side) {
    const std::optional<Bound> bound = side.bound();
    if (!bound) return {};
    std::string word = *bound == Bound::not_identifiable ? "unclear" : std::string(name(*bound));
    word = word.substr(0, word.find('-'));
    const double share = side.bound_share(*bound);
    return share > 0.995 ? word : fmt::format("{} {:.0f} %", word, 100 * share);
}

std::string steps_cell(const GroupSide& a, const GroupSide& b) {
    return a.steps == b.steps ? std::to_string(a.steps) : fmt::format("{}:{}", a.steps, b.steps);
}

Chart times_chart(const PointComparison& point, std::size_t top) {
    BarChart bars{"ms", {}, {{.name = "A", .is_faint = true}, {point.b.letter}}};
    for (const GroupComparison& group : point.groups | std::views::take(top)) {
        bars.labels.push_back(group.name);
        for (const auto& [i, side] : {std::pair{0, &group.a}, {1, &group.b}})
            bars.series[i].add(scaled(side->time_us, 1e-3), fmt::format("{}\n{} {}", group.name, bars.series[i].name,
                                                                        time_text(side->time_us.value)));
    }
    return {"Time of both, ms", "measured, with 95 % intervals; the largest differences", std::move(bars)};
}

void write_times(Page& page, const PointComparison& point, std::size_t top) {
    const std::string& b = point.b.letter;
    Rows table{{words("steps"), figures("n", 4), figures("A ms"), figures(b + " ms"), figures(b + "/A"),
                figures("interval"), words("follows", 3), words("A's verdict", 2), words(b + "'s verdict", 1)}};
    const auto add_row = [&table](const GroupComparison& group, int digits) {
        table.rows.push_back({group.name, steps_cell(group.a, group.b), significant(group.a.time_us.value / 1e3),
                              significant(group.b.time_us.value / 1e3), ratio_cell(group.ratio, digits),
                              interval_cell(group.ratio, digits),
                              group.test.fit == Fit::untested ? "" : std::string(name(group.test.fit)),
                              bound_cell(group.a), bound_cell(group.b)});
    };
    for (const GroupComparison& group : point.groups | std::views::take(top)) add_row(group, 3);
    add_row({"all steps", point.a.all, point.b.all, point.steps_ratio, {}}, ratio_digits(point.steps_ratio));
    page.table(std::move(table));
}

void write_rates(Page& page, const PointComparison& point, std::size_t top) {
    const std::string& b = point.b.letter;
    Rows table{{words("steps"), figures("A TFLOP/s"), figures(b + " TFLOP/s"), figures("A/" + b, 1),
                figures("interval", 3), figures("A GB/s"), figures(b + " GB/s"), figures("A/" + b, 1),
                figures("interval", 2)}};
    for (const GroupComparison& group : point.groups | std::views::take(top)) {
        std::vector<std::string>& cells = table.rows.emplace_back(std::vector{group.name});
        for (const auto rate : {&GroupSide::tflop_per_s, &GroupSide::dram_gb_per_s}) {
            const Interval of_a = (group.a.*rate)(), of_b = (group.b.*rate)(), ratio = quotient(of_a, of_b);
            cells.insert(cells.end(), {ratio_cell(of_a), ratio_cell(of_b), ratio_cell(ratio), interval_cell(ratio)});
        }
    }
    page.table(std::move(table));
}

std::string bytes_origin(const GroupSide& side) {
    return side.dram_origin == Origin::measured    ? "counted"
           : side.dram_origin == Origin::estimated ? "estimated"
                                                   : "the cost model's, derived";
}

void write_steps(Page& page, const PointComparison& point, const Comparison& comparison, std::size_t top,
                 bool is_folded) {
    if (point.groups.empty()) {
        page.note("the steps cannot be compared: one of the runs has none, or they compute different ops");
        return;
    }
    const std::string_view by = compare_by_names[static_cast<std::size_t>(comparison.options.by)];
    page.heading(fmt::format("{}: time by {}, the largest difference first", point.title, by), is_folded);
    write_times(page, point, top);
    if (point.groups.size() > top) page.note(fmt::format("rows left out: {} (--top)", point.groups.size() - top));
    if (point.a.unmatched_us > 0 || point.b.unmatched_us > 0)
        page.note(fmt::format("without a counterpart: steps with {} ms of A's time and {} ms of {}'s",
                              significant(point.a.unmatched_us / 1e3), significant(point.b.unmatched_us / 1e3),
                              point.b.letter));
    page.heading(fmt::format("{}: useful FLOP/s and DRAM bandwidth by {}", point.title, by), true);
    write_rates(page, point, top);
    page.note(
        fmt::format("bytes: of A {}; of {} {}", bytes_origin(point.a.all), point.b.letter, bytes_origin(point.b.all)));
}

void write_values(Page& page, const Comparison& comparison) {
    page.heading(comparison.options.prices.empty() ? "What it takes, fastest first" : "What it costs, cheapest first");
    Rows table{{words("point"), words("run"), figures("ms"), figures("sequences/s", 1), figures("$/1M sequences"),
                figures("interval", 3), figures("$/1M tokens", 2), figures("ms x GB/s, GB", 4), figures("J/sequence")}};
    std::vector<const Point*> points;
    for (const ValueTable& values : comparison.values) points.push_back(values.point);
    const std::vector<std::string> titles = points.empty() ? std::vector<std::string>{} : short_titles(points);
    for (std::size_t t = 0; t < comparison.values.size(); ++t)
        for (const ValueRow& row : comparison.values[t].rows) {
            const auto& sequences = row.dollars_per_million_sequences;
            table.rows.push_back(
                {titles[t], fmt::format("{} {}", run_letter(row.run), comparison.runs[row.run]->name),
                 significant(row.latency_ms.value, time_digits), cell(row.sequences_per_s),
                 sequences ? significant(sequences->value) : "", sequences ? bracket(*sequences) : "",
                 row.dollars_per_million_tokens ? significant(row.dollars_per_million_tokens->value) : "",
                 cell(row.latency_bandwidth_gb), cell(value_of(row.energy_per_sequence_j))});
        }
    page.table(std::move(table));
}

std::string change_text(const PointComparison& point, double limit) {
    const std::string by = fmt::format("{:+.1f} % [{:+.1f}, {:+.1f}]", 100 * (point.ratio.value - 1),
                                       100 * (point.ratio.low - 1), 100 * (point.ratio.high - 1));
    switch (*point.change) {
        case Change::regression: return fmt::format("{}, all of it beyond {:g} %: a regression", by, 100 * limit);
        case Change::improvement: return fmt::format("{}: an improvement", by);
        case Change::within_limit: return fmt::format("{}: within the limit of {:g} %", by, 100 * limit);
        case Change::cannot_tell:
            if (!point.impossible.empty()) return fmt::format("{}: cannot tell from figures that cannot be", by);
            for (const PointSide* side : point.sides())
                if (const std::string why = starvation(*side->point); !why.empty())
                    return fmt::format("{}: cannot tell, in {} {}", by, side == &point.a ? "A" : "the other", why);
            if (!point.has_interval)
                return fmt::format("{}: cannot tell, a run has too few independent samples; stated is the range of all",
                                   by);
            if (point.spread && judge_change(point.ratio, limit) != Change::cannot_tell)
                return fmt::format("{}: cannot tell, single runs differ by up to {:.2g} % with nothing changed", by,
                                   100 * point.spread->least_difference());
            return fmt::format("{}: cannot tell, the interval reaches across {:g} %; more samples would narrow it", by,
                               100 * limit);
    }
    return by;
}

/// "B takes 52.7 % longer than A [+51.6 %, +53.6 %]."
std::string answer_of(const PointComparison& point) {
    const Interval& ratio = point.ratio;
    const std::string& b = point.b.letter;
    if (ratio.value <= 0) return "Cannot tell: a run has no time.";
    if (!point.impossible.empty()) return "Cannot tell: a run has figures that cannot be.";
    const auto percent_of = [](double value) { return 100 * (value - 1); };
    const std::string interval = fmt::format("[{:+.1f} %, {:+.1f} %]", percent_of(ratio.low), percent_of(ratio.high));
    std::string doubt;
    if (ratio.low <= 1 && ratio.high >= 1)
        doubt = " Which of them is faster is unknown.";
    else if (point.spread && std::abs(ratio.value - 1) < point.spread->least_difference())
        doubt = " Single runs differ by as much with nothing changed.";
    if (ratio.value >= 2)
        return fmt::format("{} takes {} times as long as A {}.{}", b, significant(ratio.value), bracket(ratio), doubt);
    if (ratio.value >= 1)
        return fmt::format("{} takes {:.1f} % longer than A {}.{}", b, percent_of(ratio.value), interval, doubt);
    if (ratio.value > 0.5)
        return fmt::format("{} takes {:.1f} % less time than A {}.{}", b, -percent_of(ratio.value), interval, doubt);
    const Interval inverse{1 / ratio.value, 1 / ratio.high, 1 / ratio.low};
    return fmt::format("A takes {} times as long as {} {}.{}", significant(inverse.value), b, bracket(inverse), doubt);
}

/// The answer: for one point a sentence and its layers, for several how many are slower and the times of all.
void write_answer(Page& page, const PairComparison& pair, std::size_t top) {
    if (pair.points.empty()) return;
    if (pair.points.size() == 1) {
        page.lead(answer_of(pair.points.front()));
        if (!pair.points.front().groups.empty()) page.chart(times_chart(pair.points.front(), top));
        return;
    }
    const std::vector<std::string> titles = titles_of(pair);
    const std::string b = run_letter(pair.b);
    BarChart bars{"ms", titles, {{.name = "A", .is_faint = true}, {b}}};
    double least = pair.points.front().ratio.value, most = least;
    std::size_t slower = 0, faster = 0;
    for (const PointComparison& point : pair.points) {
        least = std::min(least, point.ratio.value);
        most = std::max(most, point.ratio.value);
        slower += point.ratio.low > 1 ? 1 : 0;
        faster += point.ratio.high < 1 ? 1 : 0;
        for (const auto& [i, side] : {std::pair{0, &point.a}, {1, &point.b}})
            bars.series[i].add(side->ms, fmt::format("{}\n{} {} ms", point.title, bars.series[i].name,
                                                     significant(side->ms.value, time_digits)));
    }
    page.lead(fmt::format("{} takes {} to {} times as long as A: slower in {} of {} points, faster in {}.", b,
                          significant(least), significant(most), slower, pair.points.size(), faster));
    if (const std::size_t unknown = pair.points.size() - slower - faster; unknown > 0)
        page.lead(fmt::format("In {} the 95 % interval contains 1, so that neither is known to be faster.", unknown));
    page.chart({"Latency of both, ms", "measured, with 95 % intervals", std::move(bars)});
}

void write_pair(Page& page, const Comparison& comparison, const PairComparison& pair, std::size_t top) {
    const std::string b = run_letter(pair.b);
    write_end_to_end(page, pair, b);
    write_summary(page, pair, b);
    if (comparison.options.fail_above) {
        page.heading(fmt::format("Change in latency, limit {:g} %", 100 * *comparison.options.fail_above));
        for (const PointComparison& point : pair.points)
            page.item(point.title, change_text(point, *comparison.options.fail_above));
    }
    const bool is_several = pair.points.size() > 1;
    for (const PointComparison& point : pair.points) {
        page.heading(fmt::format("{}: is it bandwidth?", point.title), is_several);
        for (const std::string& figure : point.impossible) page.item("impossible", figure);
        write_roofs(page, point);
        for (const Evidence& evidence : point.evidence) page.item(evidence.about, evidence.text);
        write_steps(page, point, comparison, top, is_several);
    }
}

}  // namespace

std::string write_comparison(const Comparison& comparison, CompareFormat format, std::size_t top, std::size_t width) {
    Page page;
    if (comparison.pairs.size() == 1) {
        page.heading("");
        write_answer(page, comparison.pairs.front(), top);
    }
    write_runs(page, comparison);
    if (comparison.pairs.size() == 1) {
        write_pair(page, comparison, comparison.pairs.front(), top);
    } else {
        for (const PairComparison& pair : comparison.pairs) {
            Page against;
            against.heading("");
            write_answer(against, pair, top);
            write_pair(against, comparison, pair, top);
            page.under(fmt::format("{} ({}) against A", run_letter(pair.b), comparison.runs[pair.b]->name),
                       std::move(against));
        }
    }
    write_values(page, comparison);
    const Document document{"kbench compare", std::move(page).sections()};
    if (format == CompareFormat::html) return render_html(document);
    return format == CompareFormat::markdown ? render_markdown(document) : render_terminal(document, width);
}

}  // namespace kbench
