// Sessions on disk through the whole actor tree, with the real files and the fake device.
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "tests/actors/daemon_fixture.h"

namespace pantheon::actors {
namespace {

using namespace std::chrono_literals;

class SavedSessionsTest : public DaemonTest {
  protected:
    SavedSessionsTest() {
        dir_ = std::filesystem::temp_directory_path() / ("saved_sessions_test." + std::to_string(getpid()));
        std::filesystem::remove_all(dir_);
        settings.model.fingerprint = "model";
        settings.engine.checkpoint = {1000, 100, kFakeBlockRows};
        settings.engine.codec = fake_codec();
        settings.cache = {64, dir_.string(), 1 << 20};
    }
    ~SavedSessionsTest() override { std::filesystem::remove_all(dir_); }

    void restart() {
        wiring.reset();
        caf::anon_send(root, Shutdown{});
        run();
        start();
    }

    DoneEvent talk(const std::vector<TokenId>& prompt, std::optional<std::string> session = std::nullopt) {
        const RequestId id(n_requests_++);
        GenerateRequest request = greedy(prompt, 4);
        request.cache = CacheMode::private_;
        request.session = std::move(session);
        deliver("c", id, request);
        run();
        EXPECT_EQ(streamed("c", id), expected(prompt, 4));
        return events<DoneEvent>("c", id).at(0);
    }

    /// The answer's value, or the error as {code, message}.
    Json command(const std::string& op, std::optional<std::string> session = std::nullopt,
                 std::uint32_t uid = 1000) {
        const RequestId id(n_requests_++);
        deliver("c", id, SessionRequest{op, std::move(session), CacheMode::private_}, uid);
        run();
        const auto errors = events<ErrorEvent>("c", id);
        if (!errors.empty()) return Json{{"code", code_name(errors[0].error.code())}};
        return events<ResultEvent>("c", id).at(0).value;
    }
    Json sessions() { return command("sessions")["sessions"]; }

    std::vector<std::filesystem::path> files() const {
        std::vector<std::filesystem::path> found;
        for (const auto& entry : std::filesystem::directory_iterator(dir_)) found.push_back(entry.path());
        return found;
    }

    static std::vector<TokenId> prompt(TokenId first) {
        std::vector<TokenId> tokens(100);
        for (std::size_t i = 0; i < tokens.size(); ++i) tokens[i] = 'a' + static_cast<TokenId>(i * 5 % 26);
        tokens[0] = first;
        return tokens;
    }
    std::vector<TokenId> continued(TokenId first) const {
        auto tokens = prompt(first);
        for (const TokenId token : fake_reply(tokens, 4, end)) tokens.push_back(token);
        tokens.push_back('?');
        return tokens;
    }

    std::filesystem::path dir_;
    std::uint64_t n_requests_ = 0;
};

TEST_F(SavedSessionsTest, ASavedSessionIsThereAfterARestart) {
    start();
    talk(prompt('a'), "talk");
    EXPECT_EQ(sessions()[0]["saved"], false);
    EXPECT_EQ(command("session.save", "talk")["tokens"], 103);
    EXPECT_EQ(sessions()[0]["saved"], true);
    ASSERT_EQ(files().size(), 1U);
    restart();
    const Json list = sessions();
    ASSERT_EQ(list.size(), 1U);
    EXPECT_EQ(list[0]["session"], "talk");
    EXPECT_EQ(list[0]["loaded"], true);
    EXPECT_EQ(talk(continued('a')).usage.cached_tokens, 103);
}

TEST_F(SavedSessionsTest, ADropTakesTheFileToo) {
    start();
    talk(prompt('a'), "talk");
    command("session.save", "talk");
    EXPECT_EQ(command("session.drop", "talk", 2000)["code"], "not_found");
    EXPECT_EQ(command("session.drop", "talk")["dropped"], true);
    EXPECT_TRUE(files().empty());
    EXPECT_TRUE(sessions().empty());
    EXPECT_EQ(command("session.load", "talk")["code"], "not_found");
    EXPECT_EQ(command("session.save", "talk")["code"], "not_found");
}

TEST_F(SavedSessionsTest, ADamagedFileIsRefusedAndNoRequestSuffers) {
    start();
    talk(prompt('a'), "talk");
    command("session.save", "talk");
    const auto path = files().at(0);
    std::fstream file(path, std::ios::in | std::ios::out | std::ios::binary);
    file.seekp(-12, std::ios::end);
    file.put('\x7f');
    file.close();
    restart();
    EXPECT_EQ(sessions()[0]["loaded"], false);
    EXPECT_EQ(command("session.load", "talk")["code"], "data_loss");
    EXPECT_EQ(talk(continued('a')).usage.cached_tokens, 0);
    EXPECT_EQ(command("session.drop", "talk")["dropped"], true) << "it can be cleaned up";
}

TEST_F(SavedSessionsTest, AnotherModelsSessionsAreLeftAlone) {
    start();
    talk(prompt('a'), "talk");
    command("session.save", "talk");
    settings.model.fingerprint = "other";
    restart();
    EXPECT_TRUE(sessions().empty());
    talk(prompt('b'), "talk");
    command("session.save", "talk");
    EXPECT_EQ(files().size(), 2U);
}

TEST_F(SavedSessionsTest, WithoutAFolderASaveIsRefused) {
    settings.cache.dir.clear();
    start();
    talk(prompt('a'), "talk");
    EXPECT_EQ(command("session.save", "talk")["code"], "failed_precondition");
    EXPECT_EQ(sessions().size(), 1U);
}

TEST_F(SavedSessionsTest, WhatIsSavedComesBackAfterALostDie) {
    start();
    talk(prompt('a'), "talk");
    command("session.save", "talk");
    kill(wiring->die);
    run();
    EXPECT_EQ(talk(continued('a')).usage.cached_tokens, 103);
}

TEST_F(SavedSessionsTest, AKilledStoreIsReplacedAndHasWhatWasSaved) {
    start();
    talk(prompt('a'), "talk");
    command("session.save", "talk");
    kill(wiring->store);
    run();
    EXPECT_EQ(command("session.load", "talk")["tokens"], 103);
    EXPECT_EQ(command("session.save", "talk")["tokens"], 103);
}

TEST_F(SavedSessionsTest, TheNewestThatFitAreLoadedAtTheStart) {
    start();
    for (const char* name : {"1", "2", "3", "4"}) {
        talk(prompt(static_cast<TokenId>(name[0])), name);
        command("session.save", name);
        std::filesystem::last_write_time(files().back(), std::filesystem::file_time_type::clock::now());
    }
    settings.cache.limit_bytes = 8000;  // half of it holds two states
    restart();
    int n_loaded = 0;
    for (const Json& session : sessions()) n_loaded += session["loaded"].get<bool>() ? 1 : 0;
    EXPECT_EQ(n_loaded, 2);
}

}  // namespace
}  // namespace pantheon::actors
