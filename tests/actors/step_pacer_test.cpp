#include "actors/step_pacer.h"

#include <gtest/gtest.h>

#include "actors/part_clock.h"

namespace pantheon::actors {
namespace {

using model::RunUnit;
using namespace std::chrono_literals;

TEST(ChunkSizerTest, FitsTheRowsIntoTheStep) {
    ChunkSizer sizer(8, 2);
    EXPECT_EQ(sizer.rows(200), 8);
    for (int i = 0; i < 50; ++i) sizer.observe(10, 100);  // 10 ms a row
    EXPECT_EQ(sizer.rows(200), 20);
    EXPECT_EQ(sizer.rows(100), 10);
    for (int i = 0; i < 50; ++i) sizer.observe(1, 5000);
    EXPECT_EQ(sizer.rows(200), 1);
    for (int i = 0; i < 50; ++i) sizer.observe(1000, 1);
    EXPECT_EQ(sizer.rows(200), kMaxChunk);
}

TEST(ChunkSizerTest, TellsWhatAStepTakesFromWhatARowTakes) {
    ChunkSizer sizer(8, 2);
    for (int i = 0; i < 10; ++i) {
        sizer.observe(64, 24 + 64);
        sizer.observe(128, 24 + 128);
    }
    EXPECT_NEAR(static_cast<double>(sizer.rows(200)), 176, 1);
}

TEST(ChunkSizerTest, DoesNotTrustWhatItHasNotSeen) {
    for (const double growth : {2.0, 1.25}) {
        ChunkSizer sizer(8, growth);
        sizer.observe(8, 10);
        EXPECT_EQ(sizer.rows(200), static_cast<std::int64_t>(8 * growth)) << "not 160";
    }
    // Chunks of nearly one size say nothing of a slope, whatever noise there is on them.
    ChunkSizer noisy(8, 2);
    for (int i = 0; i < 20; ++i) noisy.observe(60 + i % 3, 200 - i % 3);
    EXPECT_NEAR(static_cast<double>(noisy.rows(200)), 61, 2);
    // Steps of which the larger ones took hardly longer: some of it is the rows' fault nevertheless.
    ChunkSizer flat(8, 2);
    for (int i = 0; i < 20; ++i) flat.observe(i % 2 ? 40 : 20, 100);
    EXPECT_LE(flat.rows(200), 80);
}

TEST(ChunkSizerTest, AShortChunkAtAPromptsEndDoesNotShortenTheNext) {
    ChunkSizer sizer(8, 2);
    for (int i = 0; i < 3; ++i) sizer.observe(30 + 10 * i, 50 + 2.5 * (30 + 10 * i));
    for (int i = 0; i < 20; ++i) sizer.observe(60, 200);
    sizer.observe(3, 57.5);
    EXPECT_GE(sizer.rows(200), 54);
    EXPECT_LE(sizer.rows(200), 66);
}

/// A die whose steps take what a formula says, with streams that decode and one prompt that never ends.
struct Simulation {
    double step_ms = 0, row_ms = 0;
    int n_layers = 8;
    int n_streams = 0;
    std::chrono::milliseconds max_gap{200};
    StepPacer pacer;
    PartClock clock;
    PartClock::Instant now;
    std::int64_t n_run = 0;  // rows of the run in parts that has begun
    int n_units = 0;         // of it that are done
    double since_decoded_ms = 0;
    // Of interest:
    double longest_gap_ms = 0, streams = 0, read = 0, elapsed_ms = 0;

    double pass_ms(std::int64_t n_rows) const { return step_ms + row_ms * static_cast<double>(n_rows); }

    void spend(double ms) {
        now += std::chrono::duration_cast<PartClock::Instant::duration>(
            std::chrono::duration<double, std::milli>(ms));
        elapsed_ms += ms;
        since_decoded_ms += ms;
    }

    void decode(std::int64_t n_read) {
        StepShape shape;
        shape.n_decode_rows = shape.n_decoding = n_streams;
        shape.n_read_rows = n_read;
        const double ms = pass_ms(n_streams + n_read);
        spend(ms);
        pacer.observe(shape, {ms, 0}, max_gap);
        longest_gap_ms = std::max(longest_gap_ms, since_decoded_ms);
        since_decoded_ms = 0;
        streams += 1;
        read += static_cast<double>(n_read);
    }

    static RunUnit unit_at(int n) { return n % 2 == 0 ? RunUnit::gdn : RunUnit::experts; }

    /// Two units a layer, of which the experts take two thirds.
    void read_part(double part_ms) {
        StepShape shape;
        shape.n_read_rows = n_run;
        shape.n_decoding = n_streams;
        shape.is_part = true;
        shape.begins = n_units == 0;
        if (shape.begins) clock = {};
        const auto begin = now;
        clock.begin_part(now, part_ms);
        bool is_done = false;
        do {
            spend(pass_ms(n_run) / n_layers * (n_units % 2 == 0 ? 1.0 / 3 : 2.0 / 3));
            clock.unit_done(now, unit_at(n_units));
            is_done = ++n_units == 2 * n_layers;
        } while (!is_done && !clock.is_part_over(unit_at(n_units)));
        const double ms = std::chrono::duration<double, std::milli>(now - begin).count();
        pacer.observe(shape, {ms, is_done ? clock.longest_unit_ms() : 0}, max_gap);
        if (!is_done) return;
        read += static_cast<double>(std::exchange(n_run, 0));
        n_units = 0;
    }

    void run(int n_steps) {
        for (int i = 0; i < n_steps; ++i) {
            const ReadLimits limits = pacer.limits(n_streams, n_streams, max_gap);
            const std::int64_t n_beside = limits.beside.prompt;
            const bool reads_beside = n_run == 0 && n_beside >= kWorthBeside;
            if (limits.in_parts.prompt > 0 && !reads_beside) {
                if (n_run == 0) n_run = limits.in_parts.prompt;
                read_part(limits.part_ms);
            } else {
                decode(reads_beside ? n_beside : 0);
            }
        }
    }
};

struct Die {
    const char* name;
    double step_ms, row_ms;
    int n_streams;
    int n_layers = 8;
    double most_slowdown = 3.0;
};

TEST(StepPacerTest, KeepsItsPromisesWhateverStepsTake) {
    const Die dies[] = {{"small model", 1, 0.2, 4},
                        {"fast rows", 24, 1, 4},
                        {"one stream", 30, 3, 1},
                        {"slow rows", 40, 10, 4},
                        {"many streams", 40, 5, 16},
                        {"a step takes most of the gap", 150, 5, 4, 40},
                        {"a step takes the gap", 200, 5, 4, 40},
                        // The prompt gets no more than max_gap between two steps.
                        {"a step takes more", 280, 20, 4, 40, 3.8},
                        {"all layers on few cores", 250, 17, 4, 40}};
    for (const Die& die : dies) {
        SCOPED_TRACE(die.name);
        Simulation alone;
        alone.step_ms = die.step_ms;
        alone.row_ms = die.row_ms;
        alone.n_layers = die.n_layers;
        alone.run(2000);
        const double best_ms = alone.pass_ms(kMaxChunk) / kMaxChunk;
        const double unit_ms = alone.pass_ms(kMaxChunk) / die.n_layers * 2 / 3;
        EXPECT_LE(alone.elapsed_ms / alone.read, (unit_ms < 170 ? 1.05 : 1.25) * best_ms)
            << "short runs read all weights too often";

        Simulation beside = alone;
        beside.n_streams = die.n_streams;
        beside.run(20);
        beside.n_run = beside.n_units = 0;
        const double one_step = beside.pass_ms(die.n_streams);
        for (int i = 0; i < 20; ++i) {
            StepShape shape;
            shape.n_decode_rows = shape.n_decoding = die.n_streams;
            beside.pacer.observe(shape, {one_step, 0}, beside.max_gap);
        }
        beside.elapsed_ms = beside.streams = beside.read = beside.longest_gap_ms = 0;
        beside.since_decoded_ms = 0;
        beside.run(8000);
        EXPECT_LE(beside.longest_gap_ms, 200 + one_step);
        EXPECT_GE(beside.streams * one_step / beside.elapsed_ms, 0.60) << "what streams keep";
        const double slowdown = (alone.read / alone.elapsed_ms) / (beside.read / beside.elapsed_ms);
        EXPECT_LE(slowdown, die.most_slowdown) << "what a newcomer pays";
    }
}

TEST(StepPacerTest, ScoreJobsHaveAPaceOfTheirOwn) {
    StepPacer pacer;
    for (int i = 0; i < 20; ++i) {
        StepShape prompt, score;
        prompt.n_read_rows = 60;
        score.n_read_rows = 6;
        prompt.n_decoding = score.n_decoding = 1;
        prompt.is_part = score.is_part = score.is_score = true;
        pacer.observe(prompt, {60, 60}, 222ms);
        pacer.observe(score, {60, 60}, 222ms);
    }
    StepShape decode;
    decode.n_decode_rows = decode.n_decoding = 1;
    for (int i = 0; i < 400; ++i) pacer.observe(decode, {50, 0}, 222ms);  // what the streams are owed
    const ReadLimits limits = pacer.limits(0, 1, 222ms);
    EXPECT_GE(limits.in_parts.prompt, 60);
    EXPECT_EQ(limits.in_parts.score, kMinRun);
}

TEST(StepPacerTest, StreamsThatWaitForTheirSlotsWordAreNotOvertaken) {
    StepPacer pacer;
    StepShape decode, part;
    decode.n_decode_rows = decode.n_decoding = part.n_decoding = 4;
    part.n_read_rows = 60;
    part.is_part = true;
    for (int i = 0; i < 20; ++i) pacer.observe(decode, {50, 0}, 200ms);
    EXPECT_GT(pacer.limits(0, 4, 200ms).in_parts.prompt, 0);
    pacer.observe(part, {120, 0}, 200ms);
    EXPECT_EQ(pacer.limits(0, 4, 200ms).in_parts.prompt, 0);
    EXPECT_EQ(pacer.limits(0, 4, 200ms).in_parts.score, 0);
    EXPECT_EQ(pacer.limits(0, 4, 200ms).beside.prompt, 0);
    EXPECT_GT(pacer.limits(0, 0, 200ms).in_parts.prompt, 0) << "nobody is left who decodes";
    for (int i = 0; i < 5; ++i) pacer.observe(decode, {50, 0}, 200ms);
    EXPECT_GT(pacer.limits(4, 4, 200ms).in_parts.prompt, 0) << "paid back";
}

TEST(StepPacerTest, AGapThatNothingCanKeepDoesNotMakePromptsCrawl) {
    for (const int max_gap : {1, 2, 5, 20}) {
        SCOPED_TRACE(max_gap);
        Simulation die;
        die.step_ms = 40;
        die.row_ms = 3;
        die.n_layers = 40;
        die.n_streams = 1;
        die.max_gap = std::chrono::milliseconds(max_gap);
        die.run(20000);
        const double one_step = die.pass_ms(1);
        const double two_units = die.pass_ms(2 * kMinRun) / die.n_layers;
        EXPECT_LE(die.longest_gap_ms, one_step + std::max(1.05 * max_gap, two_units));
        EXPECT_GE(die.streams * one_step / die.elapsed_ms, 0.60);
        EXPECT_LE((die.elapsed_ms - die.streams * one_step) / die.read,
                  1.05 * die.pass_ms(kMinRun) / kMinRun);
    }
}

TEST(StepPacerTest, PartsThatAreShortTakeTurnsWithTheStreamsToo) {
    StepPacer pacer;
    StepShape decode, part, beside;
    decode.n_decode_rows = decode.n_decoding = part.n_decoding = beside.n_decode_rows = beside.n_decoding = 4;
    part.n_read_rows = beside.n_read_rows = 60;
    part.is_part = true;
    for (int i = 0; i < 20; ++i) pacer.observe(decode, {1, 0}, 5ms);
    pacer.observe(beside, {5, 0}, 5ms);
    EXPECT_GT(pacer.limits(4, 4, 5ms).in_parts.prompt, 0) << "they decoded in it";
    pacer.observe(part, {1, 0}, 5ms);
    EXPECT_EQ(pacer.limits(4, 4, 5ms).in_parts.prompt, 0);
}

/// The host was suspended, or something else held the step up.
TEST(StepPacerTest, AStepThatWasHeldUpIsSoonForgotten) {
    StepShape decode, part;
    decode.n_decode_rows = decode.n_decoding = part.n_decoding = 4;
    part.n_read_rows = 60;
    part.is_part = true;
    const auto may_read = [](const StepPacer& pacer) {
        return pacer.limits(4, 4, 200ms).in_parts.prompt > 0;
    };
    StepPacer owes;
    for (int i = 0; i < 20; ++i) owes.observe(decode, {10, 0}, 200ms);
    owes.observe(part, {8000, 0}, 200ms);
    int n_decoded = 0;
    for (; n_decoded < 1000 && !may_read(owes); ++n_decoded) owes.observe(decode, {10, 0}, 200ms);
    EXPECT_LT(n_decoded, 200) << "each 10 ms";

    StepPacer is_owed;
    for (int i = 0; i < 20; ++i) is_owed.observe(decode, {10, 0}, 200ms);
    is_owed.observe(decode, {10000, 0}, 200ms);
    int n_parts = 0;
    for (; n_parts < 100 && may_read(is_owed); ++n_parts) {
        is_owed.observe(part, {is_owed.limits(4, 4, 200ms).part_ms, 0}, 200ms);
        is_owed.observe(decode, {10, 0}, 200ms);
    }
    EXPECT_LT(n_parts, 10) << "with one step of the streams after each";
}

/// A clock and the time that its run takes.
struct TimedRun {
    PartClock clock;
    PartClock::Instant now{};

    void begin_part(double part_ms) { clock.begin_part(now, part_ms); }
    void unit(RunUnit unit, double ms) {
        now += std::chrono::duration_cast<PartClock::Instant::duration>(
            std::chrono::duration<double, std::milli>(ms));
        clock.unit_done(now, unit);
    }
};

TEST(PartClockTest, EndsAPartBeforeTheUnitThatWouldNotFit) {
    TimedRun run;
    run.begin_part(100);
    run.unit(RunUnit::gdn, 20);  // of experts nothing is known yet
    EXPECT_FALSE(run.clock.is_part_over(RunUnit::experts));
    run.unit(RunUnit::experts, 40);
    EXPECT_FALSE(run.clock.is_part_over(RunUnit::gdn));
    EXPECT_FALSE(run.clock.is_part_over(RunUnit::attention)) << "unknown: like the longest, which fits";
    run.unit(RunUnit::gdn, 20);
    EXPECT_TRUE(run.clock.is_part_over(RunUnit::experts));
    EXPECT_TRUE(run.clock.is_part_over(RunUnit::attention)) << "unknown: the longest would not fit";
    run.begin_part(50);  // what was learned holds in the next part
    run.unit(RunUnit::attention, 20);
    EXPECT_TRUE(run.clock.is_part_over(RunUnit::experts));
    EXPECT_FALSE(run.clock.is_part_over(RunUnit::attention));
    run.begin_part(1);  // a part has one unit, however short it should be
    run.unit(RunUnit::experts, 90);
    EXPECT_TRUE(run.clock.is_part_over(RunUnit::attention));
}

/// Attention in every fourth layer; `disturbed`: the unit that takes far longer.
double longest_of(int n_layers, double experts_ms, int disturbed, double head_ms) {
    TimedRun run;
    run.begin_part(1);
    for (int i = 0; i < 2 * n_layers; ++i) {
        const RunUnit unit = i % 2 == 1 ? RunUnit::experts : i % 8 == 6 ? RunUnit::attention : RunUnit::gdn;
        run.unit(unit, i == disturbed ? 500 : unit == RunUnit::experts ? experts_ms : 10);
    }
    run.unit(RunUnit::head, head_ms);
    return run.clock.longest_unit_ms();
}

TEST(PartClockTest, TellsTheLongestUnitThatWillComeAgain) {
    for (const int disturbed : {-1, 0, 3, 6}) {
        EXPECT_EQ(longest_of(8, 30, disturbed, 1), 30) << disturbed;
        EXPECT_EQ(longest_of(12, 5, disturbed, 1), 10) << disturbed;
        EXPECT_EQ(longest_of(8, 30, disturbed, 50), 50) << "the head of a score job";
    }
}

}  // namespace
}  // namespace pantheon::actors
