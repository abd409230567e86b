// What a user's program gets with the profiler: a library that brings no other one along, a header for C and C++, and
// nothing at all where it is compiled out.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "tests/programs/child_process.h"

namespace kbench {
namespace {

using testing::HasSubstr;
using testing::Not;

TEST(ProfileLibrary, BringsNoOtherLibraryAlong) {
    if (shell("ldd --version").exit_code != 0) GTEST_SKIP() << "no ldd";
    const Shell listed = shell("ldd " KBENCH_PROFILE_LIBRARY);
    ASSERT_EQ(listed.exit_code, 0) << listed.output;
    EXPECT_THAT(listed.output, HasSubstr("libc.so"));
    for (const char* library : {"dnnl", "openblas", "cublas", "cudart", "libcuda", "cupti", "gomp", "fmt", "libz"})
        EXPECT_THAT(listed.output, Not(HasSubstr(library)));
}

TEST(ProfileLibrary, ShowsItsFunctionsAndNoOthers) {
    if (shell("nm --version").exit_code != 0) GTEST_SKIP() << "no nm";
    // Weak ones are the C++ library's own, of which a process has one.
    const Shell listed = shell("nm -D --defined-only " KBENCH_PROFILE_LIBRARY " | grep ' [A-TX-Z] ' | cut -d' ' -f3");
    EXPECT_EQ(listed.output,
              "kbench_profile_end\nkbench_profile_iteration\nkbench_profile_scope_begin\nkbench_profile_scope_end\n"
              "kbench_profile_state\n");
}

constexpr const char* c_program = R"(#include <kbench/profile.h>
#include <kbench/profile.h>
void step(kbench_stream stream) {
    kbench_iteration(stream);
    kbench_scope_begin("loss", stream);
    kbench_scope_end("loss", stream);
    kbench_profile_finish();
}
)";
constexpr const char* cpp_program = R"(#include <kbench/profile.h>
struct CUstream_st;
void step(CUstream_st* stream) {
    kbench_iteration(stream);
    kbench::Scope loss("loss", stream);
    kbench::Scope standard("standard", nullptr);
}
)";

/// Symbols of an object that is compiled with `options`; a failure if the compiler has anything to say.
std::string symbols(const std::string& options, const char* program) {
    const ChildProcess folder;
    folder.write("program", program);
    const std::string object = (folder.folder() / "program.o").string();
    const Shell compiled =
        shell(KBENCH_CXX " -pedantic -Wall -Wextra -Wshadow -Werror -I" KBENCH_SOURCE_DIR "/include " + options +
              " -c -o " + object + " " + (folder.folder() / "program").string());
    EXPECT_EQ(compiled.output, "") << options;
    return shell("nm " + object).output;
}

TEST(ProfileHeader, CompiledOutLeavesNoSymbol) {
    if (shell(KBENCH_CXX " --version").exit_code != 0) GTEST_SKIP() << "no compiler";
    for (const std::string optimised : {" -O0", " -O2"})
        for (const auto& [language, program] : {std::pair{"-x c -std=c99", c_program},
                                                {"-x c++ -std=c++11", cpp_program},
                                                {"-x c++ -std=c++20", cpp_program}}) {
            const std::string options = language + optimised;
            for (const char* off : {" -DKBENCH_PROFILING=0", " -DKBENCH_PROFILING=OFF"}) {
                const std::string left = symbols(options + off, program);
                EXPECT_THAT(left, HasSubstr("step"));
                EXPECT_THAT(left, Not(HasSubstr("kbench"))) << options << off;
                EXPECT_THAT(left, Not(HasSubstr("Scope"))) << options << off;
            }
            for (const char* on : {"", " -DKBENCH_PROFILING", " -DKBENCH_PROFILING=ON"})
                EXPECT_THAT(symbols(options + on, program), HasSubstr("U kbench_profile_scope_begin")) << options << on;
        }
}

TEST(ProfileHeader, TheDefaultStreamIsTheOneThatAFileIsCompiledFor) {
    if (shell(KBENCH_CXX " --version").exit_code != 0) GTEST_SKIP() << "no compiler";
    constexpr const char* program = R"(#include <kbench/profile.h>
static_assert(KBENCH_PROFILE_STREAM((kbench_stream) nullptr) == nullptr, "");
)";
    EXPECT_EQ(symbols("-x c++ -std=c++11", program), "");
    const std::string per_thread =
        shell("echo 'KBENCH_PROFILE_STREAM(0)' | " KBENCH_CXX
              " -DCUDA_API_PER_THREAD_DEFAULT_STREAM -E -P -include kbench/profile.h -I" KBENCH_SOURCE_DIR
              "/include -x c++ - | tail -1")
            .output;
    EXPECT_THAT(per_thread, HasSubstr("0x2"));
}

}  // namespace
}  // namespace kbench
