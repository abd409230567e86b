# Tells CMake 3.25 what it does not know about CUDA 13. Must come before find_package(CUDAToolkit), both in kbench's
# build and in projects that link the installed kbench.
# nvcc takes -std=c++20:
set(CMAKE_CUDA20_STANDARD_COMPILE_OPTION -std=c++20)
set(CMAKE_CUDA20_EXTENSION_COMPILE_OPTION -std=c++20)
# FindCUDAToolkit (3.25.1, Debian 12) sets a property of this target without checking; CUDA 13 no longer has the library:
if(NOT TARGET CUDA::nvToolsExt)
    add_library(CUDA::nvToolsExt INTERFACE IMPORTED)
endif()
