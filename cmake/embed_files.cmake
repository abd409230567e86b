# Files that are data become strings of the binary, so that it needs no path.
#   kbench_embed_files(output.cpp header.h Type function file...)
# writes output.cpp, which defines `std::span<const Type> function()`; the header declares it and
# `struct Type { std::string_view name, text; }`. Run as a script it does the writing, when a file changed.
if(NOT CMAKE_SCRIPT_MODE_FILE)
    function(kbench_embed_files output header type function)
        set(script ${CMAKE_SOURCE_DIR}/cmake/embed_files.cmake)
        add_custom_command(OUTPUT ${output}
            COMMAND ${CMAKE_COMMAND} -DOUTPUT=${output} -DHEADER=${header} -DTYPE=${type} -DFUNCTION=${function}
                    "-DINPUTS=${ARGN}" -P ${script}
            DEPENDS ${ARGN} ${script} VERBATIM)
        # CMake has a library's commands wait for all that it links, and its files for its commands: without a target of
        # its own here, which waits for nothing, bench would not begin before the last kernel is compiled.
        add_custom_target(${function}_text DEPENDS ${output})
    endfunction()
    return()
endif()

set(rows "")
foreach(input IN LISTS INPUTS)
    get_filename_component(name ${input} NAME)
    file(READ ${input} text)
    string(APPEND rows "    {\"${name}\", R\"embedded(${text})embedded\"},\n")
endforeach()
file(WRITE ${OUTPUT} "// Written by cmake/embed_files.cmake.
#include \"${HEADER}\"

namespace kbench {

std::span<const ${TYPE}> ${FUNCTION}() {
    static constexpr ${TYPE} files[] = {
${rows}    };
    return files;
}

}  // namespace kbench
")
