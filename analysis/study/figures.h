// The quantities of a study's sentences, and sentences that carry them.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

#include "analysis/machine/ceilings.h"
#include "analysis/study/study.h"

namespace kbench {

/// Whether the ends of a step's time are a 95 % interval.
bool has_interval(const StepResult& step);

/// latency_ms: the end-to-end median of a point.
StudyFigure latency(const Point& point, std::size_t index);
/// sequences_per_s: the batch over that.
StudyFigure throughput(const Point& point, std::size_t index);
/// layer_share: steps of a layer of all blocks over all steps, of their time on the device.
StudyFigure layer_share(const Point& point, std::size_t index, const std::string& layer);
/// recoverable_ms: of the steps of a layer, their time above the longest demand of each.
StudyFigure recoverable_time(std::size_t index, const StudyLayer& layer, bool has_interval);
/// backward_ratio: the backward's steps over the forward's of a training point, of their times on the device.
StudyFigure backward_ratio(const Directions& directions, std::size_t index);
/// The same of one op kind.
StudyFigure backward_ratio_of(const DirectionPair& kind, std::size_t index);
/// backward_flop_ratio: the same of the FLOPs of the cost model.
StudyFigure backward_flop_ratio(const Directions& directions, std::size_t index);
/// part_share: of a training point's step, "forward", "backward" or "optimizer", of the steps' time on the device.
StudyFigure part_share(const Directions& directions, std::size_t index, const std::string& part);
/// gap_share: gaps between kernels, of the end-to-end time.
StudyFigure gap_share(std::size_t index, double share);
/// roof_ratio: the second point's roof for products of matrices over the first's, with the intervals of both.
StudyFigure roof_ratio(const Roof& first, std::size_t first_index, const Roof& second, std::size_t second_index);
/// energy_ratio: joules a sequence of the second point over those of the first.
StudyFigure energy_ratio(const Point& first, std::size_t first_index, const Point& second, std::size_t second_index);
/// throughput_ratio: sequences/s of the second point over those of the first.
StudyFigure throughput_ratio(const Point& first, std::size_t first_index, const Point& second,
                             std::size_t second_index);
/// latency_ratio: the first point's latency over the second's: how many times as fast the second is.
StudyFigure latency_ratio(const Point& first, std::size_t first_index, const Point& second, std::size_t second_index);

/// Builds a sentence of words and figures.
class Sentence {
  public:
    Sentence& operator<<(std::string_view words) {
        finding_.text += words;
        return *this;
    }
    Sentence& operator<<(StudyFigure figure) {
        finding_.text += figure.text;
        finding_.figures.push_back(std::move(figure));
        return *this;
    }
    StudyFinding done() { return std::move(finding_); }

  private:
    StudyFinding finding_;
};

}  // namespace kbench
