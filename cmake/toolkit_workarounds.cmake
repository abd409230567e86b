# What CMake 3.25 does not know of CUDA 13; needed before find_package(CUDAToolkit), by kbench's build and by projects
# that link the installed kbench.
# That nvcc takes -std=c++20:
set(CMAKE_CUDA20_STANDARD_COMPILE_OPTION -std=c++20)
set(CMAKE_CUDA20_EXTENSION_COMPILE_OPTION -std=c++20)
# FindCUDAToolkit (3.25.1, Debian 12) sets a property of this target unseen, and CUDA 13 no longer has the library:
if(NOT TARGET CUDA::nvToolsExt)
    add_library(CUDA::nvToolsExt INTERFACE IMPORTED)
endif()
