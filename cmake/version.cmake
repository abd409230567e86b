# Run at every build: writes bench/version.h in the build tree with the git revision, only when it changed.
execute_process(COMMAND git -C ${SOURCE_DIR} describe --always --dirty --abbrev=12 --match=NeVeRmAtCh
                OUTPUT_VARIABLE revision OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET RESULT_VARIABLE status)
if(NOT status EQUAL 0)
    set(revision "unknown")
endif()
set(text "// Written by cmake/version.cmake.
#pragma once

namespace kbench::version {
inline constexpr char number[] = \"${VERSION}\";
inline constexpr char git_revision[] = \"${revision}\";
inline constexpr char build_type[] = \"${BUILD_TYPE}\";
}  // namespace kbench::version
")
set(old "")
if(EXISTS ${OUTPUT})
    file(READ ${OUTPUT} old)
endif()
if(NOT old STREQUAL text)
    file(WRITE ${OUTPUT} "${text}")
endif()
