// What the kernel's files say about memory, whatever stands in them, and the thread that reads them.
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <atomic>
#include <filesystem>
#include <fstream>
#include <thread>

#include "runtime/memory/host_readings.h"
#include "runtime/memory/memory_files.h"
#include "tests/support/temp_dir.h"

namespace pantheon::memory {
namespace {

using namespace std::chrono_literals;

TEST(MemoryFilesTest, LimitsAreNumbersAndEverythingElseIsNoLimit) {
    const struct {
        const char* text;
        std::optional<std::uint64_t> want;
    } kCases[] = {{"2147483648\n", 2147483648},
                  {"0\n", 0},
                  {" 12 ", 12},
                  {"max\n", {}},
                  {"9223372036854771712\n", {}},  // version 1: none
                  {"99999999999999999999999\n", {}},
                  {"-1\n", {}},
                  {"12k\n", {}},
                  {"0x10\n", {}},
                  {"\xFF\x00", {}},
                  {"", {}}};
    for (const auto& c : kCases) EXPECT_EQ(parse_limit(c.text), c.want) << c.text;
}

TEST(MemoryFilesTest, PressureIsTheAverageOfTenSeconds) {
    const auto read = [](std::string_view text) {
        const auto pressure = parse_pressure(text);
        return pressure ? std::pair(pressure->some_avg10, pressure->full_avg10) : std::pair(-1.0, -1.0);
    };
    EXPECT_EQ(read("some avg10=1.50 avg60=0.00 avg300=0.00 total=9\nfull avg10=0.25 avg60=9 total=1\n"),
              std::pair(1.5, 0.25));
    EXPECT_EQ(read("some avg10=100.00 total=9\n"), std::pair(100.0, 0.0));
    for (const char* garbage :
         {"", "\n\n", "some", "some avg10=", "some avg10=nan", "some avg10=inf", "some avg10=-1",
          "some avg10=101", "some avg10=1,5", "none avg10=1", "avg10=5 some", "some avg60=3", "\xFF\xFE"})
        EXPECT_EQ(read(garbage), std::pair(-1.0, -1.0)) << garbage;
}

TEST(MemoryFilesTest, MeminfoIsBelievedOnlyWhenItIsConsistent) {
    const auto good = parse_meminfo("MemTotal:  100 kB\nMemFree: 1 kB\nMemAvailable:   40 kB\n");
    ASSERT_TRUE(good.has_value());
    EXPECT_EQ(good->total_bytes, 102400U);
    EXPECT_EQ(good->available_bytes, 40960U);
    for (const char* garbage :
         {"", "MemTotal: 100 kB\n", "MemAvailable: 1 kB\n", "MemTotal: 1 kB\nMemAvailable: 2 kB\n",
          "MemTotal: x kB\nMemAvailable: 2 kB\n", "MemTotal: 18446744073709551615 kB\nMemAvailable: 2 kB\n"})
        EXPECT_FALSE(parse_meminfo(garbage).has_value()) << garbage;
}

TEST(MemoryFilesTest, PageCacheOfAGroupIsNotInUse) {
    const struct {
        const char* name;
        GroupFiles files;
        bool is_v2;
        std::uint64_t limit, used;  // limit 0: none
    } kCases[] = {
        {"v2", {"1000", "max", "600", "anon 100\nactive_file 200\ninactive_file 300\n"}, true, 1000, 100},
        {"high is lower", {"1000", "800", "600", ""}, true, 800, 600},
        {"only high", {"max", "800", "600", ""}, true, 800, 600},
        {"no limit", {"max", "max", "600", ""}, true, 0, 0},
        {"more cache than use", {"1000", "", "100", "active_file 90\ninactive_file 90\n"}, true, 1000, 0},
        {"v1 counts the whole tree",
         {"1000", "", "600", "active_file 1\ntotal_active_file 200\ntotal_inactive_file 100\n"},
         false,
         1000,
         300},
        {"no usage", {"1000", "", "", ""}, true, 0, 0},
        {"garbage", {"\x01", "?", "-", "active_file"}, true, 0, 0},
    };
    for (const auto& c : kCases) {
        SCOPED_TRACE(c.name);
        const auto group = group_memory(c.files, c.is_v2);
        EXPECT_EQ(group.has_value(), c.limit > 0);
        if (!group) continue;
        EXPECT_EQ(group->limit_bytes, c.limit);
        EXPECT_EQ(group->used_bytes, c.used);
    }
}

TEST(MemoryFilesTest, Base64IsDecodedOrRefused) {
    EXPECT_EQ(decode_base64("c29tZSAyMDAwMDAgMjAwMDAwMA=="), "some 200000 2000000");
    EXPECT_EQ(decode_base64(""), "");
    EXPECT_EQ(decode_base64("c2\n9t"), std::nullopt);
    EXPECT_EQ(decode_base64("=c29t"), std::nullopt);
}

class HostReadingsTest : public ::testing::Test {
  protected:
    void write(const std::string& path, const std::string& text) {
        const std::filesystem::path file = dir.file(path);
        std::filesystem::create_directories(file.parent_path());
        std::ofstream(file) << text;
    }
    test::TempDir dir;
};

TEST_F(HostReadingsTest, AllAncestorsOfBothVersionsAreRead) {
    write("proc/meminfo", "MemTotal: 100 kB\nMemAvailable: 40 kB\n");
    write("proc/pressure/memory", "some avg10=2.00\nfull avg10=1.00\n");
    write("proc/self/cgroup", "4:memory:/a/b\n0::/x/y\n");
    write("sys/fs/cgroup/memory/a/memory.limit_in_bytes", "5000");
    write("sys/fs/cgroup/memory/a/memory.usage_in_bytes", "1000");
    write("sys/fs/cgroup/x/y/memory.max", "max");
    write("sys/fs/cgroup/x/y/memory.pressure", "some avg10=7.00\nfull avg10=0.00\n");
    write("sys/fs/cgroup/x/memory.max", "3000");
    write("sys/fs/cgroup/x/memory.current", "2500");
    const auto readings = read_memory(dir.path());
    std::vector<std::uint64_t> free;
    for (const auto& room : readings.rooms) free.push_back(room.free_bytes);
    EXPECT_EQ(free, (std::vector<std::uint64_t>{40960, 4000, 500}));
    ASSERT_EQ(readings.pressures.size(), 2U);
    EXPECT_EQ(readings.pressures[0].some, 2);
    EXPECT_EQ(readings.pressures[1].some, 7);
    EXPECT_TRUE(read_memory(dir.path(), false).pressures.empty());
}

TEST_F(HostReadingsTest, AnEmptyFolderSaysNothing) {
    const auto readings = read_memory(dir.path());
    EXPECT_TRUE(readings.rooms.empty());
    EXPECT_TRUE(readings.pressures.empty());
}

template <class Condition>
bool comes(Condition condition) {
    const auto end = std::chrono::steady_clock::now() + 30s;
    while (!condition() && std::chrono::steady_clock::now() < end) std::this_thread::sleep_for(1ms);
    return condition();
}

TEST_F(HostReadingsTest, ASinkHearsAtOnceAndAFormerOneNeverAgain) {
    HostReadings source(dir.path());
    std::atomic<int> n_first{0}, n_second{0};
    source.set_sink([&](const actors::MemoryReadings&) { ++n_first; });
    ASSERT_TRUE(comes([&] { return n_first > 0; }));
    source.set_sink([&](const actors::MemoryReadings&) { ++n_second; });
    const int n = n_first;
    EXPECT_TRUE(comes([&] { return n_second > 0; }));
    EXPECT_EQ(n_first, n);
}

TEST_F(HostReadingsTest, TheServiceManagerWakesThroughItsFifo) {
    const std::string fifo = dir.file("pressure");
    ASSERT_EQ(::mkfifo(fifo.c_str(), 0600), 0);
    HostReadings source(dir.path(), PressureWatch([&](std::string_view name) -> std::optional<std::string> {
                            if (name == "MEMORY_PRESSURE_WATCH") return fifo;
                            return std::nullopt;
                        }));
    std::atomic<int> n_signals{0};
    source.set_sink([&](const actors::MemoryReadings& readings) { n_signals += readings.is_signalled; });
    std::ofstream(fifo) << "x" << std::flush;
    EXPECT_TRUE(comes([&] { return n_signals == 1; }));
}

TEST_F(HostReadingsTest, TheServiceManagerMayForbidWatching) {
    const PressureWatch watch([](std::string_view name) -> std::optional<std::string> {
        return name == "MEMORY_PRESSURE_WATCH" ? std::optional<std::string>("/dev/null") : std::nullopt;
    });
    EXPECT_TRUE(watch.is_forbidden());
    EXPECT_EQ(watch.fd(), -1);
}

TEST_F(HostReadingsTest, AWatchThatIsNotThereNeverWakes) {
    const PressureWatch watch([&](std::string_view name) -> std::optional<std::string> {
        return name == "MEMORY_PRESSURE_WATCH" ? std::optional(dir.file("absent")) : std::nullopt;
    });
    EXPECT_EQ(watch.fd(), -1);
}

}  // namespace
}  // namespace pantheon::memory
