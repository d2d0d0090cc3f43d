#include "model/executor.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <functional>
#include <optional>

#include "model/perplexity.h"
#include "model/qwen35moe/step_profile.h"
#include "model/score.h"
#include "tests/model/qwen35moe/stepper.h"

namespace pantheon::test {
namespace {

using model::Executor;
using model::ExecutorConfig;
using model::KvFormat;
using model::RunUnit;
using model::StepLogits;
using model::StepRun;
using model::WantLogits;
using testing::HasSubstr;

constexpr int kContext = 40;

std::unique_ptr<Executor> make_executor(ExecutorConfig config = {}) {
    static const auto weights = *tiny_model().load();
    config.n_ctx = kContext;
    config.n_slots = 3;
    config.kv.format = KvFormat::f32;
    auto executor = Executor::create(weights, config);
    EXPECT_TRUE(executor);
    return std::move(*executor);
}

StepRun run(int slot, std::int32_t pos, std::vector<TokenId> tokens, WantLogits want = WantLogits::all) {
    StepRun r;
    r.slot = SlotId{slot}, r.pos = pos, r.tokens = std::move(tokens), r.logits = want;
    return r;
}

/// Widths that every packed type can have.
TinyShape packable_shape() {
    TinyShape shape;
    shape.label = "packable";
    shape.n_embd = 256, shape.n_ff_exp = 256, shape.n_ff_shexp = 256, shape.gdn_head_dim = 64;
    using kernels::WeightType;
    shape.types = {
        {"attn_qkv.weight", WeightType::q8_0},       {"attn_gate.weight", WeightType::q8_0},
        {"ffn_gate_exps.weight", WeightType::q8_0},  {"ffn_up_exps.weight", WeightType::q8_0},
        {"ffn_down_exps.weight", WeightType::q8_0},  {"ffn_gate_shexp.weight", WeightType::q8_0},
        {"ffn_down_shexp.weight", WeightType::q4_0}, {"output.weight", WeightType::q8_0},
    };
    return shape;
}

ExecutorConfig two_threads() {
    ExecutorConfig config;
    config.backend = model::Backend::cpu;
    config.n_ctx = kContext;
    config.n_threads = 2;
    return config;
}

std::vector<float> all_logits(Executor& executor, const std::vector<TokenId>& tokens,
                              const std::vector<model::Repack>& modes) {
    EXPECT_TRUE(executor.bind(SlotId{0}));
    std::vector<float> all;
    constexpr std::size_t kChunks[] = {1, 5, 1, 9, 2, 7};
    for (std::size_t t = 0, i = 0; t < tokens.size(); ++i) {
        EXPECT_TRUE(executor.repack(modes[i % modes.size()]));
        const std::size_t n = std::min(kChunks[i % 6], tokens.size() - t);
        const auto begin = tokens.begin() + static_cast<std::ptrdiff_t>(t);
        const StepRun step =
            run(0, static_cast<std::int32_t>(t), {begin, begin + static_cast<std::ptrdiff_t>(n)});
        const auto logits = executor.step({&step, 1});
        EXPECT_TRUE(logits);
        all.insert(all.end(), logits->data, logits->data + logits->n_rows * logits->n_vocab);
        t += n;
    }
    executor.release(SlotId{0});
    return all;
}

TEST(ExecutorTest, RepackingInMidSequenceLeavesEveryBitOfTheLogits) {
    using model::Repack;
    const auto weights = *tiny_model(packable_shape()).load();
    const auto tokens = random_tokens(36, 300, 9);
    auto executor = *Executor::create(weights, two_threads());
    EXPECT_EQ(executor->repack_bytes(), 0u);
    const auto want = all_logits(*executor, tokens, {Repack::none});
    for (const auto& modes : std::vector<std::vector<Repack>>{
             {Repack::all}, {Repack::dense}, {Repack::none, Repack::all, Repack::dense, Repack::all}}) {
        const auto have = all_logits(*executor, tokens, modes);
        ASSERT_EQ(have.size(), want.size());
        EXPECT_EQ(std::memcmp(have.data(), want.data(), want.size() * sizeof(float)), 0);
    }
}

TEST(ExecutorTest, PackingLittleByLittleBetweenStepsLeavesEveryBitOfTheLogits) {
    const auto weights = *tiny_model(packable_shape()).load();
    const auto tokens = random_tokens(36, 300, 9);
    auto executor = *Executor::create(weights, two_threads());
    const auto want = all_logits(*executor, tokens, {model::Repack::none});
    executor->begin_repack(model::Repack::all);
    ASSERT_TRUE(executor->bind(SlotId{0}));
    std::vector<float> have;
    std::uint64_t n_before = 0;
    bool is_partial = false;
    for (std::size_t t = 0; t < tokens.size(); ++t) {
        const auto more = executor->pack_some(std::chrono::microseconds(0));  // one slice of one matrix
        ASSERT_TRUE(more);
        is_partial = is_partial || (*more && executor->repack_bytes() > n_before);
        n_before = executor->repack_bytes();
        const StepRun step = run(0, static_cast<std::int32_t>(t), {tokens[t]});
        const auto logits = executor->step({&step, 1});
        ASSERT_TRUE(logits);
        have.insert(have.end(), logits->data, logits->data + logits->n_rows * logits->n_vocab);
    }
    EXPECT_EQ(is_partial, kernels::host_cpu_isa() != kernels::CpuIsa::scalar);
    ASSERT_EQ(have.size(), want.size());
    EXPECT_EQ(std::memcmp(have.data(), want.data(), want.size() * sizeof(float)), 0);
}

/// Every part is one unit; `between` is called after each that is not the last.
std::optional<std::vector<float>> in_parts(Executor& executor, const StepRun& run,
                                           const std::function<void(int)>& between) {
    for (int n_parts = 1;; ++n_parts) {
        const auto logits = executor.step_in_parts(run, [](RunUnit, RunUnit) { return true; });
        if (!logits) return std::nullopt;
        if (*logits) {
            const StepLogits& rows = **logits;
            return std::vector<float>(rows.data, rows.data + rows.n_rows * rows.n_vocab);
        }
        between(n_parts);
    }
}

class RunsInPartsTest : public testing::TestWithParam<model::Backend> {
  protected:
    static ExecutorConfig config_of() {
        ExecutorConfig config = two_threads();
        config.backend = GetParam();
        config.n_slots = 3;
        config.kv.format = KvFormat::q4_0;
        config.kv.sink = 2;
        config.kv.window = 4;
        return config;
    }
    static std::unique_ptr<Executor> executor() {
        return *Executor::create(*tiny_model(packable_shape()).load(), config_of());
    }
};

TEST_P(RunsInPartsTest, OtherSlotsStepBetweenThemAndNobodyNotices) {
    const auto tokens = random_tokens(30, 300, 9), others = random_tokens(40, 300, 10);
    const auto slice = [](const std::vector<TokenId>& all, int begin, int end) {
        return std::vector<TokenId>(all.begin() + begin, all.begin() + end);
    };
    auto whole = executor();
    const auto logits_of = [&](Executor& e, const StepRun& r) {
        const auto logits = e.step({&r, 1});
        EXPECT_TRUE(logits);
        return std::vector<float>(logits->data, logits->data + logits->n_rows * logits->n_vocab);
    };
    std::vector<std::vector<float>> want, want_others;
    ASSERT_TRUE(whole->bind(SlotId{0}) && whole->bind(SlotId{1}));
    for (const auto& r :
         {run(0, 0, slice(tokens, 0, 11)), run(0, 11, slice(tokens, 11, 27), WantLogits::last),
          run(0, 27, slice(tokens, 27, 30))})
        want.push_back(logits_of(*whole, r));
    for (int t = 0; t < 40; ++t)
        want_others.push_back(logits_of(*whole, run(1, t, {others[static_cast<std::size_t>(t)]})));

    auto e = executor();
    ASSERT_TRUE(e->bind(SlotId{0}) && e->bind(SlotId{1}) && e->bind(SlotId{2}));
    std::vector<std::vector<float>> have, have_others;
    int n_between = 0;
    const auto between = [&](int n_parts) {
        ++n_between;
        EXPECT_EQ(e->length(SlotId{0}), n_between <= 8 ? 0 : 11);
        if (n_parts % 3 == 0) e->release_scratch();
        if (n_parts == 5 && GetParam() == model::Backend::cpu) {
            EXPECT_TRUE(e->repack(model::Repack::all));
        }
        const auto t = static_cast<std::int32_t>(have_others.size());
        have_others.push_back(logits_of(*e, run(1, t, {others[static_cast<std::size_t>(t)]})));
    };
    have.push_back(*in_parts(*e, run(0, 0, slice(tokens, 0, 11)), between));
    // Two runs in parts take turns.
    const StepRun other = run(2, 0, slice(others, 0, 20));
    have.push_back(*in_parts(*e, run(0, 11, slice(tokens, 11, 27), WantLogits::last), [&](int n_parts) {
        between(n_parts);
        if (n_parts <= 3) {
            const auto logits = e->step_in_parts(other, [](RunUnit, RunUnit) { return true; });
            EXPECT_TRUE(logits && !*logits);
        }
    }));
    have.push_back(logits_of(*e, run(0, 27, slice(tokens, 27, 30))));
    const auto last = in_parts(*e, other, [](int) {});
    ASSERT_TRUE(last);
    EXPECT_EQ(n_between, 16) << "4 layers of two units, and the head with the last of them";
    EXPECT_EQ(have, want);
    want_others.resize(have_others.size());
    EXPECT_EQ(have_others, want_others);
    whole->release(SlotId{0});
    ASSERT_TRUE(whole->bind(SlotId{0}));
    EXPECT_EQ(*last, logits_of(*whole, run(0, 0, slice(others, 0, 20))));
}

TEST_P(RunsInPartsTest, AttentionPausesBetweenBlocksOfRows) {
    const auto tokens = random_tokens(400, 300, 12), others = random_tokens(400, 300, 13);
    const StepRun first = run(0, 0, {tokens.begin(), tokens.begin() + 150});
    const StepRun rest = run(0, 150, {tokens.begin() + 150, tokens.end()});
    const auto executor_of = [&] {
        ExecutorConfig config = config_of();
        config.n_ctx = 700;
        auto e = *Executor::create(*tiny_model(packable_shape()).load(), config);
        EXPECT_TRUE(e->bind(SlotId{0}) && e->bind(SlotId{1}) && e->step({&first, 1}));
        return e;
    };
    const auto whole = executor_of();
    const auto logits = whole->step({&rest, 1});
    ASSERT_TRUE(logits);
    const std::vector<float> want(logits->data, logits->data + logits->n_rows * logits->n_vocab);

    const auto e = executor_of();
    std::vector<RunUnit> units;
    int n_other = 0;
    const auto pause = [&](RunUnit done, RunUnit) {
        units.push_back(done);
        return true;
    };
    for (;;) {
        const auto part = e->step_in_parts(rest, pause);
        ASSERT_TRUE(part);
        if (*part) {
            const std::vector<float> have((*part)->data, (*part)->data + (*part)->n_rows * (*part)->n_vocab);
            EXPECT_TRUE(have == want);
            break;
        }
        const StepRun other =
            run(1, n_other, {others.begin() + n_other, others.begin() + n_other + 20}, WantLogits::none);
        ASSERT_TRUE(e->step({&other, 1})) << "it uses the same working memory";
        n_other += 20;
    }
    EXPECT_EQ(std::ranges::count(units, RunUnit::gdn) + std::ranges::count(units, RunUnit::experts), 3 + 4);
    EXPECT_EQ(std::ranges::count(units, RunUnit::attention), 3) << "of 84 rows";
}

TEST_P(RunsInPartsTest, AmidOneTheSlotCanOnlyGoOnOrBeReleased) {
    const auto tokens = random_tokens(20, 300, 9);
    auto e = executor();
    ASSERT_TRUE(e->bind(SlotId{0}));
    const StepRun begun = run(0, 0, tokens);
    ASSERT_TRUE(e->step_in_parts(begun, [](RunUnit, RunUnit) { return true; }));
    const auto refused = [](const auto& result) {
        return !result && result.error().code() == Code::failed_precondition;
    };
    EXPECT_TRUE(refused(e->step({&begun, 1})));
    StepRun another = begun;
    another.tokens.pop_back();
    EXPECT_TRUE(refused(e->step_in_parts(another, {})));
    another = begun;
    another.logits = WantLogits::none;
    EXPECT_TRUE(refused(e->step_in_parts(another, {})));
    EXPECT_TRUE(refused(e->snapshot(SlotId{0})));
    EXPECT_TRUE(refused(e->convert_to_q4_0(SlotId{0})));
    EXPECT_EQ(e->length(SlotId{0}), 0);
    const auto rest = e->step_in_parts(begun, {});
    ASSERT_TRUE(rest && *rest) << "it is what it was";
    const std::vector<float> want((*rest)->data, (*rest)->data + (*rest)->n_rows * (*rest)->n_vocab);
    EXPECT_EQ(e->length(SlotId{0}), 20);

    ASSERT_TRUE(e->bind(SlotId{1}));
    const StepRun dropped = run(1, 0, random_tokens(33, 300, 11));
    ASSERT_TRUE(e->step_in_parts(dropped, [](RunUnit, RunUnit) { return true; }));
    const std::uint64_t n_bytes = e->kv_used_bytes();
    e->release(SlotId{1});
    EXPECT_LT(e->kv_used_bytes(), n_bytes);
    ASSERT_TRUE(e->bind(SlotId{1}));
    const auto again = in_parts(*e, run(1, 0, tokens), [](int) {});
    ASSERT_TRUE(again);
    EXPECT_EQ(*again, want) << "nothing of the dropped run is left";
}

INSTANTIATE_TEST_SUITE_P(Backends, RunsInPartsTest, testing::Values(model::Backend::ref, model::Backend::cpu),
                         [](const auto& p) { return p.param == model::Backend::ref ? "ref" : "cpu"; });

TEST(ExecutorTest, ATokenPassesOneBarrierAPhaseAndTheProfileCountsThem) {
    using model::Phase;
    model::StepProfile profile;
    ExecutorConfig config = two_threads();
    config.profile = &profile;
    const auto weights = *tiny_model(packable_shape()).load();
    auto executor = *Executor::create(weights, config);
    ASSERT_TRUE(executor->bind(SlotId{0}));
    for (const std::int32_t pos : {0, 1}) {
        const StepRun step = run(0, pos, {7});
        ASSERT_TRUE(executor->step({&step, 1}));
    }
    EXPECT_EQ(profile.n_steps, 2);
    const int n_layer = weights->n_layer(), n_gdn = weights->config().n_gdn_layers();
    std::int64_t n_barriers = 0;
    for (int i = 0; i < model::kPhases; ++i) {
        const Phase phase = static_cast<Phase>(i);
        SCOPED_TRACE(model::phase_name(phase));
        const auto& part = profile.part(phase);
        EXPECT_GT(part.n, 0);
        EXPECT_GE(part.seconds, part.team_seconds);
        if (phase == Phase::attention) continue;
        EXPECT_LE(part.n_barriers, part.n);
        n_barriers += part.n_barriers;
    }
    EXPECT_EQ(profile.part(Phase::gdn_heads).n, 2 * n_gdn);
    EXPECT_EQ(profile.part(Phase::moe_hidden).n, 2 * n_layer);
    // Three phases each of a mixer and of the experts, and the head.
    EXPECT_LE(n_barriers, 2 * (3 * n_gdn + 3 * n_layer + 1));
    profile.clear();
    EXPECT_EQ(profile.part(Phase::head).n, 0);
}

TEST(ExecutorTest, SaysHowMuchIsRepacked) {
    using model::Repack;
    const auto weights = *tiny_model(packable_shape()).load();
    ExecutorConfig config;
    config.backend = model::Backend::cpu;
    config.repack = Repack::all;
    auto executor = *Executor::create(weights, config);
    const std::uint64_t all = executor->repack_bytes();
    EXPECT_EQ(all, model::repack_bytes(*weights, model::Backend::cpu, Repack::all));
    EXPECT_EQ(all > 0, kernels::host_cpu_isa() != kernels::CpuIsa::scalar);
    ASSERT_TRUE(executor->repack(Repack::dense));
    EXPECT_EQ(executor->repack_bytes(), model::repack_bytes(*weights, model::Backend::cpu, Repack::dense));
    EXPECT_TRUE(all == 0 || executor->repack_bytes() < all);
    ASSERT_TRUE(executor->repack(Repack::none));
    EXPECT_EQ(executor->repack_bytes(), 0u);
    config.backend = model::Backend::ref;
    EXPECT_EQ((*Executor::create(weights, config))->repack_bytes(), 0u);
}

TEST(ExecutorTest, StepsRunsOfSeveralSlotsInTheOrderOfTheRuns) {
    const Rows want = Stepper(tiny_model()).sequence(SlotId{0}, golden_tokens(), 16);
    const auto tokens = golden_tokens();
    const auto executor = make_executor();
    ASSERT_TRUE(executor->bind(SlotId{0}));
    ASSERT_TRUE(executor->bind(SlotId{2}));
    EXPECT_EQ(executor->length(SlotId{0}), 0);
    EXPECT_EQ(executor->length(SlotId{1}), -1);
    const StepRun runs[] = {run(2, 0, {tokens.begin(), tokens.begin() + 5}, WantLogits::last),
                            run(0, 0, {tokens.begin(), tokens.begin() + 3}, WantLogits::all)};
    const auto logits = executor->step(runs);
    ASSERT_TRUE(logits) << logits.error().to_string();
    ASSERT_EQ(logits->n_rows, 4);
    ASSERT_EQ(logits->n_vocab, 300);
    const std::size_t kPositions[] = {4, 0, 1, 2};
    for (std::int64_t i = 0; i < 4; ++i)
        EXPECT_TRUE(std::ranges::equal(logits->row(i), want[kPositions[i]])) << "row " << i;
    EXPECT_EQ(executor->length(SlotId{2}), 5);
    EXPECT_EQ(executor->length(SlotId{0}), 3);
}

TEST(ExecutorTest, ARunThatIsDroppedAfterAnyOfItsUnitsLeavesNothing) {
    const auto tokens = golden_tokens();
    const Rows want = Stepper(tiny_model()).sequence(SlotId{0}, tokens, 16);
    const auto executor = make_executor();
    ASSERT_TRUE(executor->bind(SlotId{0}));
    const StepRun all = run(0, 0, tokens);
    for (int n_done = 1; n_done <= 8; ++n_done) {
        int n_asked = 0;
        const auto begun =
            executor->step_in_parts(all, [&](RunUnit, RunUnit) { return ++n_asked == n_done; });
        ASSERT_TRUE(begun);
        EXPECT_FALSE(*begun);
        EXPECT_EQ(n_asked, n_done);
        executor->release(SlotId{0});
        EXPECT_EQ(executor->kv_used_bytes(), 0u);
        ASSERT_TRUE(executor->bind(SlotId{0}));
    }
    const auto logits = executor->step_in_parts(all, [](RunUnit, RunUnit) { return false; });
    ASSERT_TRUE(logits && *logits);
    EXPECT_TRUE(std::ranges::equal((*logits)->row((*logits)->n_rows - 1), want[tokens.size() - 1]));
}

TEST(ExecutorTest, AWrongPlanIsRefusedAndChangesNothing) {
    const struct {
        const char* what;
        std::vector<StepRun> runs;
        Code code;
        const char* message;
    } kCases[] = {
        {"no such slot", {run(3, 0, {1})}, Code::invalid_argument, "slot 3: there are 3 slots"},
        {"negative slot", {run(-1, 0, {1})}, Code::invalid_argument, "slot -1"},
        {"not bound", {run(2, 0, {1})}, Code::failed_precondition, "slot 2: is not bound"},
        {"behind", {run(0, 2, {1})}, Code::failed_precondition, "slot 0: pos 2, its length is 4"},
        {"ahead", {run(0, 5, {1})}, Code::failed_precondition, "slot 0: pos 5"},
        {"twice",
         {run(0, 4, {1}), run(1, 0, {1}), run(0, 4, {1})},
         Code::invalid_argument,
         "slot 0: two runs"},
        {"empty", {run(0, 4, {})}, Code::invalid_argument, "slot 0: no tokens"},
        {"id too large",
         {run(1, 0, {1}), run(0, 4, {1, 300})},
         Code::invalid_argument,
         "slot 0: token 300 of a vocabulary of 300"},
        {"negative id", {run(0, 4, {-1})}, Code::invalid_argument, "slot 0: token -1"},
        {"past n_ctx",
         {run(1, 0, {1}), run(0, 4, std::vector<TokenId>(37, 1))},
         Code::failed_precondition,
         "slot 0: 4 + 37 tokens do not fit into n_ctx 40"},
    };
    const auto tokens = golden_tokens();
    const Rows want = Stepper(tiny_model()).sequence(SlotId{0}, tokens, 16);
    const auto executor = make_executor();
    ASSERT_TRUE(executor->bind(SlotId{0}));
    ASSERT_TRUE(executor->bind(SlotId{1}));
    const StepRun first = run(0, 0, {tokens.begin(), tokens.begin() + 4});
    ASSERT_TRUE(executor->step({&first, 1}));
    for (const auto& c : kCases) {
        SCOPED_TRACE(c.what);
        const auto logits = executor->step(c.runs);
        ASSERT_FALSE(logits);
        EXPECT_EQ(logits.error().code(), c.code);
        EXPECT_THAT(logits.error().message(), HasSubstr(c.message));
        EXPECT_EQ(executor->length(SlotId{0}), 4);
        EXPECT_EQ(executor->length(SlotId{1}), 0);
    }
    const StepRun next = run(0, 4, {tokens.begin() + 4, tokens.end()});
    const auto logits = executor->step({&next, 1});
    ASSERT_TRUE(logits);
    EXPECT_TRUE(std::ranges::equal(logits->row(11), want[15]));
}

TEST(ExecutorTest, TheLastRowOfTheContextIsUsable) {
    const auto executor = make_executor();
    ASSERT_TRUE(executor->bind(SlotId{0}));
    const StepRun full = run(0, 0, std::vector<TokenId>(kContext, 7));
    ASSERT_TRUE(executor->step({&full, 1}));
    const StepRun more = run(0, kContext, {7});
    EXPECT_EQ(executor->step({&more, 1}).error().code(), Code::failed_precondition);
}

TEST(ExecutorTest, KvBytesFollowWhatSequencesUse) {
    const auto executor = make_executor();
    constexpr std::uint64_t kPage = 2 * 64 * 32 * 4;  // K and V, 64 rows of one head
    EXPECT_EQ(executor->kv_used_bytes(), 0u);
    EXPECT_EQ(executor->kv_pool_bytes(),
              3 * 2 * kPage);  // 3 slots, 1 attention layer, 2 heads, 40 rows: one page
    ASSERT_TRUE(executor->bind(SlotId{0}));
    EXPECT_EQ(executor->kv_used_bytes(), 0u);
    const StepRun one = run(0, 0, {7});
    ASSERT_TRUE(executor->step({&one, 1}));
    EXPECT_EQ(executor->kv_used_bytes(), 2 * kPage);
    executor->release(SlotId{0});
    EXPECT_EQ(executor->kv_used_bytes(), 0u);
}

TEST(ExecutorTest, ConfigurationIsChecked) {
    const auto weights = *tiny_model().load();
    EXPECT_EQ(Executor::create(nullptr, {}).error().code(), Code::invalid_argument);
    for (const auto& [field, change] : std::vector<std::pair<std::string, void (*)(ExecutorConfig&)>>{
             {"n_threads", [](ExecutorConfig& c) { c.n_threads = 0; }},
             {"n_slots", [](ExecutorConfig& c) { c.n_slots = 0; }},
             {"n_ctx", [](ExecutorConfig& c) { c.n_ctx = -1; }}}) {
        ExecutorConfig config;
        change(config);
        const auto executor = Executor::create(weights, config);
        ASSERT_FALSE(executor);
        EXPECT_EQ(executor.error().code(), Code::invalid_argument);
        EXPECT_THAT(executor.error().message(), HasSubstr(field));
    }
}

TEST(ScoreTest, GivesOneRowPerTokenWhateverTheChunk) {
    const auto tokens = random_tokens(33, 300, 4);
    const Rows want = Stepper(tiny_model()).sequence(SlotId{0}, tokens, 33);
    for (const int chunk : {1, 7, 64})
        for (const int n_threads : {1, 2}) {
            ExecutorConfig config;
            config.n_threads = n_threads;
            const auto executor = make_executor(config);
            std::size_t t = 0;
            const Status ok =
                model::score(*executor, SlotId{1}, tokens, 300, chunk, [&](const StepLogits& rows) {
                    for (std::int64_t i = 0; i < rows.n_rows; ++i, ++t)
                        EXPECT_TRUE(std::ranges::equal(rows.row(i), want[t])) << "token " << t;
                    return Status();
                });
            EXPECT_TRUE(ok);
            EXPECT_EQ(t, tokens.size());
            EXPECT_EQ(executor->length(SlotId{1}), -1) << "the slot is free again";
        }
}

TEST(ScoreTest, ChecksEverythingBeforeItRunsAnything) {
    const auto executor = make_executor();
    const auto never = [](const StepLogits&) -> Status {
        ADD_FAILURE() << "something ran";
        return {};
    };
    const std::vector<TokenId> good = {1, 2}, bad = {1, 2, 300}, negative = {1, -5};
    EXPECT_THAT(model::score(*executor, SlotId{0}, bad, 300, 1, never).error().to_string(),
                HasSubstr("invalid_argument: tokens[2]: 300"));
    EXPECT_EQ(model::score(*executor, SlotId{0}, negative, 300, 1, never).error().code(),
              Code::invalid_argument);
    EXPECT_EQ(model::score(*executor, SlotId{0}, {}, 300, 1, never).error().code(), Code::invalid_argument);
    EXPECT_EQ(model::score(*executor, SlotId{0}, good, 300, 0, never).error().code(), Code::invalid_argument);
    EXPECT_EQ(model::score(*executor, SlotId{9}, good, 300, 1, never).error().code(), Code::invalid_argument);
}

TEST(ScoreTest, AnErrorOfTheSinkEndsTheScoringAndFreesTheSlot) {
    const auto executor = make_executor();
    const std::vector<TokenId> tokens = {1, 2, 3};
    int n_calls = 0;
    const Status ok = model::score(*executor, SlotId{0}, tokens, 300, 1, [&](const StepLogits&) -> Status {
        ++n_calls;
        return Error(Code::unavailable, "disk full");
    });
    EXPECT_EQ(ok.error().message(), "disk full");
    EXPECT_EQ(n_calls, 1);
    EXPECT_EQ(executor->length(SlotId{0}), -1);
}

TEST(PerplexityTest, IsTheExponentOfTheMeanSurpriseOfEveryTokenButTheFirst) {
    const std::vector<TokenId> tokens = {5, 17, 299, 4, 4, 120, 33, 7, 250, 61};
    std::vector<double> surprises;
    ASSERT_TRUE(
        model::score(*make_executor(), SlotId{0}, tokens, 300, 64, [&](const StepLogits& rows) -> Status {
            for (std::size_t t = 0; t + 1 < tokens.size(); ++t) {
                double sum = 0;
                for (const float l : rows.row(static_cast<std::int64_t>(t)))
                    sum += std::exp(static_cast<double>(l));
                const float of_next =
                    rows.row(static_cast<std::int64_t>(t))[static_cast<std::size_t>(tokens[t + 1])];
                surprises.push_back(std::log(sum) - static_cast<double>(of_next));
            }
            return {};
        }));
    double mean = 0, variance = 0;
    for (const double s : surprises) mean += s / 9;
    for (const double s : surprises) variance += (s - mean) * (s - mean) / 8;
    for (const int chunk : {1, 4, 64}) {
        std::int64_t n_heard = 0;
        const auto result =
            model::perplexity(*make_executor(), SlotId{0}, tokens, 300, chunk, [&](std::int64_t n) -> Status {
                n_heard += n;
                return {};
            });
        ASSERT_TRUE(result);
        EXPECT_EQ(result->n_predicted, 9);
        EXPECT_NEAR(result->mean_nll, mean, 1e-6);
        EXPECT_NEAR(result->value, std::exp(mean), 1e-5 * std::exp(mean));
        EXPECT_NEAR(result->error, std::sqrt(variance / 9), 1e-6);
        EXPECT_EQ(n_heard, 10);
    }
}

TEST(PerplexityTest, NeedsTwoTokensAndEndsWhenItsListenerSaysSo) {
    const auto executor = make_executor();
    const std::vector<TokenId> one = {1}, three = {1, 2, 3};
    const auto fine = [](std::int64_t) { return Status(); };
    EXPECT_EQ(model::perplexity(*executor, SlotId{0}, one, 300, 1, fine).error().code(),
              Code::invalid_argument);
    const auto stop = [](std::int64_t) -> Status { return Error(Code::cancelled, "enough"); };
    EXPECT_EQ(model::perplexity(*executor, SlotId{0}, three, 300, 1, stop).error().message(), "enough");
    EXPECT_EQ(executor->length(SlotId{0}), -1);
}

}  // namespace
}  // namespace pantheon::test
