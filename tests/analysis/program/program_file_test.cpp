// The reader: what a file holds, what it refuses and with which line, and what a process that died leaves.
#include "analysis/program/program_file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <sstream>

#include "kbench/error.h"
#include "tests/analysis/program/written_program.h"

namespace kbench {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

ProgramFile read_text(const std::string& text) {
    std::istringstream input(text);
    return read_program_file(input, "x.jsonl");
}

/// What the reader says against it; empty where it takes it.
std::string refusal_of(const std::string& text) {
    try {
        read_text(text);
    } catch (const UsageError& error) {
        return error.what();
    }
    return "";
}

const std::string first_line = WrittenProgram().text();  // process and device, two lines

TEST(ProgramFile, HoldsWhatWasWritten) {
    WrittenProgram program("records", 17, {{"rank", 3}});
    program.open("step").launch("gemm", {.ns = 40, .stream = 9, .blocks = 5}).copy("HtoD", 64, 20).close();
    program.line({{"kind", "note"}, {"text", "clock\nmoved"}}).end();
    const ProgramFile file = program.read();
    EXPECT_EQ(file.process.purpose, "records");
    EXPECT_EQ(file.process.pid, 17);
    EXPECT_EQ(file.process.rank, 3);
    EXPECT_THAT(file.process.arguments, ElementsAre("python3", "-u", "models/bench.py", "--batch", "1"));
    ASSERT_EQ(file.devices.size(), 1u);
    EXPECT_EQ(file.devices[0].multiprocessors, 132);
    ASSERT_EQ(file.activities.size(), 2u);
    const ProgramActivity &kernel = file.activities[0], &copy = file.activities[1];
    EXPECT_EQ(file.text(kernel.name), "gemm");
    EXPECT_EQ(kernel.end_ns - kernel.start_ns, 40);
    EXPECT_EQ(kernel.grid[0], 5);
    EXPECT_EQ(kernel.stream, 9);
    EXPECT_EQ(file.text(file.range(kernel.range)->text), "step");
    EXPECT_EQ(copy.kind, ActivityKind::copy);
    EXPECT_EQ(copy.what, "HtoD");
    EXPECT_EQ(copy.bytes, 64);
    ASSERT_EQ(file.launches.size(), 1u);
    EXPECT_EQ(file.launches[0].correlation, kernel.correlation);
    EXPECT_THAT(file.notes, ElementsAre("clock moved"));
    EXPECT_TRUE(file.ended);
}

TEST(ProgramFile, OrdersActivitiesAsTheyWereLaunched) {
    WrittenProgram program;
    program.launch("a").launch_graph({"b", "c", "d"}).launch("e").end();
    // The device's records come in any order.
    std::vector<std::string> lines;
    std::istringstream text(program.text());
    for (std::string line; std::getline(text, line);) lines.push_back(line);
    std::string kernels_last, reversed;
    for (const std::string& line : lines)
        if (line.find("\"kernel\"") == std::string::npos && line.find("\"end\"") == std::string::npos)
            kernels_last += line + "\n";
    for (const std::string& line : lines)
        if (line.find("\"kernel\"") != std::string::npos) reversed = line + "\n" + reversed;
    const ProgramFile file = read_text(kernels_last + reversed + lines.back() + "\n");
    std::string order;
    for (const ProgramActivity& activity : file.activities) order += file.text(activity.name);
    EXPECT_EQ(order, "abcde");
}

TEST(ProgramFile, IgnoresWhatItDoesNotKnow) {
    const ProgramFile file = read_text(first_line + R"({"kind":"weather","sun":true})"
                                                    "\n"
                                                    R"({"kind":"note","text":"x","more":[1]})"
                                                    "\n");
    EXPECT_EQ(file.notes.front(), "x");
}

TEST(ProgramFile, RefusesWhatIsMalformedWithItsLine) {
    const std::string text = R"({"kind":"text","id":1,"text":"k"})"
                             "\n";
    const std::vector<std::pair<std::string, std::string>> cases{
        {"", "is empty"},
        {"{\"kind\":\"note\",\"text\":\"x\"}\n", "x.jsonl:1: the first line must be of kind 'process'"},
        {first_line + first_line, "x.jsonl:3: a second line of kind 'process'"},
        {first_line + "[]\n", "x.jsonl:3: is no JSON object"},
        {first_line + "{\n{\"kind\":\"end\"}\n", "x.jsonl:3: is not JSON"},
        {first_line + R"({"kind":"mark","launches":1})"
                      "\n",
         "x.jsonl:3: 'at_ns' is missing"},
        {first_line + R"({"kind":"mark","launches":-1,"at_ns":1})"
                      "\n",
         "x.jsonl:3: 'launches' must be a whole number"},
        {first_line + R"({"kind":"mark","launches":1.5,"at_ns":1})"
                      "\n",
         "x.jsonl:3: 'launches' must be a whole number"},
        {first_line + R"({"kind":"mark","launches":1,"at_ns":18446744073709551615})"
                      "\n",
         "x.jsonl:3: 'at_ns'"},
        {first_line + text + text, "x.jsonl:4: a second text 1"},
        {first_line + R"({"kind":"range","id":1,"parent":0,"text":1,"thread":1,"start_ns":1,"end_ns":2})"
                      "\n",
         "x.jsonl:3: 'text' is text 1, which no line before has"},
        {first_line + R"({"kind":"fill","correlation":1,"bytes":4,"start_ns":9,"end_ns":2,"device":0,"stream":7})"
                      "\n",
         "x.jsonl:3: 'end_ns' is 2, before 'start_ns', 9"},
        {first_line +
             R"({"kind":"fill","correlation":1,"bytes":4,"start_ns":1,"end_ns":2,"device":0,"stream":7,"range":5})"
             "\n"
             R"({"kind":"end","launches":0,"dropped":0,"end_ns":9})"
             "\n",
         "x.jsonl:3: range 5 has no line of its own"},
        {first_line + text +
             R"({"kind":"kernel","correlation":1,"name":1,"start_ns":1,"end_ns":2,"device":0,"stream":7,"grid":[1,70000,1]})"
             "\n",
         "x.jsonl:4: 'grid' has 70000, more than 65535"},
        {first_line + R"({"kind":"counted","launch":0,"values":[1]})"
                      "\n",
         "x.jsonl:3: of kind 'counted' before"},
        {first_line + R"({"kind":"counters","counters":["a","b"],"passes":1,"seconds":1,"first_launch":0})"
                      "\n"
                      R"({"kind":"counted","launch":0,"values":[1]})"
                      "\n",
         "x.jsonl:4: 'values' has 1 numbers for 2 counters"},
        {first_line + R"({"kind":"end","launches":0,"dropped":0,"end_ns":9})"
                      "\n"
                      R"({"kind":"note","text":"x"})"
                      "\n",
         "x.jsonl:4: a line after the one of kind 'end'"},
        {first_line + std::string(200, '[') + "\n", "x.jsonl:3: nested deeper"},
    };
    for (const auto& [content, expected] : cases) {
        const std::string said = refusal_of(content);
        EXPECT_THAT(said, HasSubstr(expected));
        EXPECT_EQ(said.find('\n'), std::string::npos);
    }
    const std::string other = R"({"kind":"process","format":"kbench.program/2","purpose":"records","pid":1})";
    EXPECT_THAT(refusal_of(other + "\n"), HasSubstr("x.jsonl:1: format is 'kbench.program/2', not 'kbench.program/1'"));
}

TEST(ProgramFile, RefusesRangesThatLieWithinEachOther) {
    const auto range = [](int id, int parent) {
        return nlohmann::json{{"kind", "range"}, {"id", id},      {"parent", parent}, {"text", 1},
                              {"thread", 1},     {"start_ns", 1}, {"end_ns", 2}}
                   .dump() +
               "\n";
    };
    const std::string text = R"({"kind":"text","id":1,"text":"k"})"
                             "\n";
    EXPECT_THAT(refusal_of(first_line + text + range(1, 2) + range(2, 3) + range(3, 1)),
                HasSubstr("lies within itself"));
    EXPECT_THAT(refusal_of(first_line + text + range(1, 1)), HasSubstr("lies within itself"));
    EXPECT_EQ(refusal_of(first_line + text + range(3, 2) + range(2, 1) + range(1, 0) + range(4, 2)), "");
}

TEST(ProgramFile, RefusesALaunchIndexTwice) {
    WrittenProgram program;
    program.launch("a");
    const std::string once = program.text();
    const std::size_t begin = once.find("{\"call\"");
    EXPECT_THAT(refusal_of(once + once.substr(begin, once.find('\n', begin) + 1 - begin)),
                HasSubstr("two launches have index 0"));
}

TEST(ProgramFile, TakesWhatAProcessThatDiedLeft) {
    WrittenProgram program;
    program.open("epoch").open("step").launch("a").launch("b").close();  // "epoch" was still open, and so has no line
    const std::string whole = program.text();
    const ProgramFile file = read_text(whole + R"({"kind":"kernel","correl)");
    EXPECT_FALSE(file.ended);
    EXPECT_EQ(file.activities.size(), 2u);
    EXPECT_EQ(file.range(file.activities[0].range)->parent, 0);
    EXPECT_THAT(file.notes, ElementsAre(HasSubstr("within the last line"), HasSubstr("ended before")));
    EXPECT_EQ(read_text(whole).notes.size(), 1u) << "its last line was not cut";
}

TEST(ProgramFile, TellsHowManyRecordsWereLost) {
    const ProgramFile file = read_text(first_line + R"({"kind":"end","launches":0,"dropped":3,"end_ns":9})"
                                                    "\n");
    EXPECT_THAT(file.notes, ElementsAre("the profiler lost 3 records"));
}

TEST(ProgramFiles, AreReadFromAFolderByPurposeAndRank) {
    const std::filesystem::path folder = std::filesystem::path(testing::TempDir()) / "program_files";
    std::filesystem::remove_all(folder);
    std::filesystem::create_directories(folder);
    const auto write = [&](const std::string& name, const std::string& text) { std::ofstream(folder / name) << text; };
    write("records.9.jsonl", WrittenProgram("records", 9, {{"rank", 0}}).end().text());
    write("records.2.jsonl", WrittenProgram("records", 2, {{"rank", 1}}).end().text());
    write("bare.5.jsonl", WrittenProgram("bare", 5).end().text());
    write("records.7.jsonl", "");  // a process that died before its first record
    write("notes.txt", "not a record");
    const auto files = read_program_files(folder);
    ASSERT_EQ(files.size(), 2u);
    ASSERT_EQ(files.at("records").size(), 2u);
    EXPECT_EQ(files.at("records")[0].process.pid, 9);
    EXPECT_EQ(files.at("bare")[0].process.pid, 5);
    write("names.1.jsonl", "nonsense\n");
    EXPECT_THROW(read_program_files(folder), UsageError);
    EXPECT_THROW(read_program_files(folder / "nowhere"), UsageError);
    std::filesystem::remove_all(folder);
    std::filesystem::create_directories(folder);
    EXPECT_THROW(read_program_files(folder), UsageError);
    std::filesystem::remove_all(folder);
}

}  // namespace
}  // namespace kbench
