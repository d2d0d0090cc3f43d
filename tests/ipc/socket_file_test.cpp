#include "ipc/socket_file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <cstring>
#include <filesystem>
#include <fstream>

#include "tests/support/temp_dir.h"

namespace pantheon::ipc {
namespace {

using testing::HasSubstr;

/// A socket bound by somebody who died: the file stays, nobody listens.
void leave_stale_socket(const std::string& path) {
    const int fd = socket(AF_UNIX, SOCK_STREAM, 0);
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    std::strncpy(address.sun_path, path.c_str(), sizeof address.sun_path - 1);
    ASSERT_EQ(bind(fd, reinterpret_cast<sockaddr*>(&address), sizeof address), 0);
    close(fd);
}

TEST(SocketFileTest, ListensWithTheModeAskedForAndCleansUp) {
    const test::TempDir dir;
    const std::string path = dir.path() + "/s.sock";
    const mode_t umask_before = umask(0077);
    {
        auto file = SocketFile::claim(path, 0660);
        ASSERT_TRUE(file) << file.error().to_string();
        struct stat info {};
        ASSERT_EQ(stat(path.c_str(), &info), 0);
        EXPECT_EQ(info.st_mode & 07777u, 0660u);
        EXPECT_EQ(probe_listener(path), Listener::present);
    }
    umask(umask_before);
    EXPECT_FALSE(std::filesystem::exists(path));
    EXPECT_EQ(probe_listener(path), Listener::none);
}

TEST(SocketFileTest, ReplacesASocketThatNobodyAnswersOn) {
    const test::TempDir dir;
    const std::string path = dir.path() + "/s.sock";
    leave_stale_socket(path);
    auto file = SocketFile::claim(path, 0600);
    ASSERT_TRUE(file) << file.error().to_string();
    EXPECT_EQ(probe_listener(path), Listener::present);
}

TEST(SocketFileTest, RefusesASecondClaimOfALivePath) {
    const test::TempDir dir;
    const std::string path = dir.path() + "/s.sock";
    auto first = SocketFile::claim(path, 0600);
    ASSERT_TRUE(first);
    auto second = SocketFile::claim(path, 0600);
    ASSERT_FALSE(second);
    EXPECT_EQ(second.error().code(), Code::failed_precondition);
    EXPECT_THAT(second.error().message(), HasSubstr("another daemon holds"));
    // Somebody who listens but takes no lock is left alone as well.
    std::filesystem::rename(path, dir.path() + "/other.sock");
    auto third = SocketFile::claim(dir.path() + "/other.sock", 0600);
    ASSERT_FALSE(third);
    EXPECT_THAT(third.error().message(), HasSubstr("another process answers"));
}

TEST(SocketFileTest, LeavesOtherFilesAlone) {
    const test::TempDir dir;
    const std::string path = dir.path() + "/precious";
    std::ofstream(path) << "data";
    auto file = SocketFile::claim(path, 0600);
    ASSERT_FALSE(file);
    EXPECT_THAT(file.error().message(), HasSubstr("not a socket"));
    EXPECT_EQ(std::filesystem::file_size(path), 4u);
}

TEST(SocketFileTest, DoesNotUnlinkWhatSomebodyElsePutThere) {
    const test::TempDir dir;
    const std::string path = dir.path() + "/s.sock";
    {
        auto file = SocketFile::claim(path, 0600);
        ASSERT_TRUE(file);
        std::filesystem::remove(path);
        leave_stale_socket(path);
    }
    EXPECT_TRUE(std::filesystem::exists(path));
}

TEST(SocketFileTest, NamesWhatIsWrongWithAPath) {
    const test::TempDir dir;
    const struct {
        std::string path;
        const char* said;
    } kCases[] = {
        {"relative.sock", "not an absolute path"},
        {"", "not an absolute path"},
        {dir.path() + "/none/s.sock", "directory"},
        {"/" + std::string(107, 'x'), "longer than 107 bytes"},
    };
    for (const auto& c : kCases) {
        SCOPED_TRACE(c.path);
        auto file = SocketFile::claim(c.path, 0600);
        ASSERT_FALSE(file);
        EXPECT_THAT(file.error().message(), HasSubstr(c.said));
    }
}

}  // namespace
}  // namespace pantheon::ipc
