#include "model/gguf/file_warmer.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/uio.h>
#include <unistd.h>

#include <chrono>
#include <fstream>

#include "tests/support/temp_dir.h"

namespace pantheon::model {
namespace {

using namespace std::chrono_literals;

constexpr std::int64_t kPlenty = std::int64_t{1} << 50;

class FileWarmerTest : public testing::Test {
  protected:
    std::string written(const std::string& name, std::size_t n_bytes) const {
        std::ofstream(dir_.file(name), std::ios::binary) << std::string(n_bytes, 'x');
        return dir_.file(name);
    }
    /// So large that reading it whole would be noticed; takes no room on the disk.
    std::string sparse(const std::string& name) const {
        written(name, 1);
        EXPECT_EQ(::truncate(dir_.file(name).c_str(), off_t{1} << 40), 0);
        return dir_.file(name);
    }
    /// Some file systems do not, and everything is read.
    static bool tells_what_is_in_memory(const std::string& file) {
        const int fd = ::open(file.c_str(), O_RDONLY);
        char byte = 0;
        const iovec to{&byte, 1};
        const bool is_told = ::preadv2(fd, &to, 1, 0, RWF_NOWAIT) == 1;
        ::close(fd);
        return is_told;
    }
    static bool becomes_done(const FileWarmer& warmer) {
        const auto end = std::chrono::steady_clock::now() + 60s;
        while (!warmer.is_done() && std::chrono::steady_clock::now() < end) std::this_thread::sleep_for(1ms);
        return warmer.is_done();
    }
    test::TempDir dir_;
};

TEST_F(FileWarmerTest, SeesEveryByteOfEveryFileAndReadsWhatIsNotInMemory) {
    const std::size_t n_first = (9 << 20) + 5;
    const auto first = written("first", n_first), second = written("second", 17);
    {
        const int fd = ::open(first.c_str(), O_RDONLY);
        ::fsync(fd);
        ::posix_fadvise(fd, 0, 0, POSIX_FADV_DONTNEED);  // which file systems in memory do not heed
        ::close(fd);
    }
    const FileWarmer warmer({first, second}, [] { return kPlenty; });
    ASSERT_TRUE(becomes_done(warmer));
    EXPECT_EQ(warmer.counts().seen_bytes, n_first + 17);
    const FileWarmer again({first, second}, [] { return kPlenty; });
    ASSERT_TRUE(becomes_done(again));
    EXPECT_EQ(again.counts().seen_bytes, n_first + 17);
    if (tells_what_is_in_memory(second)) {
        EXPECT_EQ(again.counts().read_bytes, 0U);
    }
}

TEST_F(FileWarmerTest, ReadsNothingThatMemoryDoesNotSufficeFor) {
    const auto file = written("file", 9 << 20);
    const FileWarmer none({file}, [] { return std::int64_t{(9 << 20) - 1}; });
    ASSERT_TRUE(becomes_done(none));
    EXPECT_EQ(none.counts().seen_bytes, 0U);
    int n_asked = 0;
    const FileWarmer some({file}, [&] { return ++n_asked < 3 ? kPlenty : 0; });
    ASSERT_TRUE(becomes_done(some));
    EXPECT_EQ(some.counts().seen_bytes, 8U << 20) << "memory became scarce";
}

TEST_F(FileWarmerTest, AFileThatIsNotThereEndsIt) {
    const FileWarmer warmer({dir_.file("none"), written("file", 100)}, [] { return kPlenty; });
    ASSERT_TRUE(becomes_done(warmer));
    EXPECT_EQ(warmer.counts().seen_bytes, 0U);
}

TEST_F(FileWarmerTest, EndsAtOnceWhenNobodyNeedsItAnyMore) {
    const std::string file = sparse("sparse");
    std::atomic<bool> has_begun{false};
    {
        const FileWarmer warmer({file}, [&] {
            has_begun = true;
            return kPlenty;
        });
        while (!has_begun) std::this_thread::sleep_for(1ms);
        EXPECT_FALSE(warmer.is_done());
    }  // a terabyte would take minutes
}

}  // namespace
}  // namespace pantheon::model
