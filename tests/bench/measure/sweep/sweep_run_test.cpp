// Sweeps that go wrong: points that fail, memory that is less than the plan thought, devices that are lost, and going
// on afterwards.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <nlohmann/json.hpp>

#include "analysis/result/result_json.h"
#include "bench/measure/store/folder_lock.h"
#include "bench/measure/store/result_files.h"
#include "bench/measure/sweep/planning.h"
#include "bench/measure/sweep/recorded_options.h"
#include "kbench/error.h"
#include "tests/bench/refusal.h"
#include "tests/bench/small_run.h"
#include "tests/bench/temporary_directory.h"

namespace kbench {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::MatchesRegex;
using testing::SizeIs;

/// Three batches, of which the second is `failing`'s.
RunOptions three_batches(const std::filesystem::path& out) {
    RunOptions options = small_run(out);
    options.values["batch"] = {1, 2, 3};
    return options;
}

std::vector<PointStatus> statuses(const Result& result) {
    std::vector<PointStatus> all;
    for (const Point& point : result.points) all.push_back(point.status);
    return all;
}

std::vector<std::string> point_names(const std::filesystem::path& out) {
    std::vector<std::string> names;
    for (const auto& path : point_files(out / points_folder)) names.push_back(path.stem().string());
    return names;
}

TEST(SweepRun, GoesOnPastAPointThatFails) {
    const TemporaryDirectory directory;
    OtherProfiler profiler;
    int prepared = 0;
    profiler.before_watch = [&] {
        if (++prepared == 2) throw DeviceError("an illegal address");
    };
    Result result;
    Progress progress;
    const SweepEnd end = run_points(three_batches(directory / ""), cpu(), profiler, result, progress);
    EXPECT_FALSE(end.early());
    EXPECT_THAT(statuses(result), ElementsAre(PointStatus::done, PointStatus::failed, PointStatus::done));
    EXPECT_EQ(result.points[1].reason, "prepare: an illegal address");
    EXPECT_EQ(result.points[1].batch(), 2);
}

TEST(SweepRun, EveryFinishedPointIsOnDiskBeforeTheNextStarts) {
    const TemporaryDirectory directory;
    OtherProfiler profiler;
    std::vector<std::vector<std::string>> there;
    profiler.before_watch = [&] { there.push_back(point_names(directory / "")); };
    Result result;
    Progress progress;
    run_points(three_batches(directory / ""), cpu(), profiler, result, progress);
    EXPECT_THAT(there, ElementsAre(IsEmpty(), ElementsAre("seq33-batch1-fp32"),
                                   ElementsAre("seq33-batch1-fp32", "seq33-batch2-fp32")));
    const Result one = read_result_file(directory / "points/seq33-batch2-fp32.json").result;
    ASSERT_THAT(one.points, SizeIs(1));
    EXPECT_EQ(one.points[0].batch(), 2);
    EXPECT_EQ(one.options, result.options);
}

TEST(SweepRun, EndsWhenTheDeviceIsLost) {
    const TemporaryDirectory directory;
    OtherDevice device;
    Result result;
    device.before_allocate = [&](std::size_t) {
        if (result.points.size() == 1) throw DeviceError("the device is gone");
    };
    Progress progress;
    const SweepEnd end = run_points(three_batches(directory / ""), device, cpu_profiler(), result, progress);
    EXPECT_THAT(end.device_lost, MatchesRegex("verify [a-z]+ [a-z0-9]+: the device is gone"));
    ASSERT_THAT(statuses(result), ElementsAre(PointStatus::done, PointStatus::failed));
    EXPECT_EQ(result.points[1].reason, end.device_lost) << "what it was at, and what it said";
    EXPECT_THAT(result.warnings,
                testing::Contains(HasSubstr("lost (" + end.device_lost + ") after 2 of 3 points; `--resume` goes on")));
    EXPECT_THAT(read_result_file(directory / "result.json").result.points, SizeIs(2));
}

/// A device of which every call fails from one on, as all of CUDA do after an illegal address or when the GPU is gone.
class Lost {
  public:
    explicit Lost(int from) : from_(from) {
        device.before_call = [this] {
            if (++calls >= from_) throw DeviceError("cudaErrorLaunchFailure");
        };
    }
    OtherDevice device;
    int calls = 0;

  private:
    int from_;
};

TEST(SweepRun, WhateverCallTheDeviceIsLostInWhatIsFinishedStaysAndNothingMoreIsMeasured) {
    int all = 0;
    {
        const TemporaryDirectory directory;
        Lost never(std::numeric_limits<int>::max());
        Result result;
        Progress progress;
        EXPECT_FALSE(run_points(three_batches(directory / ""), never.device, cpu_profiler(), result, progress).early());
        all = never.calls;
    }
    ASSERT_GT(all, 100);
    for (int from = 1; from <= all; from += from < 4 ? 1 : all / 8) {
        const TemporaryDirectory directory;
        Lost lost(from);
        Result result;
        Progress progress;
        const SweepEnd end = run_points(three_batches(directory / ""), lost.device, cpu_profiler(), result, progress);
        if (lost.calls < from) continue;  // how often the clock is asked differs from run to run
        ASSERT_TRUE(end.early()) << "from call " << from;
        EXPECT_THAT(end.device_lost, HasSubstr("cudaErrorLaunchFailure")) << "from call " << from;
        ASSERT_FALSE(result.points.empty());
        for (std::size_t i = 0; i + 1 < result.points.size(); ++i)
            EXPECT_EQ(result.points[i].status, PointStatus::done);
        EXPECT_EQ(result.points.back().status, PointStatus::failed) << "from call " << from;
        EXPECT_THAT(point_names(directory / ""), SizeIs(result.points.size()));
        EXPECT_LT(lost.calls - from, 20) << "calls after the first that failed: nothing goes on";
    }
}

TEST(SweepRun, ALostDeviceMakesNoPointSkipped) {
    const TemporaryDirectory directory;
    OtherDevice device;
    device.all_memory = std::int64_t{257} << 20;  // too little for a plan
    device.before_allocate = [](std::size_t) { throw DeviceError("the device is gone"); };
    Result result;
    Progress progress;
    const SweepEnd end = run_points(three_batches(directory / ""), device, cpu_profiler(), result, progress);
    EXPECT_EQ(end.device_lost, "plan: the device is gone");
    EXPECT_THAT(statuses(result), ElementsAre(PointStatus::failed));
}

TEST(SweepRun, CountersThatCannotBeReadFailNoPointButALostDeviceDoes) {
    for (const bool loses : {false, true}) {
        const TemporaryDirectory directory;
        OtherDevice device;
        OtherProfiler profiler;
        bool lost = false;
        profiler.count_ranges = [&](std::size_t) -> RangeCounters {
            lost = loses;
            throw DeviceError("no permission");
        };
        device.before_call = [&] {
            if (lost) throw DeviceError("the device is gone");
        };
        Result result;
        Progress progress;
        const SweepEnd end = run_points(three_batches(directory / ""), device, profiler, result, progress);
        EXPECT_EQ(end.device_lost, loses ? "counters: the device is gone" : "");
        EXPECT_THAT(statuses(result), SizeIs(loses ? 1 : 3));
        EXPECT_THAT(statuses(result), testing::Each(loses ? PointStatus::failed : PointStatus::done));
    }
}

TEST(SweepRun, ASignalEndsItWithWhatIsFinished) {
    const TemporaryDirectory directory;
    OtherProfiler profiler;
    int prepared = 0;
    profiler.before_watch = [&] {
        if (++prepared == 2) std::raise(SIGTERM);
    };
    Result result;
    Progress progress;
    const SweepEnd end = run_points(three_batches(directory / ""), cpu(), profiler, result, progress);
    EXPECT_EQ(end.signal, SIGTERM);
    EXPECT_THAT(statuses(result), ElementsAre(PointStatus::done));
    EXPECT_THAT(result.warnings, testing::Contains(HasSubstr("stopped by SIGTERM after 1 of 3 points")));
    EXPECT_THAT(point_names(directory / ""), ElementsAre("seq33-batch1-fp32"));
}

TEST(StopSignal, EndsAPointBeforeItsNextPieceOfWork) {
    const TemporaryDirectory directory;
    OtherDevice device;
    std::size_t allocations = 0;
    device.before_allocate = [&](std::size_t) {
        if (++allocations == 1) std::raise(SIGTERM);  // while the first step is verified
    };
    Result result;
    Progress progress;
    EXPECT_EQ(run_points(small_run(directory / ""), device, cpu_profiler(), result, progress).signal, SIGTERM);
    EXPECT_THAT(result.points, IsEmpty());
    EXPECT_LT(allocations, 8) << "operands and workspace of one step";
}

TEST(Memory, OfADeviceIsNotAllForPlans) {
    OtherDevice device;
    device.all_memory = 100'000'000'000;
    EXPECT_EQ(plannable_bytes(device), 99'000'000'000);
    device.all_memory = std::int64_t{1} << 30;
    EXPECT_EQ(plannable_bytes(device), std::int64_t{768} << 20);
}

TEST(Memory, OfACpuAlsoHoldsTheOutputsOfTwoForwards) {
    const Model model{.name = "one output",
                      .tensors = {{.name = "logits", .role = Role::logits, .shape = {1, 25}}},
                      .ops = {},
                      .inputs = {},
                      .outputs = {0}};
    Layout layout;
    layout.places.resize(1);
    Operand& output = layout.places[0].operand;
    output = {"out", OperandUse::output, DataType::fp32, 1, 25, 25, 1, {}};  // 100 bytes
    MemoryPlan& memory = layout.memory;
    memory.bytes[static_cast<std::size_t>(Role::weights)] = 1000;
    memory.bytes[static_cast<std::size_t>(Role::logits)] = 100;
    EXPECT_EQ(needed_bytes(model, layout, cpu()), 1300);
    constexpr std::int64_t gib = std::int64_t{1} << 30;
    memory.bytes[static_cast<std::size_t>(Role::logits)] = 50 * gib;
    output = {"out", OperandUse::output, DataType::fp32, 50, gib / 4, gib / 4, 50, {}};
    EXPECT_EQ(needed_bytes(model, layout, cpu()), 1000 + 52 * gib) << "rows of 1 GiB each";
}

/// Memory of 274 MB, of which 256 MiB are reserved: the small model fits with a batch of some tens.
constexpr std::int64_t little_memory = 274'000'000;

RunOptions largest_run(const std::filesystem::path& out) {
    RunOptions options = small_run(out);
    options.values["batch"] = {max_batch};
    options.verify = false;
    return options;
}

TEST(MaxBatch, IsTheLargestThatThePlanFitsAndIsRun) {
    const TemporaryDirectory directory;
    OtherDevice device;
    device.all_memory = little_memory;
    Result result;
    Progress progress;
    run_points(largest_run(directory / ""), device, cpu_profiler(), result, progress);
    const Point& point = result.points.at(0);
    ASSERT_EQ(point.status, PointStatus::done) << point.reason;
    EXPECT_TRUE(point.batch_is_max);
    EXPECT_GT(point.batch(), 3);
    EXPECT_THAT(without_drift(result.warnings), IsEmpty());
    const auto of_own = std::ranges::find(point.largest_batches, "fwd", &LargestBatch::direction);
    ASSERT_NE(of_own, point.largest_batches.end());
    EXPECT_EQ(of_own->batch, point.batch());
    EXPECT_TRUE(of_own->ran);

    // One more does not fit, and says which would.
    const TemporaryDirectory other;
    RunOptions one_more = largest_run(other / "");
    one_more.values["batch"] = {point.batch(), point.batch() + 1};
    Result check;
    run_points(one_more, device, cpu_profiler(), check, progress);
    EXPECT_THAT(statuses(check), ElementsAre(PointStatus::done, PointStatus::skipped));
    EXPECT_THAT(check.points[1].reason, HasSubstr(fmt::format("the largest batch that fits is {}", point.batch())));
}

TEST(MaxBatch, IsRecordedForEachDirectionByThePlan) {
    const TemporaryDirectory directory;
    OtherDevice device;
    device.all_memory = little_memory + 50'000'000;
    Result result;
    Progress progress;
    RunOptions options = small_run(directory / "");
    options.verify = false;
    run_points(options, device, cpu_profiler(), result, progress);
    const std::vector<LargestBatch>& found = result.points.at(0).largest_batches;
    ASSERT_THAT(found, SizeIs(3));
    // With a backward activations are kept; run alone it keeps all of them, as it reads them again and again.
    EXPECT_EQ(found[1].direction, "bwd");
    EXPECT_EQ(found[2].direction, "train");
    for (const std::size_t with_backward : {1, 2}) {
        EXPECT_GT(found[with_backward].batch, 0);
        EXPECT_LT(found[with_backward].batch, found[0].batch);
    }
    for (const LargestBatch& largest : found) {
        EXPECT_FALSE(largest.ran);
        EXPECT_LT(largest.available_bytes, *device.all_memory);
    }
}

TEST(MaxBatch, GoesToTheNextSmallerThatRunsAndSaysSo) {
    const TemporaryDirectory directory;
    OtherDevice device;
    OtherProfiler profiler;
    device.all_memory = little_memory;
    int prepared = 0;
    profiler.before_watch = [&] {
        if (++prepared <= 2) throw DeviceError("out of memory");
    };
    Result result;
    Progress progress;
    run_points(largest_run(directory / ""), device, profiler, result, progress);
    const Point& point = result.points.at(0);
    ASSERT_EQ(point.status, PointStatus::done) << point.reason;
    EXPECT_TRUE(point.batch_is_max);
    ASSERT_THAT(without_drift(result.warnings), SizeIs(2));
    EXPECT_THAT(result.warnings[0], HasSubstr("did not run: out of memory"));
    EXPECT_THAT(result.warnings[1], HasSubstr(fmt::format("batch {} was tried next", point.batch())));
    std::size_t samples = 0;
    for (const StepResult& step : point.steps) samples += step.time_us ? 1 : 0;
    EXPECT_EQ(samples, point.steps.size()) << "nothing is left of the attempts before";
}

TEST(MaxBatch, FailsWithTheReasonWhenNothingRuns) {
    const TemporaryDirectory directory;
    OtherDevice device;
    OtherProfiler profiler;
    device.all_memory = little_memory;
    int prepared = 0;
    profiler.before_watch = [&] {
        ++prepared;
        throw DeviceError("out of memory");
    };
    Result result;
    Progress progress;
    run_points(largest_run(directory / ""), device, profiler, result, progress);
    EXPECT_EQ(result.points.at(0).status, PointStatus::failed);
    EXPECT_EQ(result.points.at(0).reason, "prepare: out of memory");
    EXPECT_EQ(prepared, 5) << "a few attempts, not all batches";
}

TEST(MaxBatch, IsSkippedWhereNotEvenOneFits) {
    const TemporaryDirectory directory;
    OtherDevice device;
    device.all_memory = std::int64_t{257} << 20;
    Result result;
    Progress progress;
    run_points(largest_run(directory / ""), device, cpu_profiler(), result, progress);
    EXPECT_EQ(result.points.at(0).status, PointStatus::skipped);
    EXPECT_THAT(result.points.at(0).reason, HasSubstr("not even batch 1 fits"));
}

/// A sweep of which a first run finished all but what failed in it.
class Resume : public testing::Test {
  protected:
    Result run(Profiler& profiler) {
        const PointStore store(directory_ / "");
        Result mine;
        mine.environment = environment_;
        mine.options = recorded_options(options_, cpu());
        FinishedPoints finished = store.finished(options_.points(), mine, warnings_);
        resumed_ = finished.size();
        Result result;
        result.environment = environment_;
        Progress progress;
        run_points(options_, cpu(), profiler, result, progress, store, std::move(finished));
        return result;
    }
    std::string refusal() {
        return refusal_of([&] { run(cpu_profiler()); });
    }

    TemporaryDirectory directory_;
    RunOptions options_ = three_batches(directory_ / "");
    Environment environment_;
    std::vector<std::string> warnings_;
    std::size_t resumed_ = 0;
};

TEST_F(Resume, KeepsWhatIsDoneAndRunsWhatIsMissingOrFailed) {
    OtherProfiler broken;
    int prepared = 0;
    broken.before_watch = [&] {
        if (++prepared == 2) throw DeviceError("an illegal address");
    };
    const Result before = run(broken);
    ASSERT_EQ(before.points.at(1).status, PointStatus::failed);
    std::filesystem::remove(directory_ / "points/seq33-batch3-fp32.json");
    const pid_t killed = fork();
    if (killed == 0) _exit(0);
    waitpid(killed, nullptr, 0);
    const std::string half = fmt::format("points/.seq33-batch3-fp32.json.{}.0.tmp", killed);
    directory_.write(half, "{\"schema\"");

    OtherProfiler whole;
    int again = 0;
    whole.before_watch = [&] { ++again; };
    const Result after = run(whole);
    EXPECT_EQ(resumed_, 1u);
    EXPECT_EQ(again, 2);
    EXPECT_THAT(statuses(after), ElementsAre(PointStatus::done, PointStatus::done, PointStatus::done));
    Result first_before, first_after;
    first_before.points = {before.points[0]};
    first_after.points = {after.points[0]};
    EXPECT_EQ(to_json(first_before), to_json(first_after)) << "what was finished stays as it was";
    EXPECT_THAT(warnings_, IsEmpty());
    EXPECT_FALSE(std::filesystem::exists(directory_ / half)) << "what a killed process left is removed";
}

TEST_F(Resume, APointFileThatIsCutOffIsMeasuredAgain) {
    run(cpu_profiler());
    const std::filesystem::path file = directory_ / "points/seq33-batch2-fp32.json";
    std::filesystem::resize_file(file, std::filesystem::file_size(file) / 2);
    EXPECT_THAT(run(cpu_profiler()).points, SizeIs(3));
    EXPECT_EQ(resumed_, 2u);
    ASSERT_THAT(warnings_, SizeIs(1));
    EXPECT_THAT(warnings_[0], HasSubstr("seq33-batch2-fp32.json: not JSON"));
    EXPECT_TRUE(std::filesystem::exists(file.string() + ".unreadable")) << "nothing is thrown away";
    EXPECT_THAT(read_result_file(file).result.points, SizeIs(1));
}

TEST_F(Resume, AFileOfAnotherPointIsNotTakenForThisOne) {
    run(cpu_profiler());
    std::filesystem::copy_file(directory_ / "points/seq33-batch1-fp32.json",
                               directory_ / "points/seq33-batch2-fp32.json",
                               std::filesystem::copy_options::overwrite_existing);
    EXPECT_EQ(run(cpu_profiler()).points.at(1).batch(), 2);
    EXPECT_EQ(resumed_, 2u);
    EXPECT_THAT(warnings_, ElementsAre(HasSubstr("does not hold the point seq33-batch2-fp32")));
}

TEST_F(Resume, TakesMoreValuesButNotFewer) {
    run(cpu_profiler());
    options_.values["batch"] = {1, 2, 3, 4};
    EXPECT_THAT(run(cpu_profiler()).points, SizeIs(4));
    EXPECT_EQ(resumed_, 3u);
    options_.values["batch"] = {1, 2};
    EXPECT_THAT(refusal(), HasSubstr("seq33-batch3-fp32.json holds a point that this sweep has not"));
}

TEST_F(Resume, NamesWhatDiffers) {
    run(cpu_profiler());
    const auto with = [&](auto&& change) {
        const RunOptions options = options_;
        const Environment environment = environment_;
        change();
        const std::string line = refusal();
        options_ = options;
        environment_ = environment;
        return line;
    };
    EXPECT_THAT(with([&] { options_.seed = 7; }), HasSubstr("option seed is 1 in"));
    EXPECT_THAT(with([&] { options_.verify = false; }), HasSubstr("option verify is yes in"));
    EXPECT_THAT(with([&] { options_.deterministic = true; }), HasSubstr("option deterministic is not there in"));
    EXPECT_THAT(with([&] { options_.values["attention"] = {"unfused"}; }), HasSubstr("option attention"));
    EXPECT_THAT(with([&] { options_.providers = {{"gemm", "reference"}}; }), HasSubstr("gemm=reference in this run"));
    EXPECT_THAT(with([&] { options_.counters.sets = {}; }), HasSubstr("option counters is core in"));
    EXPECT_THAT(with([&] { options_.sampler.time_budget_s = 0.06; }), HasSubstr("option time_budget_s is 0.05 in"));
    EXPECT_THAT(with([&] {
                    Gpt2Config config = small_config();
                    config.n_inner = 100;
                    options_.model = gpt2_spec(config);
                }),
                HasSubstr("option model is small:"));
    EXPECT_THAT(with([&] { environment_.git_revision = "abc1234"; }), HasSubstr("revision is not there in"));
    EXPECT_THAT(with([&] { environment_.host.cpu = "another"; }), HasSubstr("CPU is not there in"));
    EXPECT_THAT(with([&] { environment_.gpu.emplace().uuid = "GPU-1"; }), HasSubstr("GPU's UUID is not there in"));
    EXPECT_THAT(with([&] { environment_.gpu.emplace().multiprocessors_of_device = 132; }),
                HasSubstr("number of SMs is all in"));
    EXPECT_THAT(with([&] { environment_.libraries["onednn"] = "9"; }), HasSubstr("library onednn"));
    EXPECT_EQ(with([] {}), "accepted") << "the same is the same";
}

TEST_F(Resume, OtherWeightsOfTheSameNameAndSizeAreOtherWeights) {
    std::string content((std::size_t{3} << 19) + 3, 'a');  // neither whole chunks nor whole words
    const auto weights = [&](const std::string& folder) {
        options_.weights = directory_.write(folder + "/w.safetensors", content);
        return recorded_options(options_, cpu()).at("weights");
    };
    const std::string first = weights("one");
    EXPECT_EQ(weights("two"), first) << "the folder does not matter";
    for (const std::size_t at : {std::size_t{0}, std::size_t{1} << 20, content.size() - 1}) {
        content[at] = 'b';
        EXPECT_NE(weights("one"), first) << at;
        content[at] = 'a';
    }
}

TEST_F(Resume, TwoProcessesDoNotMeasureIntoOneDirectory) {
    const FolderLock lock(directory_ / "");
    EXPECT_THAT(refusal_of([&] { FolderLock another(directory_ / ""); }), HasSubstr("another kbench is writing into"));
}

}  // namespace
}  // namespace kbench
