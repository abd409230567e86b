# Turns `cpack -G DEB` into the Debian package kbench-profile: the profiler that other programs embed, and nothing else of
# kbench. It is for the release that it is made on, whose libraries it depends on. CPack reads this for every generator.
if(NOT CPACK_GENERATOR STREQUAL "DEB")
    return()
endif()
if(NOT CPACK_KBENCH_HAS_PROFILE)
    message(FATAL_ERROR "cpack -G DEB packs the profiler, which is built only with CUDA: -DKBENCH_CUDA=ON")
endif()
find_program(DPKG_SHLIBDEPS dpkg-shlibdeps)
if(NOT DPKG_SHLIBDEPS)
    message(FATAL_ERROR "cpack -G DEB needs dpkg-shlibdeps (the package dpkg-dev)")
endif()
cmake_host_system_information(RESULT suite QUERY DISTRIB_VERSION_CODENAME)
if(NOT suite)
    message(FATAL_ERROR "cpack -G DEB runs on a release of Debian or Ubuntu: /etc/os-release has no VERSION_CODENAME")
endif()

set(CPACK_COMPONENTS_ALL profile)
set(CPACK_DEB_COMPONENT_INSTALL ON)
set(CPACK_PRE_BUILD_SCRIPTS "")
set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
set(CPACK_DEBIAN_PROFILE_PACKAGE_NAME kbench-profile)
set(CPACK_DEBIAN_PACKAGE_VERSION ${CPACK_PACKAGE_VERSION}~${suite})
set(CPACK_DEBIAN_PACKAGE_MAINTAINER "The authors of kbench")
set(CPACK_DEBIAN_PACKAGE_SECTION libdevel)
set(CPACK_DEBIAN_PROFILE_DESCRIPTION "CUDA programs time their own parts, each time they run
A program marks iterations and scopes; a file says which of them are measured,
and when. What it writes is read by kbench, which is not in this package.")
set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS ON)
set(CPACK_DEBIAN_PACKAGE_GENERATE_SHLIBS ON)  # and ldconfig where the package is installed
set(CPACK_DEBIAN_PACKAGE_CONTROL_STRICT_PERMISSION ON)
