# Makes the files of report.html data of the binary, byte for byte. The assembler includes them, because a compiler
# takes long over a string of five megabytes. Sets `report_assets` to the assembly source.
find_file(KBENCH_PLOTLY plotly.min.js PATHS ${CMAKE_SOURCE_DIR}/.deps/plotly NO_DEFAULT_PATH
    DOC "plotly.js, minified: scripts/setup unpacks it")
if(NOT KBENCH_PLOTLY)
    message(FATAL_ERROR "plotly.min.js is missing: run scripts/setup, or set KBENCH_PLOTLY to a copy of plotly.js 4")
endif()

set(report_folder ${CMAKE_CURRENT_SOURCE_DIR}/report/page)
file(GLOB report_files CONFIGURE_DEPENDS ${report_folder}/*.html ${report_folder}/*.css ${report_folder}/*.js)
# In the order in which a browser reads them: report.js, which draws, comes after everything that it uses.
set(report_scripts ${report_files})
list(FILTER report_scripts INCLUDE REGEX "\\.js$")
list(REMOVE_ITEM report_scripts ${report_folder}/report.js)
list(APPEND report_scripts ${report_folder}/report.js)

set(report_assembly ".section .note.GNU-stack,\"\",%progbits\n.section .rodata\n")
function(kbench_add_report_asset name)
    string(APPEND report_assembly ".global kbench_report_${name}_begin\nkbench_report_${name}_begin:\n")
    foreach(file IN LISTS ARGN)
        string(APPEND report_assembly ".incbin \"${file}\"\n")
    endforeach()
    string(APPEND report_assembly ".global kbench_report_${name}_end\nkbench_report_${name}_end:\n")
    set(report_assembly "${report_assembly}" PARENT_SCOPE)
endfunction()
kbench_add_report_asset(page ${report_folder}/report.html)
kbench_add_report_asset(style ${report_folder}/report.css)
kbench_add_report_asset(plotly ${KBENCH_PLOTLY})
kbench_add_report_asset(script ${report_scripts})

set(report_assets ${CMAKE_BINARY_DIR}/generated/analysis/report_assets.s)
file(CONFIGURE OUTPUT ${report_assets} CONTENT "${report_assembly}" @ONLY)
set_source_files_properties(${report_assets} PROPERTIES OBJECT_DEPENDS "${report_files};${KBENCH_PLOTLY}")
# clang's assembler warns of every option that it does not use.
if(CMAKE_CXX_COMPILER_ID MATCHES Clang)
    set_source_files_properties(${report_assets} PROPERTIES COMPILE_OPTIONS -Wno-unused-command-line-argument)
endif()
