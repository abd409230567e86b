// Charts as data: what a page draws, apart from how. A section makes one of what it knows:
//     section.add(Chart{"Time by layer, ms", "measured", BarChart{"ms", {"wte", "lm_head"}, {{"time", {0.1, 0.4}}}}});
// A number that is not there is `no_number`. Hover texts are plain, a line feed between their lines. A key is the
// number of what a mark stands for, a step: marks and rows of one point that have the same key are chosen together.
#pragma once

#include <cstddef>
#include <limits>
#include <optional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "analysis/result/interval.h"

namespace kbench {

inline constexpr double no_number = std::numeric_limits<double>::quiet_NaN();

/// Its values are the bars of a bar chart, and the heights of a curve. What is not needed stays empty.
struct ChartSeries {
    std::string name;
    std::vector<double> values = {};
    std::vector<double> low = {}, high = {};  ///< ends of intervals
    std::vector<std::string> hover = {};
    bool is_faint = false;  ///< what the others are compared with

    void add(double value, std::string text) {
        values.push_back(value);
        hover.push_back(std::move(text));
    }
    void add(const Interval& value, std::string text) {
        add(value.value, std::move(text));
        low.push_back(value.low);
        high.push_back(value.high);
    }
};

/// Horizontal bars, those of one label beside each other or, stacked, as a sum, of which parts may be negative.
struct BarChart {
    std::string unit;
    std::vector<std::string> labels;
    std::vector<ChartSeries> series;
    bool is_stacked = false;
    int digits = 2;  ///< significant ones of the values that stand in a stack
};

struct ChartAxis {
    std::string title;
    bool is_log = false;
    bool from_zero = false;
};

struct CurveSeries {
    std::variant<std::vector<double>, std::vector<std::string>> x;
    ChartSeries y;
};

/// Lines with markers.
struct CurveChart {
    ChartAxis x, y;
    std::vector<CurveSeries> series;
};

struct ChartRoof {
    std::string name;
    double per_s = 0;  ///< bytes of a bandwidth, else FLOPs
    bool is_bandwidth = false;
    std::string origin;
};

/// Numbers of lists are positions in the chart's.
struct RooflineMark {
    double flop_per_byte = 0, flop_per_s = 0;
    std::optional<std::size_t> group, layer;  ///< nothing where it is several
    std::size_t shape = 0, view = 0;
    double size = 0;
    std::string label;  ///< short, to stand at the mark where there is room
    std::string hover;
    std::optional<std::size_t> key;
};

/// Performance against arithmetic intensity, both logarithmic, under roofs.
struct RooflineChart {
    std::vector<ChartRoof> roofs;
    std::vector<std::string> groups, layers, shapes, views;
    std::vector<RooflineMark> marks;
    std::vector<std::size_t> hidden_shapes = {};  ///< until a reader asks for them
};

struct HeatColumn {
    std::string header, what;
    std::optional<double> most;  ///< has the full colour; without it the largest value has
    int decimals = 0;
    std::vector<double> values;  ///< by row
};

/// A table whose cells are coloured, each column on its own scale.
struct HeatChart {
    std::vector<std::string> rows;
    std::vector<HeatColumn> columns;
};

struct TimelineBar {
    double start = 0, length = 0;
    std::size_t group = 0;
    std::string hover;
    std::optional<std::size_t> key;
    std::size_t name = 0;
};

/// Bars in order of time, a lane for each group. Bars of one name have one colour, and that name in them where there is
/// room; without names, those of one group have.
struct TimelineChart {
    std::string unit;
    std::vector<std::string> groups;
    std::vector<TimelineBar> bars;
    std::vector<std::string> names = {};
};

struct Chart {
    std::string title, caption;
    std::variant<BarChart, CurveChart, RooflineChart, HeatChart, TimelineChart> data;
};

/// The position of `name` in a chart's list, to which it is added where it is new.
std::size_t place_in(std::vector<std::string>& names, const std::string& name);

}  // namespace kbench
