# Run when a file of bench/metrics changed: writes them into one source file, so that the binary needs no path.
# cmake -DOUTPUT=<file> "-DINPUTS=<file>;..." -P embed_metrics.cmake
set(rows "")
foreach(input IN LISTS INPUTS)
    get_filename_component(name ${input} NAME)
    file(READ ${input} text)
    string(APPEND rows "    {\"${name}\", R\"metrics(${text})metrics\"},\n")
endforeach()
file(WRITE ${OUTPUT} "// Written by cmake/embed_metrics.cmake.
#include \"bench/metric_sets.h\"

namespace kbench {

std::span<const MetricFile> metric_files() {
    static constexpr MetricFile files[] = {
${rows}    };
    return files;
}

}  // namespace kbench
")
