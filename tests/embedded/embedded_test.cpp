// The embedded profiler as a program links it, on a GPU whose times the test states: what is measured and when, what is
// written, and that nothing of it can end or disturb the program.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <barrier>
#include <chrono>
#include <filesystem>
#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <thread>
#include <vector>

#include "kbench/profile.h"
#include "tests/programs/child_process.h"
#include "tests/programs/fake_cuda.h"

namespace kbench {
namespace {

using testing::HasSubstr;
using Json = nlohmann::json;

/// A step of 10 ms: 1 ms before "forward", which takes 4 ms and holds "attention" of 3, and "loss" of 2 behind it.
void step(CUstream stream, double loss_ms = 2) {
    kbench_iteration(stream);
    fake_kernel(stream, 1);
    {
        const Scope forward("forward", stream);
        kbench_scope_begin("attention", stream);
        fake_kernel(stream, 3);
        kbench_scope_end("attention", stream);
        fake_kernel(stream, 1);
    }
    kbench_scope_begin("loss", stream);
    fake_kernel(stream, loss_ms);
    kbench_scope_end("loss", stream);
    fake_kernel(stream, 3);
    fake_host(0.5);  // so the host is ahead of the GPU
}

/// So many steps on a stream of the first GPU, which is returned.
CUstream steps(int count) {
    const CUstream stream = fake_stream(fake_context(0));
    for (int i = 0; i < count; ++i) step(stream);
    return stream;
}

Json scope(const Json& file, const std::string& label, const std::string& stream = "stream 0", int occurrence = 0) {
    for (const Json& one : file.at("timeline").at("0").at(stream))
        if (one.at("label") == label && one.at("occurrence") == occurrence) return one;
    ADD_FAILURE() << "no scope " << label << " in\n" << file.dump(1);
    return {};
}

class Embedded : public testing::Test {
  protected:
    /// prof.json of a program that runs `work`.
    Json measured(const std::string& schedule, const std::function<int()>& work,
                  const std::map<std::string, std::string>& environment = {}) {
        child_.write("prof.schedule", schedule);
        EXPECT_EQ(child_.run(work, environment), 0) << child_.err();
        const std::string text = child_.read("prof.json");
        EXPECT_TRUE(Json::accept(text)) << text << child_.err();
        return Json::parse(text, nullptr, false);
    }
    ChildProcess child_;
};

TEST_F(Embedded, EachScopeHasItsTimeAndItsPlace) {
    const Json file = measured("iterations 2:\nrepeat 4\nscope *\n", [] {
        steps(30);
        return 0;
    });
    EXPECT_EQ(file.at("format"), "kbench.scopes/1");
    EXPECT_NE(file.at("host_name"), "");
    EXPECT_TRUE(file.at("rank").is_null());
    EXPECT_TRUE(file.at("complete"));
    EXPECT_THAT(file.at("arguments").at(0).get<std::string>(), HasSubstr("embedded_tests"));
    EXPECT_EQ(file.at("devices").at(0).at("name"), "Fake GPU 0");
    EXPECT_EQ(file.at("devices").at(0).at("notes"), Json::array());
    EXPECT_DOUBLE_EQ(file.at("avg_iter_time_ms"), 10);
    EXPECT_EQ(file.at("iter_n"), 1 + 3 * 4) << "one to see the scopes, then each four times";
    EXPECT_EQ(file.at("timeline").at("0").at("stream 0").size(), 3u);
    struct Expected {
        std::string label;
        int start_index, end_index;
        double ms, offset_ms;
    };
    for (const Expected& expected :
         {Expected{"forward", 0, 3, 4, 1}, {"attention", 1, 2, 3, 1}, {"loss", 4, 5, 2, 5}}) {
        const Json one = scope(file, expected.label);
        EXPECT_EQ(one.at("start_index"), expected.start_index) << expected.label;
        EXPECT_EQ(one.at("end_index"), expected.end_index) << expected.label;
        EXPECT_NEAR(one.at("avg_measured_time_ms"), expected.ms, 1e-5) << expected.label;
        EXPECT_NEAR(one.at("avg_iter_start_to_event_start_time_ms"), expected.offset_ms, 1e-5) << expected.label;
        EXPECT_EQ(one.at("n"), 4) << expected.label;
        EXPECT_EQ(one.at("measured_times_ms").size(), 4u);
        EXPECT_LE(one.at("ci_low"), one.at("avg_measured_time_ms"));
        EXPECT_GE(one.at("ci_high"), one.at("avg_measured_time_ms"));
        EXPECT_FALSE(one.at("in_graph"));
    }
    EXPECT_THAT(child_.err(), testing::EndsWith("kbench: profile: wrote prof.json\n"));
}

TEST_F(Embedded, AnIterationHasOnePairOfEventsAndOneMark) {
    measured("iterations 2:\nrepeat 4\nscope *\n", [] {
        const CUstream stream = fake_stream(fake_context(0));
        int most = 0;
        for (int i = 0, before = 0; i < 30; ++i, before = fake_calls("cuEventRecordWithFlags")) {
            step(stream);
            most = std::max(most, fake_calls("cuEventRecordWithFlags") - before);
        }
        if (most != 3) return 1;
        if (fake_calls("cuEventRecordWithFlags") != (1 + 3 * 4 + 1) + 2 * 3 * 4) return 2;
        return 0;
    });
}

TEST_F(Embedded, TheHostNeverWaitsWhileScopesOfStreamsAreMeasured) {
    measured("iterations 2:12\nrepeat 100\nscope *\n", [] {
        steps(12);
        return fake_calls("cuEventSynchronize");
    });
}

TEST_F(Embedded, ScopesThatOccurAgainAreApart) {
    const Json file = measured("iterations 0:\nrepeat 3\nscope layer\n", [] {
        const CUstream stream = fake_stream(fake_context(0));
        for (int i = 0; i < 20; ++i) {
            kbench_iteration(stream);
            for (const double ms : {1.0, 2.0}) {
                const Scope layer("layer", stream), unnamed("not scheduled", stream);
                fake_kernel(stream, ms);
            }
            fake_host(0.1);
        }
        return 0;
    });
    EXPECT_EQ(file.at("timeline").at("0").at("stream 0").size(), 2u);
    EXPECT_NEAR(scope(file, "layer", "stream 0", 0).at("avg_measured_time_ms"), 1, 1e-5);
    EXPECT_NEAR(scope(file, "layer", "stream 0", 1).at("avg_measured_time_ms"), 2, 1e-5);
    EXPECT_EQ(scope(file, "layer", "stream 0", 1).at("start_index"), 4);
}

TEST_F(Embedded, StreamsAndDevicesHaveTimelinesOfTheirOwn) {
    const Json file = measured("iterations 1:\nrepeat 2\nscope *\n", [] {
        const CUcontext contexts[] = {fake_context(0), fake_context(1)};
        const CUstream main[] = {fake_stream(contexts[0]), fake_stream(contexts[1])}, side = fake_stream(contexts[0]);
        fake_set_current(contexts[0]);
        for (int i = 0; i < 20; ++i)
            for (const int device : {0, 1}) {
                kbench_iteration(main[device]);
                {
                    const Scope product("product", main[device]);
                    fake_kernel(main[device], 1 + device);
                }
                if (device == 0) {
                    const Scope copy("copy", side), standard("standard", nullptr);
                    fake_kernel(side, 0.25);
                    fake_kernel(nullptr, 0.5);
                }
                fake_host(3);
            }
        return 0;
    });
    EXPECT_EQ(file.at("devices").size(), 2u);
    EXPECT_NEAR(scope(file, "product").at("avg_measured_time_ms"), 1, 1e-5);
    EXPECT_NEAR(scope(file, "copy", "stream 1").at("avg_measured_time_ms"), 0.25, 1e-5);
    EXPECT_NEAR(scope(file, "standard", "default").at("avg_measured_time_ms"), 0.5, 1e-5);
    EXPECT_NEAR(file.at("timeline").at("1").at("stream 0").at(0).at("avg_measured_time_ms"), 2, 1e-5);
    EXPECT_NEAR(file.at("avg_iter_time_ms"), 6, 1e-5);
}

TEST_F(Embedded, AScopeOfAnotherStreamMayBeginBeforeItsIteration) {
    const Json file = measured("iterations 0:10\nscope *\n", [] {
        const CUstream stream = fake_stream(fake_context(0));
        for (int i = 0; i < 12; ++i) {
            kbench_iteration(stream);
            const Scope copy("copy", CU_STREAM_PER_THREAD);
            fake_kernel(stream, 1);
            if (i == 0) fake_kernel(stream, 4);  // what the stream is behind by from then on
            fake_host(1);
        }
        return 0;
    });
    EXPECT_NEAR(scope(file, "copy", "per-thread default").at("avg_iter_start_to_event_start_time_ms"), -4, 1e-5);
}

TEST_F(Embedded, AScopeThatOccursInFewIterationsIsTriedTenTimesAsOften) {
    const Json file = measured("iterations 0:\nrepeat 2\nscope *\n", [] {
        const CUstream stream = fake_stream(fake_context(0));
        for (int i = 0; i < 100; ++i) {
            kbench_iteration(stream);
            if (i == 0) const Scope once("once", stream);
            const Scope always("always", stream);
        }
        return 0;
    });
    EXPECT_TRUE(file.at("complete"));
    EXPECT_EQ(file.at("iter_n"), 1 + 2 + 10 * 2);
    EXPECT_EQ(scope(file, "always").at("n"), 2);
    EXPECT_EQ(scope(file, "once").at("n"), 0);
}

TEST_F(Embedded, ScopesOfAGraphAreTimedInItsLaunches) {
    const Json file = measured("iterations 3:\nrepeat 4\nscope *\n", [] {
        const CUstream stream = fake_stream(fake_context(0));
        fake_begin_capture(stream);
        kbench_scope_begin("graph", stream);
        fake_kernel(stream, 1);
        kbench_scope_begin("inner", stream);
        fake_kernel(stream, 2);
        kbench_scope_end("inner", stream);
        kbench_scope_end("graph", stream);
        const int graph = fake_end_capture(stream);
        if (fake_event_nodes(graph) != 4) return 1;
        for (int i = 0; i < 40; ++i) {
            kbench_iteration(stream);
            const Scope eager("eager", stream);
            fake_kernel(stream, 5);
            fake_launch(graph, stream);
            fake_host(0.5);
        }
        return 0;
    });
    EXPECT_TRUE(file.at("complete"));
    EXPECT_NEAR(scope(file, "graph").at("avg_measured_time_ms"), 3, 1e-5);
    EXPECT_NEAR(scope(file, "graph").at("avg_iter_start_to_event_start_time_ms"), 5, 1e-5);
    EXPECT_EQ(scope(file, "graph").at("n"), 4);
    EXPECT_TRUE(scope(file, "graph").at("in_graph"));
    EXPECT_NEAR(scope(file, "inner").at("avg_measured_time_ms"), 2, 1e-5);
    EXPECT_EQ(scope(file, "inner").at("start_index"), 1) << "within the graph";
    EXPECT_FALSE(scope(file, "eager").at("in_graph"));
    EXPECT_EQ(scope(file, "eager").at("n"), 4);
    for (const Json& ms : file.at("devices").at(0).at("iter_times_ms"))
        EXPECT_NEAR(ms, 8, 1e-5) << "an iteration that begins on an idle GPU is not measured";
}

TEST_F(Embedded, AGraphThatIsCapturedAgainKeepsItsScopes) {
    const Json file = measured("iterations 1:\nrepeat 3\nscope *\n", [] {
        const CUstream stream = fake_stream(fake_context(0));
        for (int i = 0; i < 20; ++i) {
            kbench_iteration(stream);
            fake_begin_capture(stream);
            {
                const Scope part("part", stream);
                fake_kernel(stream, 2);
            }
            fake_launch(fake_end_capture(stream), stream);
        }
        return fake_calls("cuEventCreate") < 12 ? 0 : 1;
    });
    EXPECT_EQ(file.at("timeline").at("0").at("stream 0").size(), 1u);
    EXPECT_NEAR(scope(file, "part").at("avg_measured_time_ms"), 2, 1e-5);
}

TEST_F(Embedded, AGraphThatIsNotLaunchedInAnIterationHasNoSampleThere) {
    const Json file = measured("iterations 1:40\nrepeat 100\nscope *\n", [] {
        const CUstream stream = fake_stream(fake_context(0));
        fake_begin_capture(stream);
        kbench_scope_begin("part", stream);
        fake_kernel(stream, 2);
        kbench_scope_end("part", stream);
        const int graph = fake_end_capture(stream);
        for (int i = 0; i < 41; ++i) {
            kbench_iteration(stream);
            if (i < 20) fake_launch(graph, stream);
            fake_kernel(stream, 1);
        }
        return 0;
    });
    EXPECT_EQ(scope(file, "part").at("n"), 9);
    EXPECT_NEAR(scope(file, "part").at("ci_high"), 2, 1e-5);
}

TEST_F(Embedded, AnotherStreamsCaptureIsNotDisturbed) {
    const Json file = measured("iterations 1:\nrepeat 3\nscope *\n", [] {
        const CUcontext context = fake_context(0);
        const CUstream stream = fake_stream(context), captured = fake_stream(context);
        for (int i = 0; i < 30; ++i) {
            if (i == 4) fake_begin_capture(captured);
            step(stream);
            const Scope legacy("legacy", nullptr);  // may not be touched while another stream is captured
        }
        return fake_event_nodes(fake_end_capture(captured));
    });
    EXPECT_EQ(scope(file, "loss").at("n"), 3);
}

TEST_F(Embedded, TheScheduleSaysFromWhenAScopeIsMeasured) {
    const Json file = measured("iterations 0:\nrepeat 2\nscope loss start 20\nscope *\n", [] {
        const CUstream stream = fake_stream(fake_context(0));
        for (int i = 0; i < 60; ++i) step(stream, i < 20 ? 100 : 2);
        return 0;
    });
    EXPECT_EQ(scope(file, "loss").at("n"), 2);
    EXPECT_NEAR(scope(file, "loss").at("avg_measured_time_ms"), 2, 1e-5) << "none of before iteration 20";
    EXPECT_GE(file.at("iter_n"), 20);
}

TEST_F(Embedded, BehindTheLastMeasurementTheProgramGoesOnOrStops) {
    const auto work = [] {
        steps(100);
        if (kbench_profile_state != 0) return 2;  // off: a call is a load and a branch again
        std::printf("went on\n");
        return std::fflush(stdout);
    };
    testing::internal::CaptureStdout();
    EXPECT_TRUE(measured("iterations 2:20\nscope *\nthen go on\n", work).at("complete"));
    EXPECT_EQ(testing::internal::GetCapturedStdout(), "went on\n");
    testing::internal::CaptureStdout();
    EXPECT_TRUE(measured("iterations 2:20\nscope *\nthen stop\n", work).at("complete"));
    EXPECT_EQ(testing::internal::GetCapturedStdout(), "");
    EXPECT_THAT(child_.err(), HasSubstr("the schedule says stop"));
}

TEST_F(Embedded, AProgramThatEndsEarlyHasWhatWasMeasured) {
    const Json file = measured("iterations 2:\nrepeat 1000\nscope *\n", [] {
        steps(20);
        return 0;
    });
    EXPECT_FALSE(file.at("complete"));
    EXPECT_EQ(scope(file, "loss").at("n"), 5);
}

TEST_F(Embedded, FinishWritesBeforeTheScheduleDoes) {
    const Json file = measured("iterations 2:\nscope loss\n", [] {
        steps(8);
        kbench_profile_finish();
        return std::filesystem::exists("prof.json") && kbench_profile_state == 0 ? 0 : 1;
    });
    EXPECT_EQ(scope(file, "loss").at("n"), 4);
}

TEST_F(Embedded, AForkOfTheProgramWritesNothing) {
    const Json file = measured("iterations 2:\nscope loss\n", [] {
        steps(8);
        const pid_t fork_of_it = fork();
        if (fork_of_it == 0) std::exit(0);
        waitpid(fork_of_it, nullptr, 0);
        return std::filesystem::exists("prof.json") ? 1 : 0;
    });
    EXPECT_EQ(scope(file, "loss").at("n"), 4);
}

TEST_F(Embedded, WhatDoesNotFitTogetherIsNoted) {
    const Json file = measured("iterations 0:6\nscope *\n", [] {
        const CUstream stream = fake_stream(fake_context(0));
        for (int i = 0; i < 8; ++i) {
            kbench_iteration(stream);
            kbench_scope_begin("never ends", stream);
            kbench_scope_end("never began", stream);
            kbench_scope_end(nullptr, stream);
        }
        return 0;
    });
    const std::string notes = file.at("devices").at(0).at("notes").dump();
    EXPECT_THAT(notes, HasSubstr("'never began' ended on stream 0 without a begin"));
    EXPECT_THAT(notes, HasSubstr("'unnamed' ended"));
    EXPECT_THAT(notes, HasSubstr("'never ends' did not end in the iteration in which it began"));
    EXPECT_TRUE(scope(file, "never ends").at("end_index").is_null());
    EXPECT_TRUE(scope(file, "never ends").at("avg_measured_time_ms").is_null());
    EXPECT_TRUE(scope(file, "never ends").at("ci_low").is_null());
}

TEST_F(Embedded, WhatIsNotMeasuredIsNoted) {
    const Json file = measured("iterations 0:6\nscope another\n", [] {
        const CUstream stream = fake_stream(fake_context(0)), of_second = fake_stream(fake_context(0));
        for (int i = 0; i < 8; ++i) {
            kbench_iteration(stream);
            fake_begin_capture(stream);
            kbench_iteration(stream);
            fake_end_capture(stream);
            const Scope one("one", stream), second("another", of_second);
        }
        return 0;
    });
    EXPECT_EQ(file.at("timeline").at("0"), Json::object());
    const std::string notes = file.at("devices").at(0).at("notes").dump();
    EXPECT_THAT(notes, HasSubstr("an iteration began in a stream while it was captured"));
    EXPECT_THAT(notes, HasSubstr("streams of a second context of this device are not measured"));
    EXPECT_THAT(notes, HasSubstr("no scope that the schedule names began in the measured iterations"));
}

TEST_F(Embedded, WithoutIterationsNothingIsMeasuredAndSaid) {
    const Json file = measured("scope *\n", [] {
        const CUstream stream = fake_stream(fake_context(0));
        const Scope scope("a", stream);
        return 0;
    });
    EXPECT_THAT(file.at("devices").at(0).at("notes").dump(), HasSubstr("no kbench_iteration()"));
    EXPECT_TRUE(file.at("avg_iter_time_ms").is_null());
}

TEST_F(Embedded, AProcessWithARankHasAFileOfItsOwnInTheNamedFolder) {
    child_.write("s", "iterations 0:5\noutput not/here\nscope \"a\xff\n");
    EXPECT_EQ(child_.run(
                  [] {
                      const CUstream stream = fake_stream(fake_context(0));
                      for (int i = 0; i < 8; ++i) {
                          kbench_iteration(stream);
                          const Scope scope("\"a\xff", stream);
                      }
                      return 0;
                  },
                  {{"RANK", "3"}, {"KBENCH_PROFILE_SCHEDULE", "s"}, {"KBENCH_PROFILE_OUTPUT", "two/folders"}}),
              0);
    const Json file = Json::parse(child_.read("two/folders/prof.3.json"), nullptr, false);
    EXPECT_EQ(file.at("rank"), 3);
    EXPECT_EQ(scope(file, "\"a\xef\xbf\xbd").at("n"), 4);
    EXPECT_FALSE(std::filesystem::exists(child_.folder() / "not"));
}

TEST_F(Embedded, EachLaunchersRankIsTheProcesss) {
    child_.write("prof.schedule", "iterations 0:5\nscope *\n");
    for (const char* variable : {"RANK", "OMPI_COMM_WORLD_RANK", "PMI_RANK", "SLURM_PROCID"}) {
        EXPECT_EQ(child_.run([] { return steps(8) == nullptr ? 1 : 0; },
                             {{variable, "12"}, {"KBENCH_PROFILE_OUTPUT", variable}}),
                  0);
        EXPECT_EQ(Json::parse(child_.read(std::string(variable) + "/prof.12.json"), nullptr, false).at("rank"), 12);
    }
    EXPECT_EQ(
        measured("iterations 0:5\nscope *\n", [] { return steps(8) == nullptr ? 1 : 0; }, {{"RANK", "-1"}}).at("rank"),
        Json());
}

TEST_F(Embedded, WithoutAScheduleNothingHappens) {
    EXPECT_EQ(child_.run([] {
        const CUstream stream = steps(1);
        if (kbench_profile_state != 0) return 1;
        step(stream);
        return fake_calls("cuEventRecordWithFlags") + fake_calls("cuStreamGetCaptureInfo");
    }),
              0);
    EXPECT_EQ(child_.err(), "");
}

TEST_F(Embedded, AVariableThatIsSetToNothingIsNoSchedule) {
    child_.write("prof.schedule", "scope *\n");
    EXPECT_EQ(child_.run(
                  [] {
                      steps(1);
                      return kbench_profile_state;
                  },
                  {{"KBENCH_PROFILE_SCHEDULE", ""}}),
              0);
    EXPECT_EQ(child_.err(), "");
}

TEST_F(Embedded, WhatIsWrongIsOneLineAndTheProgramGoesOn) {
    const auto work = [] {
        steps(20);
        return kbench_profile_state;
    };
    child_.write("prof.schedule", "scope *\nrepeat often\n");
    EXPECT_EQ(child_.run(work), 0);
    EXPECT_EQ(child_.err(),
              "kbench: profile: prof.schedule:2: repeat 'often' must be a whole number from 1 to 1000000; profiling is "
              "off\n");
    EXPECT_EQ(child_.run(work, {{"KBENCH_PROFILE_SCHEDULE", "none"}}), 0);
    EXPECT_EQ(child_.err(), "kbench: profile: none: No such file or directory; profiling is off\n");
    EXPECT_EQ(child_.run(work, {{"KBENCH_PROFILE_SCHEDULE", "."}}), 0);
    EXPECT_THAT(child_.err(), HasSubstr("; profiling is off\n"));
    child_.write("prof.schedule", "iterations 0:10\nscope *\noutput prof.schedule/x\n");
    EXPECT_EQ(child_.run(work), 0);
    EXPECT_THAT(child_.err(), HasSubstr("cannot make the folder prof.schedule/x: Not a directory; profiling is off\n"));
    child_.write("prof.schedule", "iterations 0:10\nscope *\n");
    std::filesystem::create_symlink("elsewhere", child_.folder() / "prof.json");
    EXPECT_EQ(child_.run(work), 0);
    EXPECT_THAT(child_.err(), HasSubstr("something stands there that is no file"));
    EXPECT_EQ(child_.run([] {
        const CUstream stream = steps(1);
        fake_fail("cuEventRecordWithFlags", CUDA_ERROR_LAUNCH_FAILED);
        for (int i = 0; i < 20; ++i) step(stream);
        return kbench_profile_state;
    }),
              0);
    EXPECT_EQ(child_.err(), "kbench: profile: cuEventRecordWithFlags: CUDA_ERROR_LAUNCH_FAILED; profiling is off\n");
}

TEST_F(Embedded, ThreadsMayCallAtOnce) {
    const Json file = measured("iterations 1:\nrepeat 20\nscope *\n", [] {
        const CUcontext contexts[] = {fake_context(0), fake_context(1)};
        fake_set_current(contexts[0]);
        const CUstream streams[] = {fake_stream(contexts[0]), fake_stream(contexts[1])};
        std::vector<std::thread> threads;
        std::barrier together(2);  // a device that began nothing before another has finished is not waited for
        for (const CUstream stream : streams)
            threads.emplace_back([&together, stream] {
                for (int i = 0; i < 200; ++i) {
                    together.arrive_and_wait();
                    kbench_iteration(stream);
                    const Scope scope("part", stream);
                }
            });
        for (std::thread& thread : threads) thread.join();
        return 0;
    });
    for (const char* device : {"0", "1"})
        EXPECT_EQ(file.at("timeline").at(device).at("stream 0").at(0).at("n"), 20) << device;
}

/// Nanoseconds of the five calls of a step, the least of several rounds.
double ns_a_step(CUstream stream) {
    constexpr int steps = 100'000;
    double least = 1e9;
    for (int round = 0; round < 20; ++round) {
        const auto start = std::chrono::steady_clock::now();
        for (int i = 0; i < steps; ++i) {
            kbench_iteration(stream);
            kbench_scope_begin("forward", stream);
            kbench_scope_end("forward", stream);
            const Scope backward("backward", stream);
        }
        const std::chrono::duration<double, std::nano> took = std::chrono::steady_clock::now() - start;
        least = std::min(least, took.count() / steps);
    }
    return least;
}

TEST_F(Embedded, SwitchedOffItCostsLessThanAThousandthOfAStepOfTenMicroseconds) {
    EXPECT_EQ(child_.run([] {
        const double ns = ns_a_step(nullptr);
        std::fprintf(stderr, "%.2f", ns);
        return ns < 10 ? 0 : 1;
    }),
              0)
        << child_.err() << " ns for five calls";
    RecordProperty("ns_a_step", child_.err());
}

}  // namespace
}  // namespace kbench
