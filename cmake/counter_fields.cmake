# Writes analysis/facts/counter_fields.h: `struct Counters` with a field a metric of bench/profile/metrics.txt, and a table
# of their names in alphabetical order, with whether it is a figure per elapsed cycle or second. Sets `counter_fields_folder` to the folder to include it from.
set(metrics_file ${CMAKE_SOURCE_DIR}/bench/profile/metrics.txt)
set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${metrics_file})
# A row of a metric begins with its set and its name; `chips`, which have capital letters, and @ lines are no metrics.
file(STRINGS ${metrics_file} metric_rows REGEX "^[a-z-]+ +[a-z0-9_]+ ")
set(metric_names "")
set(elapsed_names "")
foreach(row IN LISTS metric_rows)
    string(REGEX REPLACE "^[a-z-]+ +([a-z0-9_]+) .*" "\\1" metric "${row}")
    list(APPEND metric_names ${metric})
    if(row MATCHES "_elapsed +#|sum\\.per_second +#")
        list(APPEND elapsed_names ${metric})
    endif()
endforeach()
list(REMOVE_DUPLICATES metric_names)
list(SORT metric_names)
set(counter_fields "")
set(counter_rows "")
foreach(metric IN LISTS metric_names)
    string(APPEND counter_fields "    std::optional<double> ${metric};\n")
    set(per_elapsed false)
    if(metric IN_LIST elapsed_names)
        set(per_elapsed true)
    endif()
    string(APPEND counter_rows "    {\"${metric}\", &Counters::${metric}, ${per_elapsed}},\n")
endforeach()
set(counter_fields_folder ${CMAKE_BINARY_DIR}/generated/include)
file(CONFIGURE OUTPUT ${counter_fields_folder}/analysis/facts/counter_fields.h CONTENT "// Written by cmake/counter_fields.cmake.
#pragma once

#include <optional>
#include <string_view>

namespace kbench {

struct Counters {
@counter_fields@};

struct CounterField {
    std::string_view name;
    std::optional<double> Counters::*value;
    bool per_elapsed;  ///< over the cycles or the seconds of the whole range
};

inline constexpr CounterField counter_fields[] = {
@counter_rows@};

}  // namespace kbench
" @ONLY)
