// The rows of `kbench doctor` on the CPU time of machines that are not here.
#include "bench/command/doctor_cpu.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace kbench {
namespace {

using testing::HasSubstr;

HostInfo quiet_host() {
    HostInfo host;
    host.physical_cores = host.threads = 16;
    host.logical_cpus = 32;
    host.machine_cpus = 32;
    host.pinned = true;
    host.governor = "performance";
    host.threads_from = threads_from_cores;
    return host;
}

/// The row called `what`.
DoctorRow row(const std::vector<DoctorRow>& rows, std::string_view what) {
    for (const DoctorRow& one : rows)
        if (one.what == what) return one;
    ADD_FAILURE() << what;
    return {};
}

TEST(DoctorCpu, AQuietMachineOfItsOwnIsFine) {
    for (const DoctorRow& one : cpu_time_rows(quiet_host(), std::nullopt, 0.03))
        EXPECT_EQ(one.state, "ok") << one.what << ": " << one.text;
}

TEST(DoctorCpu, WhatSpoilsTimesIsAWarningWithWhatToDo) {
    HostInfo host = quiet_host();
    host.logical_cpus = 4;
    host.governor = "powersave";
    const CpuQuota quota{0.5, 0.1, "/sys/fs/cgroup/jobs/7"};
    const std::vector<DoctorRow> rows = cpu_time_rows(host, quota, 3.7);
    const std::pair<std::string_view, std::string_view> expected[] = {
        {"cpu affinity", "4 of the machine's 32 CPUs"},
        {"cpu affinity", "taskset"},
        {"cpu quota", "0.5 CPUs of time by /sys/fs/cgroup/jobs/7, below 16 threads"},
        {"cpu quota", "raise cpu.max or cpu.cfs_quota_us"},
        {"load average", "3.70 in the last minute, 32 CPUs"},
        {"load average", "wait or stop it"},
        {"cpu governor", "cpupower frequency-set -g performance"}};
    for (const auto& [what, text] : expected) {
        EXPECT_EQ(row(rows, what).state, "warning") << what;
        EXPECT_THAT(row(rows, what).text, HasSubstr(std::string(text)));
    }
}

TEST(DoctorCpu, SaysWhatDecidedTheThreads) {
    HostInfo host = quiet_host();
    host.threads = 1;
    host.threads_from = "OMP_NUM_THREADS=1";
    EXPECT_THAT(row(cpu_time_rows(host, std::nullopt, 0), "cpu threads").text,
                HasSubstr("1 thread pinned, decided by OMP_NUM_THREADS=1"));
    host.pinned = false;
    EXPECT_EQ(row(cpu_time_rows(host, std::nullopt, 0), "cpu threads").state, "warning");
}

TEST(DoctorCpu, AQuotaThatFeedsTheThreadsIsFine) {
    HostInfo host = quiet_host();
    host.threads = 2;
    EXPECT_EQ(row(cpu_time_rows(host, CpuQuota{2, 0.1, "/g"}, 0), "cpu quota").state, "ok");
    EXPECT_EQ(row(cpu_time_rows(host, CpuQuota{1.9, 0.1, "/g"}, 0), "cpu quota").state, "warning");
}

TEST(DoctorCpu, WhatTheSystemDoesNotTellIsMissing) {
    HostInfo host = quiet_host();
    host.governor.clear();
    const std::vector<DoctorRow> rows = cpu_time_rows(host, std::nullopt, std::nullopt);
    EXPECT_EQ(row(rows, "cpu governor").state, "missing");
    EXPECT_EQ(row(rows, "load average").state, "missing");
}

TEST(DoctorCpu, ConcludesWithWhatToMendAndAnExitCode) {
    const std::vector<std::string> none, load{"load average", "cpu governor"}, gpu{"gpu"};
    EXPECT_EQ(doctor_conclusion(none, none).exit, ExitCode::success);
    EXPECT_EQ(doctor_conclusion(none, none).text, "nothing to mend");
    EXPECT_EQ(doctor_conclusion(none, load).exit, ExitCode::failed);
    EXPECT_THAT(doctor_conclusion(none, load).text, HasSubstr("load average, cpu governor"));
    EXPECT_EQ(doctor_conclusion(gpu, load).exit, ExitCode::device) << "without it no figure is";
    EXPECT_THAT(doctor_conclusion(gpu, load).text, HasSubstr("cannot be used: gpu"));
}

TEST(DoctorCpu, WhatAMachineNeverHasIsNoWarning) {
    EXPECT_FALSE(has_fix("this machine exposes no core PMU (virtual machine?)"));
    EXPECT_TRUE(has_fix("perf_event_paranoid is 4: kbench needs 2 or less; fix: sysctl kernel.perf_event_paranoid=2"));
}

}  // namespace
}  // namespace kbench
