// The questions of a study, by the names under which its plan, its report and result.json know them.
#pragma once

#include <string_view>

namespace kbench {

struct StudyTaskKind {
    std::string_view name;      ///< in result.json and in the progress
    std::string_view title;     ///< heads its part of the report
    std::string_view question;  ///< what it answers
};

inline constexpr StudyTaskKind study_tasks[] = {
    {"bottlenecks", "Bottlenecks", "Which layers and kernels take the time, and what is their bottleneck?"},
    {"batch", "Batch", "What does a larger batch do, and where does it stop paying?"},
    {"precision", "Precision", "What does each precision gain, and did it run as asked?"},
    {"directions", "Forward against backward", "What does training add to a forward?"},
};
inline constexpr std::string_view bottlenecks_task = study_tasks[0].name, batch_task = study_tasks[1].name,
                                  precision_task = study_tasks[2].name, directions_task = study_tasks[3].name;

}  // namespace kbench
