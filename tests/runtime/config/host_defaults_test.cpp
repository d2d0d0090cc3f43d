// Defaults that depend on the environment, cgroups and processor topology.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <map>

#include "runtime/config/free_memory.h"
#include "runtime/config/host_defaults.h"

namespace pantheon::config {
namespace {

Environment environment(std::map<std::string, std::string, std::less<>> variables) {
    return [variables = std::move(variables)](std::string_view name) -> std::optional<std::string> {
        const auto it = variables.find(name);
        if (it == variables.end()) return std::nullopt;
        return it->second;
    };
}

TEST(HostDefaultsTest, TheEndpointFollowsHowTheDaemonWasStarted) {
    const std::string service(kServiceEndpoint);
    const std::string user = "ipc:///run/user/7/pantheond.sock";
    EXPECT_EQ(default_endpoint(environment({})), service);
    EXPECT_EQ(default_endpoint(environment({{"INVOCATION_ID", "a"}})), service);
    EXPECT_EQ(default_endpoint(environment({{"RUNTIME_DIRECTORY", "/run/pantheon"}})), service);
    EXPECT_EQ(default_endpoint(environment({{"XDG_RUNTIME_DIR", "/run/user/7"}})), user);
    // A desktop's shell inherits INVOCATION_ID; a user's own service has its directory below XDG_RUNTIME_DIR.
    EXPECT_EQ(default_endpoint(environment({{"XDG_RUNTIME_DIR", "/run/user/7"}, {"INVOCATION_ID", "a"}})),
              user);
    EXPECT_EQ(default_endpoint(environment(
                  {{"XDG_RUNTIME_DIR", "/run/user/7"}, {"RUNTIME_DIRECTORY", "/run/user/7/pantheon"}})),
              user);
    EXPECT_EQ(default_endpoint(
                  environment({{"XDG_RUNTIME_DIR", "/run/user/7"}, {"RUNTIME_DIRECTORY", "/run/pantheon"}})),
              service);
}

class FakeRootTest : public testing::Test {
  protected:
    void SetUp() override {
        root_ = std::filesystem::temp_directory_path() / ("host_defaults_test." + std::to_string(getpid()));
        std::filesystem::create_directories(root_);
    }
    void TearDown() override { std::filesystem::remove_all(root_); }
    void write(const std::string& path, const std::string& text) {
        std::filesystem::create_directories((root_ / path).parent_path());
        std::ofstream(root_ / path) << text;
    }
    std::filesystem::path root_;
};

TEST_F(FakeRootTest, SiblingsOfACoreCountOnce) {
    for (int cpu = 0; cpu < 4; ++cpu)
        write("sys/devices/system/cpu/cpu" + std::to_string(cpu) + "/topology/thread_siblings_list",
              cpu % 2 == 0 ? "0,2\n" : "1,3\n");
    EXPECT_EQ(physical_cores({0, 1, 2, 3}, root_), 2);
    EXPECT_EQ(physical_cores({1, 3}, root_), 1);
    EXPECT_EQ(physical_cores({0, 1, 8, 9}, root_), 4);
    EXPECT_EQ(physical_cores({}, root_), 1);
}

TEST_F(FakeRootTest, TheTightestQuotaOfAnyAncestorHolds) {
    EXPECT_EQ(cgroup_cpu_quota(root_), std::nullopt);
    write("proc/self/cgroup", "0::/a/b\n");
    write("sys/fs/cgroup/a/b/cpu.max", "max 100000\n");
    EXPECT_EQ(cgroup_cpu_quota(root_), std::nullopt);
    write("sys/fs/cgroup/a/cpu.max", "150000 100000\n");
    EXPECT_EQ(cgroup_cpu_quota(root_), 2);
    write("sys/fs/cgroup/cpu.max", "50000 100000\n");
    EXPECT_EQ(cgroup_cpu_quota(root_), 1);
}

TEST_F(FakeRootTest, QuotasOfVersionOneAreReadToo) {
    write("proc/self/cgroup", "5:cpuset:/x\n4:cpu,cpuacct:/a\n");
    write("sys/fs/cgroup/cpu/a/cpu.cfs_quota_us", "300000\n");
    write("sys/fs/cgroup/cpu/a/cpu.cfs_period_us", "100000\n");
    write("sys/fs/cgroup/cpu/cpu.cfs_quota_us", "-1\n");
    write("sys/fs/cgroup/cpu/cpu.cfs_period_us", "100000\n");
    EXPECT_EQ(cgroup_cpu_quota(root_), 3);
}

TEST_F(FakeRootTest, FreeMemoryIsTheLeastOfHostAndGroups) {
    EXPECT_EQ(free_memory_bytes(root_), 0);
    write("proc/meminfo", "MemTotal: 9000 kB\nMemFree: 1 kB\nMemAvailable: 4000 kB\n");
    EXPECT_EQ(free_memory_bytes(root_), 4000 * 1024);
    write("proc/self/cgroup", "0::/a/b\n");
    write("sys/fs/cgroup/a/b/memory.max", "max\n");
    write("sys/fs/cgroup/a/b/memory.current", "5\n");
    EXPECT_EQ(free_memory_bytes(root_), 4000 * 1024);
    write("sys/fs/cgroup/a/memory.max", "1000000\n");
    write("sys/fs/cgroup/a/memory.current", "800000\n");
    EXPECT_EQ(free_memory_bytes(root_), 200000);
    write("sys/fs/cgroup/a/memory.stat", "anon 5\ninactive_file 300000\n");
    EXPECT_EQ(free_memory_bytes(root_), 500000) << "cache that can be given back is free";
    write("sys/fs/cgroup/memory.max", "700000\n");
    write("sys/fs/cgroup/memory.current", "900000\n");
    EXPECT_EQ(free_memory_bytes(root_), 0);
}

TEST_F(FakeRootTest, MemoryLimitsOfVersionOneAreReadToo) {
    write("proc/meminfo", "MemAvailable: 4000 kB\n");
    write("proc/self/cgroup", "4:memory:/a\n");
    write("sys/fs/cgroup/memory/a/memory.limit_in_bytes", "100000\n");
    write("sys/fs/cgroup/memory/a/memory.usage_in_bytes", "60000\n");
    write("sys/fs/cgroup/memory/a/memory.stat", "total_inactive_file 1000\n");
    write("sys/fs/cgroup/memory/memory.limit_in_bytes", "9223372036854771712\n");
    write("sys/fs/cgroup/memory/memory.usage_in_bytes", "60000\n");
    EXPECT_EQ(free_memory_bytes(root_), 41000);
}

TEST(HostDefaultsTest, ThisHostHasFreeMemory) {
    EXPECT_GT(host_defaults().free_bytes, 0);
}

TEST_F(FakeRootTest, TheEmbeddedModelLiesBesideTheProgramWhereverThatWasMoved) {
    write("moved/bin/pantheond", "");
    std::filesystem::create_symlink("moved/bin/pantheond", root_.string() + "/link");
    const std::string model = std::filesystem::canonical(root_).string() + "/moved/share/pantheon/model.gguf";
    EXPECT_EQ(embedded_model_path(root_.string() + "/moved/bin/pantheond"), model);
    EXPECT_EQ(embedded_model_path(root_.string() + "/link"), model);
    EXPECT_THAT(embedded_model_path(root_.string() + "/no-program"),
                testing::EndsWith("/share/pantheon/model.gguf"));
}

TEST(HostDefaultsTest, FreeDiskSpaceIsThatOfTheNearestFolderThatIsThere) {
    const std::string folder = std::filesystem::temp_directory_path().string();
    EXPECT_GT(free_disk_bytes(folder), 0);
    EXPECT_GT(free_disk_bytes(folder + "/none/of/these"), 0);
    EXPECT_EQ(free_disk_bytes(""), 0);
    const std::int64_t first = host_defaults().free_disk_bytes(folder);
    EXPECT_GT(first, 0);
    EXPECT_EQ(host_defaults().free_disk_bytes(folder), first) << "a reload finds the same";
}

TEST(HostDefaultsTest, ThisHostHasAtLeastOneCore) {
    EXPECT_GE(host_defaults().n_cores, 1);
}

}  // namespace
}  // namespace pantheon::config
