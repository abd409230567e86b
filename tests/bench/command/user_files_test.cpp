// A command writes what it says and over nothing of the user's: what it cannot keep it refuses in one line, before it
// measures.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <sys/stat.h>

#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "bench/command/repeated/child.h"
#include "bench/measure/store/folder_lock.h"
#include "tests/bench/program.h"
#include "tests/bench/refusal.h"

namespace kbench {
namespace {

namespace fs = std::filesystem;
using testing::HasSubstr;

class UserFiles : public Program {
  protected:
    static constexpr const char* precious = "precious";

    std::string at(const std::string& name) { return (directory_ / name).string(); }
    std::string plant(const std::string& name) { return directory_.write(name, precious).string(); }
    void expect_untouched(const std::string& name) { EXPECT_EQ(read_text(directory_ / name), precious) << name; }
    /// A link called `name` to a file of the user's.
    void plant_link(const std::string& name) {
        plant("target");
        fs::create_directories((directory_ / name).parent_path());
        fs::create_symlink(directory_ / "target", directory_ / name);
    }
    void plant_pipe(const std::string& name) {
        fs::create_directories((directory_ / name).parent_path());
        ASSERT_EQ(mkfifo((directory_ / name).c_str(), 0600), 0);
    }
    std::string quick() { return "--config " + tiny() + " --backend cpu --quick --counters none --seq 8 "; }
    std::string run_into(const std::string& out) { return quick() + "--no-verify --out " + at(out) + " "; }
    std::string micro_into(const std::string& out) {
        return "micro --backend cpu --op gelu --shape r4w4 --precision fp32 --provider native --cache hot --ceilings none --counters none --time-budget 0.01 --out " +
               at(out) + " ";
    }
    /// result.json of a small run, in a folder of its own.
    std::string result(const std::string& name) {
        const Outcome outcome = kbench(run_into(name));
        EXPECT_EQ(outcome.exit_code, 0) << outcome.err;
        return at(name + "/result.json");
    }
};

TEST_F(UserFiles, AbRefusesAFolderWithAnythingThatIsCalledAsItsRuns) {
    const std::string ab = "ab --budget 3 --b '--batch 2' --out ", sides = " -- " + quick();
    plant("far/run-002-B/thesis.txt");
    expect_refusal("ab --budget 3 --b '--batch 2' --out " + at("far") + sides, "holds run-002-B already");
    expect_untouched("far/run-002-B/thesis.txt");
    plant("folder/thesis.txt");
    for (const std::string name : {"run-003-A", "run-003-A.txt", "ab.json", "probe.log"}) {
        fs::create_directories(directory_ / ("linked-" + name));
        fs::create_symlink(directory_ / "folder", directory_ / ("linked-" + name + "/" + name));
        expect_refusal(ab + at("linked-" + name) + sides, "holds " + name + " already");
        expect_untouched("folder/thesis.txt");
        EXPECT_FALSE(fs::exists(directory_ / ("linked-" + name + "/run-001-A"))) << "before anything is measured";
    }
}

TEST_F(UserFiles, ARunsFolderIsNew) {
    const auto run = [&](const std::string& name) {
        return refusal_of([&] { run_for_result("A", "/bin/true", {}, directory_ / name); });
    };
    plant("there/thesis.txt");
    EXPECT_THAT(run("there"), HasSubstr("File exists"));
    fs::create_symlink(directory_ / "there", directory_ / "link");
    EXPECT_THAT(run("link"), HasSubstr("File exists"));
    fs::create_symlink(directory_ / "nowhere", directory_ / "loose");
    EXPECT_THAT(run("loose"), HasSubstr("File exists"));
    EXPECT_FALSE(fs::exists(directory_ / "nowhere"));
    expect_untouched("there/thesis.txt");
    const std::vector<std::string> says{"-c", "echo no luck >&2"};  // and ends well
    EXPECT_THAT(error_line<MeasurementError>([&] { run_for_result("A", "/bin/sh", says, directory_ / "silent"); }),
                HasSubstr("A ended without a result: no luck"));
    refusal_of([&] { run_for_result("A", "/nonexistent", {}, directory_ / "misspelt"); });
    EXPECT_FALSE(fs::exists(directory_ / "misspelt")) << "or the corrected command would be refused";
}

TEST_F(UserFiles, ALogIsNew) {
    const auto run = [&](const std::string& name) {
        return refusal_of([&] { run_child("/bin/true", {}, directory_ / name); });
    };
    plant_link("log.txt");
    plant_pipe("pipe.txt");
    plant("plain.txt");
    for (const char* name : {"log.txt", "pipe.txt", "plain.txt"}) EXPECT_THAT(run(name), HasSubstr("File exists"));
    expect_untouched("target");
    expect_untouched("plain.txt");
    EXPECT_THAT(refusal_of([&] { run_child("/no/such/program", {}, directory_ / "new.txt"); }), HasSubstr("No such"));
    EXPECT_FALSE(fs::exists(directory_ / "new.txt"));
}

TEST_F(UserFiles, OfARunOnlyWhatKbenchWritesIsRemoved) {
    plant("folder/thesis.txt");
    plant("folder/thesis.json");
    const std::string source = result("source");
    // A kbench that runs beside a user who puts files of their own into its folder.
    const std::string script =
        directory_
            .write(
                "program",
                "#!/bin/sh\nwhile [ \"$1\" != --out ]; do shift; done\ncd \"$2\"\n"
                "cp " +
                    source +
                    " result.json\n"
                    "mkdir points mine\n"
                    "for f in report.html report.md trace.json points/a.json points/.lock .kbench.lock thesis.txt mine/thesis.txt; do echo x > $f; done\n"
                    "ln -s " +
                    at("folder") + " linked\n")
            .string();
    fs::permissions(script, fs::perms::owner_all);
    EXPECT_EQ(run_for_result("A", script, {}, directory_ / "run").points.size(), 1u);
    std::vector<std::string> kept;
    for (const auto& entry : fs::directory_iterator(directory_ / "run")) kept.push_back(entry.path().filename());
    EXPECT_THAT(kept, testing::UnorderedElementsAre("result.json", "thesis.txt", "mine", "linked"));
    expect_untouched("folder/thesis.txt");
    fs::create_directory_symlink(directory_ / "folder", directory_ / "points");
    const std::string linked = directory_
                                   .write("linking",
                                          "#!/bin/sh\nwhile [ \"$1\" != --out ]; do shift; done\ncd \"$2\"\n"
                                          "cp " +
                                              source + " result.json\nln -s " + at("folder") + " points\n")
                                   .string();
    fs::permissions(linked, fs::perms::owner_all);
    run_for_result("A", linked, {}, directory_ / "other");
    expect_untouched("folder/thesis.json");
}

TEST_F(UserFiles, LengthsAreWrittenOverNothing) {
    const std::string speech = directory_
                                   .write("speech.json", R"({"model_type": "deepspeech2", "hidden_size": 16,
                                       "hidden_layers": 1, "conv_channels": 2})")
                                   .string();
    const std::string options =
        "--config " + speech +
        " --backend cpu --quick --ceilings none --counters none --no-verify --frames 40 --batch 2 --latency-only ";
    const std::string drawn = options + "--lengths librispeech-like --out ";
    const std::string trained =
        options + "--direction bwd --lengths " + directory_.write("lengths", "40\n9\n").string() + " --out ";
    for (const auto& [command, name] : {std::pair(drawn, std::string("lengths-frames40-batch2.txt")),
                                        std::pair(trained, std::string("target-lengths-frames40-batch2.txt"))}) {
        plant_link("link/" + name);
        expect_refusal(command + at("link"), "holds a " + name + " already");
        expect_untouched("target");
        plant_pipe("pipe/" + name);
        expect_refusal(command + at("pipe"), "holds a " + name + " already");
        plant("own/" + name);
        const Outcome outcome = kbench(command + at("own"));
        EXPECT_EQ(outcome.exit_code, 2) << outcome.err;
        EXPECT_THAT(outcome.err, HasSubstr(name + ": holds other lengths than this run draws"));
        expect_untouched("own/" + name);
        EXPECT_EQ(kbench(command + at("new")).exit_code, 0);
        // As a run leaves it that was stopped in its first point.
        directory_.write("again/" + name, read_text(directory_ / ("new/" + name)));
        EXPECT_EQ(kbench(command + at("again")).exit_code, 0);
        for (const char* folder : {"link", "pipe", "own", "new", "again"}) fs::remove_all(directory_ / folder);
    }
}

TEST_F(UserFiles, ARunRefusesAFolderWhereItWouldWriteOverSomething) {
    for (const char* name : {"result.json", "report.html", "report.md", "trace.json"}) {
        plant_link("link/" + std::string(name));
        plant("plain/" + std::string(name));
        fs::create_directories(directory_ / "loose");
        fs::create_symlink(directory_ / "nowhere", directory_ / "loose" / name);
        for (const char* folder : {"link", "plain", "loose"}) {
            expect_refusal(run_into(folder), "holds a " + std::string(name) + " already");
            expect_refusal(run_into(folder) + "--resume", "holds a " + std::string(name) + " already");
            expect_refusal(micro_into(folder), "holds a " + std::string(name) + " already");
        }
        expect_untouched("target");
        expect_untouched("plain/" + std::string(name));
        EXPECT_FALSE(fs::exists(directory_ / "nowhere"));
        for (const char* folder : {"link", "plain", "loose"}) fs::remove_all(directory_ / folder);
    }
    plant("folder/x");
    fs::create_directories(directory_ / "run");
    fs::create_directory_symlink(directory_ / "folder", directory_ / "run/points");
    expect_refusal(run_into("run"), "points is a link or a file");
    plant_link("lock/.kbench.lock");
    expect_refusal(run_into("lock"), "cannot write " + at("lock/.kbench.lock"));
}

TEST_F(UserFiles, AResultThatCannotBeReadInASweepIsPutBesideEarlierOnes) {
    ASSERT_EQ(kbench(run_into("run")).exit_code, 0);
    const std::string point = "run/points/seq8-batch1-fp32.json";
    ASSERT_TRUE(fs::exists(directory_ / point));
    plant(point);
    directory_.write(point + ".unreadable", "earlier");
    EXPECT_EQ(kbench(run_into("run") + "--resume").exit_code, 0);
    EXPECT_EQ(read_text(directory_ / (point + ".unreadable")), "earlier");
    expect_untouched(point + ".unreadable-2");
}

TEST_F(UserFiles, ASweepGoesOnBesideItsOwnReportsAlone) {
    ASSERT_EQ(kbench(run_into("run")).exit_code, 0);
    const std::string again = run_into("run") + "--resume";
    EXPECT_EQ(kbench("report " + at("run/points/seq8-batch1-fp32.json") + " --out " + at("run/points")).exit_code, 0);
    EXPECT_TRUE(fs::exists(directory_ / "run/points/trace.json"));
    EXPECT_EQ(kbench(again).exit_code, 0) << "a report of a point is no point";
    EXPECT_EQ(kbench(again).exit_code, 0) << "over the reports of a run that only went on";
    plant("run/report.md");
    expect_refusal(again, "is no report of this result");
    expect_untouched("run/report.md");
}

TEST_F(UserFiles, ReportsOfARunWhoseCommandLineIsNotUtf8AreItsOwn) {
    ASSERT_EQ(kbench(run_into("caf\xe9")).exit_code, 0);
    EXPECT_EQ(kbench("report " + at("caf\xe9/result.json")).exit_code, 0);
}

TEST_F(UserFiles, NoReportIsDrawnBesideAResultThatNoRunWroteThere) {
    const std::string committed = directory_.write("committed/result.json", read_text(result("run"))).string();
    const std::string in_folder = "cd " + at("") + " && KBENCH_CACHE_DIR=cache " KBENCH_BINARY " ";
    const Outcome drawn = shell(in_folder + "report " + committed);
    EXPECT_EQ(drawn.exit_code, 0) << drawn.err;
    EXPECT_THAT(drawn.err, HasSubstr("wrote kbench-runs/"));
    EXPECT_EQ(std::distance(fs::directory_iterator(directory_ / "committed"), fs::directory_iterator()), 1);
    fs::remove(directory_ / "run/report.html");
    EXPECT_EQ(shell(in_folder + "report " + at("run")).exit_code, 0);
    EXPECT_TRUE(fs::exists(directory_ / "run/report.html")) << "a run's own folder";
}

TEST_F(UserFiles, OneCommandAtATimeWritesIntoAFolder) {
    const std::string source = result("source");
    fs::create_directories(directory_ / "held");
    const FolderLock lock(directory_ / "held");
    const std::string line = "--out " + at("held") + ": another kbench is writing into it";
    for (const std::string& command : {run_into("held"), micro_into("held"), "merge " + source + " --out " + at("held"),
                                       "ab --b '' --out " + at("held") + " -- " + quick()})
        expect_refusal(command, line);
    const Outcome study = kbench("study --config " + tiny() + " --backend cpu --quick --out " + at("held"));
    EXPECT_EQ(study.exit_code, 2);
    EXPECT_THAT(study.err, HasSubstr(line));
    EXPECT_FALSE(fs::exists(directory_ / "held/result.json"));
}

TEST_F(UserFiles, OfTwoCommandsAtOnceOneEndsWithItsResult) {
    const std::string source = result("source");
    const std::string program = "KBENCH_CACHE_DIR=" + at("cache") + " " KBENCH_BINARY " ";
    int both = 0;
    for (int i = 0; i < 3; ++i) {
        const std::string out = "at-once-" + std::to_string(i);
        for (const std::string& command : {"merge " + source + " --out " + at(out), micro_into(out + "-micro")}) {
            const std::string one = "(" + program + command + "; echo $? >>" + at("codes") + ")";
            const fs::path script = directory_.write("both.sh", one + " & " + one + " & wait\n");
            fs::remove(directory_ / "codes");
            shell("sh " + script.string());
            std::istringstream codes(read_text(directory_ / "codes"));
            EXPECT_THAT(std::vector<int>(std::istream_iterator<int>(codes), {}), testing::UnorderedElementsAre(0, 2));
            ++both;
        }
    }
    EXPECT_EQ(both, 6);
}

TEST_F(UserFiles, DumpsThatWouldBeLostAreRefusedBeforeAnythingIsMeasured) {
    const std::string x = at("x"), y = at("y"), out = at("run");
    const auto refused = [&](const std::string& dumps, const std::string& why) {
        expect_refusal(run_into("run") + dumps, why);
        EXPECT_FALSE(fs::exists(directory_ / "run")) << dumps;
    };
    refused("--dump-output logits=" + x + " --dump-output logits=" + y, "logits goes to " + x + " already");
    refused("--dump-logits " + x + " --dump-output logits=" + y, "logits goes to " + x + " already");
    refused("--direction bwd --dump-gradients ''", "--dump-gradients '': must name a file");
    const std::string both = "--direction bwd --dump-logits " + x + " --dump-gradients ";
    refused(both + x, "is the file of --dump-output logits=" + x + " too");
    fs::create_directories(directory_ / "folder");
    fs::create_directory_symlink(directory_ / "", directory_ / "link");
    for (const char* spelt : {"./x", "folder/../x", "link/x", "link/folder/../x"})
        refused(both + at(spelt), "is the file of --dump-output logits=" + x + " too");
    for (const char* name : {"result.json", "result.json.gz", "report.html", "report.md", "trace.json", ".kbench.lock",
                             "lengths-frames40-batch2.txt"})
        refused("--dump-logits " + out + "/" + name, "the run itself writes there");
    refused("--dump-logits " + out, "is the file of --out " + out + " too");
    plant("tokens.npy");
    refused("--tokens " + at("tokens.npy") + " --dump-logits " + at("link/tokens.npy"),
            "is the file of --input tokens=");
    expect_untouched("tokens.npy");
    const std::string config = at("config.json"), before = read_text(config);
    refused("--dump-logits " + config, "is the file of --config " + config + " too");
    EXPECT_EQ(read_text(config), before);
    EXPECT_EQ(
        kbench(run_into("run") + "--direction bwd --dump-output losses=" + out + "/x --dump-gradients " + out + "/y")
            .exit_code,
        0);
    EXPECT_TRUE(fs::exists(directory_ / "run/x") && fs::exists(directory_ / "run/y"));
}

TEST_F(UserFiles, ADumpIntoAFolderThatIsThereFollowsNoLink) {
    plant_link("run/logits.npy");
    expect_refusal(run_into("run") + "--dump-logits " + at("run/logits.npy"), "it is a link");
    expect_untouched("target");
    const std::string point = "run/points/seq8-batch1-fp32.json";
    fs::remove_all(directory_ / "run");
    ASSERT_EQ(kbench(run_into("run")).exit_code, 0);
    const std::string kept = read_text(directory_ / point);
    expect_refusal(run_into("run") + "--resume --dump-logits " + at(point), "the run itself writes there");
    expect_refusal(run_into("run") + "--resume --dump-logits " + at("l.npy"), "so that a dump would be lost");
    EXPECT_EQ(read_text(directory_ / point), kept);
}

TEST_F(UserFiles, GoogleBenchmarksFileIsWrittenWholeAndOverNoResult) {
    expect_refusal(micro_into("run") + "--benchmark_out=" + at("run") + "/result.json", "");
    fs::create_directories(directory_ / "run");
    expect_refusal(micro_into("run") + "--benchmark_out=" + at("run/result.json"), "the run itself writes there");
    const std::string shapes = directory_.write("shapes", "gelu r4w4\n").string();
    expect_refusal("micro --backend cpu --shapes " + shapes + " --benchmark_out=" + shapes,
                   "is the file of --shapes too");
    EXPECT_EQ(read_text(shapes), "gelu r4w4\n");
    EXPECT_EQ(kbench(micro_into("run") + "--benchmark_out=" + at("one.json")).exit_code, 0);
    EXPECT_EQ(nlohmann::json::parse(read_text(directory_ / "one.json"))["benchmarks"].size(), 1u);
    plant_link("link.json");
    expect_refusal(micro_into("linked") + "--benchmark_out=" + at("link.json"), "it is a link");
    const Outcome by_environment = shell("env BENCHMARK_OUT=" + at("two.json") + " KBENCH_CACHE_DIR=" + at("cache") +
                                         " " KBENCH_BINARY " " + micro_into("environment"));
    EXPECT_EQ(by_environment.exit_code, 0) << by_environment.err;
    EXPECT_EQ(nlohmann::json::parse(read_text(directory_ / "two.json"))["benchmarks"].size(), 1u);
    const auto with_nowhere = [&](const std::string& arguments) {
        return shell("env BENCHMARK_OUT=" + at("nowhere/x.json") + " KBENCH_CACHE_DIR=" + at("cache") +
                     " " KBENCH_BINARY " " + arguments);
    };
    EXPECT_EQ(with_nowhere(micro_into("nowhere")).exit_code, 2);
    EXPECT_EQ(with_nowhere("micro --help").exit_code, 0);
    EXPECT_EQ(with_nowhere(micro_into("typed") + "--benchmark_out=" + at("typed.json")).exit_code, 0)
        << "what is typed wins";
    EXPECT_TRUE(fs::exists(directory_ / "typed.json"));
    expect_untouched("target");
}

TEST_F(UserFiles, TrainingSavesOverNoFileThatItReads) {
    const std::string data = directory_.write("tokens.txt", "1 2 3 4 5 6 7 8 9 10").string();
    const std::string config = tiny_config(), before = read_text(config);
    const std::string train =
        "train --config " + config + " --backend cpu --batch 1 --seq 4 --steps 1 --data " + data + " --save ";
    expect_refusal(train + data, "is the file of --data too");
    expect_refusal(train + config, "is the file of --config too");
    EXPECT_EQ(read_text(data), "1 2 3 4 5 6 7 8 9 10");
    EXPECT_EQ(read_text(config), before);
}

TEST_F(UserFiles, ReportsAreDrawnOverThoseOfTheirOwnResultAlone) {
    const std::string one = result("one");
    nlohmann::ordered_json json = nlohmann::ordered_json::parse(read_text(one));
    json["environment"]["started_at"] = "2001-02-03T04:05:06Z";
    const std::string later = directory_.write("two/result.json", json.dump()).string();
    json = nlohmann::ordered_json::parse(read_text(one));
    json["environment"]["command_line"] = "kbench --model 'a|b <c>' --shard 2/8";  // begun in the same second
    const std::string beside = directory_.write("three/result.json", json.dump()).string();
    const std::string into = " --out " + at("reports");
    for (const char* format : {"all", "html", "md", "trace"})
        for (const std::string& first : {one, later, beside}) {
            fs::remove_all(directory_ / "reports");
            const std::string formats = " --format " + std::string(format);
            ASSERT_EQ(kbench("report " + first + into + formats).exit_code, 0);
            EXPECT_EQ(kbench("report " + first + into + formats).exit_code, 0) << "drawn again";
            for (const std::string& other : {one, later, beside}) {
                if (other != first) expect_refusal("report " + other + into + formats, "is no report of this result");
            }
        }
    EXPECT_EQ(kbench("report " + one).exit_code, 0) << "over what the run itself wrote";
    json["environment"]["started_at"] = "";
    const std::string old = directory_.write("four/result.json", json.dump()).string();
    plant("four/report.md");
    expect_refusal("report " + old + " --out " + at("four"), "is no report of this result");
    expect_untouched("four/report.md");
    directory_.write("one/other.json", read_text(later));
    expect_refusal("report " + at("one/other.json"), "is no report of this result");
    expect_refusal("report " + one + " --out " + at("two"), "holds another result.json");
    directory_.write("copy/result.json", read_text(one));
    EXPECT_EQ(kbench("report " + one + " --out " + at("copy")).exit_code, 0) << "the same result";
    plant_link("five/report.html");
    expect_refusal("report " + one + " --out " + at("five"), "it is a link");
    expect_untouched("target");
}

}  // namespace
}  // namespace kbench
