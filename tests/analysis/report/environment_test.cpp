// What the line of the CPU says of the threads that ran and of what the process may use.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <variant>

#include "analysis/report/sections/sections.h"

namespace kbench {
namespace {

using testing::HasSubstr;
using testing::Not;

std::string cpu_line(const HostInfo& host) {
    Environment environment;
    environment.host = host;
    const Section section = environment_section(environment);
    for (const auto& fact : std::get<Facts>(section.blocks.at(0)).facts)
        if (fact.label == "CPU") return fact.value;
    return "";
}

HostInfo two_cores() {
    HostInfo host;
    host.physical_cores = host.logical_cpus = host.threads = 2;
    host.pinned = true;
    return host;
}

TEST(EnvironmentSection, OneThreadACoreNeedsNoReason) {
    HostInfo host = two_cores();
    EXPECT_THAT(cpu_line(host), HasSubstr("2 cores, 2 threads pinned")) << "as older results have it";
    host.threads_from = threads_from_cores;
    host.machine_cpus = 2;
    EXPECT_THAT(cpu_line(host), HasSubstr("2 cores, 2 threads pinned"));
    EXPECT_THAT(cpu_line(host), Not(HasSubstr("(")));
    EXPECT_THAT(cpu_line(host), Not(HasSubstr("quota")));
}

TEST(EnvironmentSection, SaysWhatElseDecidedTheThreads) {
    HostInfo host = two_cores();
    host.threads = 1;
    host.threads_from = "OMP_NUM_THREADS=1";
    EXPECT_THAT(cpu_line(host), HasSubstr("2 cores, 1 thread pinned (OMP_NUM_THREADS=1)"));
}

TEST(EnvironmentSection, SaysWhatTheProcessMayUse) {
    HostInfo host = two_cores();
    host.physical_cores = host.threads = 1;
    host.machine_cpus = 64;
    host.cpu_quota = 0.5;
    EXPECT_THAT(cpu_line(host), HasSubstr("1 core (2 of the machine's 64 CPUs), 1 thread pinned, quota of 0.5 CPUs"));
    host.cpu_quota = 1;
    EXPECT_THAT(cpu_line(host), HasSubstr("quota of 1 CPU"));
    EXPECT_THAT(cpu_line(host), Not(HasSubstr("quota of 1 CPUs")));
}

}  // namespace
}  // namespace kbench
