// What libkbench_attach.so writes in a program of this test's own, which uses NVTX and no GPU, and what it shows.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nvtx3/nvToolsExt.h>

#include <chrono>
#include <filesystem>
#include <functional>
#include <map>
#include <string>
#include <thread>
#include <vector>

#include "analysis/program/program_file.h"
#include "profile/attach/record_file.h"
#include "profile/attach/settings.h"
#include "profile/attach/watchdog.h"
#include "tests/programs/child_process.h"

namespace kbench {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;

/// Runs `body` in a process that is attached to with that purpose; gives what its library wrote, if anything.
std::vector<ProgramFile> attached(const std::string& purpose, const std::function<int()>& body) {
    const ChildProcess child;
    EXPECT_EQ(child.run(body, {{"KBENCH_ATTACH_PURPOSE", purpose},
                               {"KBENCH_ATTACH_DIR", child.folder().string()},
                               {"NVTX_INJECTION64_PATH", KBENCH_ATTACH_LIBRARY}}),
              0);
    for (const auto& entry : std::filesystem::directory_iterator(child.folder()))
        if (entry.path().extension() == ".jsonl") return read_program_files(child.folder())[purpose];
    return {};
}

/// Texts of the ranges from the outermost to the one with this number.
std::string path_of(const ProgramFile& file, const ProgramRange& range) {
    const ProgramRange* parent = file.range(range.parent);
    return (parent ? path_of(file, *parent) + " / " : "") + file.text(range.text);
}

std::vector<std::string> paths_of(const ProgramFile& file) {
    std::vector<std::string> paths;
    for (const ProgramRange& range : file.ranges) paths.push_back(path_of(file, range));
    return paths;
}

TEST(AttachedNvtx, HasRangesOfAllDomainsOneWithinTheOther) {
    const std::vector<ProgramFile> files = attached("names", [] {
        nvtxRangePushA("model");
        const nvtxDomainHandle_t domain = nvtxDomainCreateA("mine");
        nvtxEventAttributes_t event{};
        event.version = NVTX_VERSION;
        event.size = NVTX_EVENT_ATTRIB_STRUCT_SIZE;
        event.messageType = NVTX_MESSAGE_TYPE_REGISTERED;
        event.message.registered = nvtxDomainRegisterStringA(domain, "registered");
        if (nvtxDomainRangePushEx(domain, &event) != 0) return 1;
        if (nvtxRangePushW(L"w\u00efde") != 1) return 2;
        if (nvtxRangePop() != 1) return 3;
        if (nvtxDomainRangePop(domain) != 0) return 4;
        nvtxRangePop();
        if (nvtxRangePop() >= 0) return 5;  // there is none any more
        return 0;
    });
    ASSERT_EQ(files.size(), 1u);
    EXPECT_THAT(paths_of(files[0]), ElementsAre("model / registered / w?de", "model / registered", "model"));
    for (const ProgramRange& range : files[0].ranges) EXPECT_LE(range.start_ns, range.end_ns);
}

TEST(AttachedNvtx, OverlappingRangesOfTwoDomainsEndEachByItself) {
    const std::vector<ProgramFile> files = attached("names", [] {
        const nvtxDomainHandle_t domain = nvtxDomainCreateA("mine");
        nvtxEventAttributes_t event{};
        event.version = NVTX_VERSION;
        event.size = NVTX_EVENT_ATTRIB_STRUCT_SIZE;
        event.messageType = NVTX_MESSAGE_TYPE_ASCII;
        event.message.ascii = "outer";
        nvtxDomainRangePushEx(domain, &event);
        nvtxRangePushA("inner");
        nvtxDomainRangePop(domain);
        nvtxRangePushA("below inner");
        nvtxRangePop();
        nvtxRangePop();
        return 0;
    });
    ASSERT_EQ(files.size(), 1u);
    EXPECT_THAT(paths_of(files[0]), ElementsAre("outer", "outer / inner / below inner", "outer / inner"));
}

TEST(AttachedNvtx, EachThreadHasItsOwn) {
    const std::vector<ProgramFile> files = attached("names", [] {
        nvtxRangePushA("main");
        std::thread([] {
            nvtxRangePushA("other");
            nvtxRangePop();
        }).join();
        nvtxRangePop();
        return 0;
    });
    ASSERT_EQ(files.size(), 1u);
    EXPECT_THAT(paths_of(files[0]), ElementsAre("other", "main"));
    EXPECT_NE(files[0].ranges[0].thread, files[0].ranges[1].thread);
}

TEST(AttachedNvtx, OtherPurposesLeaveItAlone) {
    EXPECT_THAT(attached("bare",
                         [] {
                             nvtxRangePushA("model");
                             nvtxRangePop();
                             return 0;
                         }),
                IsEmpty());
}

TEST(AttachedTexts, AreJsonWhateverTheyHold) {
    EXPECT_EQ(attach::json_text("a\"b\\c\n\x01"), R"("a\"b\\c\u000a\u0001")");
    EXPECT_EQ(attach::json_text("\xC3\xA9\xE2\x82\xAC"), "\"\xC3\xA9\xE2\x82\xAC\"");
    EXPECT_EQ(attach::json_text("\xC3(\xFF\xF0\x9F"), "\"?(???\"") << "no UTF-8, and cut";
}

TEST(Watchdog, EndsAProcessThatHangsAndSaysWhy) {
    const ChildProcess child;
    const int exit_code = child.run(
        [] {
            attach::watch(std::chrono::milliseconds(1), "pass 1 hangs");
            std::this_thread::sleep_for(std::chrono::seconds(60));
            return 0;
        },
        {{"KBENCH_ATTACH_PURPOSE", "counters"}, {"KBENCH_ATTACH_DIR", child.folder().string()}});
    EXPECT_EQ(exit_code, attach::hung);
    const std::vector<ProgramFile> files = read_program_files(child.folder())["counters"];
    ASSERT_EQ(files.size(), 1u);
    EXPECT_THAT(files[0].notes, ElementsAre("pass 1 hangs"));
}

TEST(Watchdog, LeavesAProcessThatDoesNotHang) {
    const ChildProcess child;
    EXPECT_EQ(child.run(
                  [] {
                      for (int pass = 0; pass < 3; ++pass) {
                          attach::watch(std::chrono::seconds(pass == 2 ? 60 : 0) + std::chrono::milliseconds(200), "");
                          attach::unwatch();
                      }
                      std::this_thread::sleep_for(std::chrono::milliseconds(500));
                      return 5;
                  },
                  {{"KBENCH_ATTACH_PURPOSE", "counters"}, {"KBENCH_ATTACH_DIR", child.folder().string()}}),
              5);
}

TEST(AttachSettings, OfARankGoBeforeThoseOfAll) {
    const auto first_launch = [](const std::map<std::string, std::string>& more) {
        const ChildProcess child;
        std::map<std::string, std::string> environment{{"KBENCH_ATTACH_PURPOSE", "counters"},
                                                       {"KBENCH_ATTACH_DIR", "."},
                                                       {"KBENCH_ATTACH_FIRST", "3"},
                                                       {"KBENCH_ATTACH_FIRST_1", "7"}};
        environment.insert(more.begin(), more.end());
        return child.run([] { return static_cast<int>(attach::settings()->first_launch); }, environment);
    };
    EXPECT_EQ(first_launch({}), 3);
    EXPECT_EQ(first_launch({{"RANK", "0"}}), 3);
    EXPECT_EQ(first_launch({{"RANK", "1"}}), 7);
    EXPECT_EQ(first_launch({{"PMI_RANK", "1"}}), 7);
}

TEST(AttachLibrary, ShowsTwoFunctionsAndNeedsNoLibraryOfOurs) {
    EXPECT_EQ(shell("nm -D --defined-only " KBENCH_ATTACH_LIBRARY " | grep ' [A-TX-Z] ' | cut -d' ' -f3").output,
              "InitializeInjection\nInitializeInjectionNvtx2\n");
    const std::string libraries = shell("ldd " KBENCH_ATTACH_LIBRARY).output;
    EXPECT_THAT(libraries, HasSubstr("libcupti"));
    for (const char* library : {"dnnl", "openblas", "cublas", "cudart", "gomp", "fmt"})
        EXPECT_THAT(libraries, Not(HasSubstr(library)));
}

}  // namespace
}  // namespace kbench
