# Turns data files into strings of the binary, so that it needs no path at run time.
#   kbench_embed_files(output.cpp header.h Type function file...)
# writes output.cpp, which defines `std::span<const Type> function()`; the header declares it and
# `struct Type { std::string_view name, text; }`. Run as a script, this file does the writing when an input changed.
if(NOT CMAKE_SCRIPT_MODE_FILE)
    function(kbench_embed_files output header type function)
        set(script ${CMAKE_SOURCE_DIR}/cmake/embed_files.cmake)
        add_custom_command(OUTPUT ${output}
            COMMAND ${CMAKE_COMMAND} -DOUTPUT=${output} -DHEADER=${header} -DTYPE=${type} -DFUNCTION=${function}
                    "-DINPUTS=${ARGN}" -P ${script}
            DEPENDS ${ARGN} ${script} VERBATIM)
        # A target of its own, which waits for nothing. Otherwise CMake would make this command wait for everything that the
        # library links, and the library's files for this command: bench would not start before the last kernel is compiled.
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
