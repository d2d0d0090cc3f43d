#include "actors/step_pacer.h"

#include <gtest/gtest.h>

namespace pantheon::actors {
namespace {

using namespace std::chrono_literals;

TEST(ChunkSizerTest, FitsTheRowsIntoTheStep) {
    ChunkSizer sizer;
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
    ChunkSizer sizer;
    for (int i = 0; i < 10; ++i) {
        sizer.observe(64, 24 + 64);
        sizer.observe(128, 24 + 128);
    }
    EXPECT_NEAR(static_cast<double>(sizer.rows(200)), 176, 1);
}

TEST(ChunkSizerTest, DoesNotTrustWhatItHasNotSeen) {
    ChunkSizer sizer;
    sizer.observe(8, 10);
    EXPECT_EQ(sizer.rows(200), 16) << "not 160";
    // Chunks of nearly one size say nothing of a slope, whatever noise there is on them.
    ChunkSizer noisy;
    for (int i = 0; i < 20; ++i) noisy.observe(60 + i % 3, 200 - i % 3);
    EXPECT_NEAR(static_cast<double>(noisy.rows(200)), 61, 2);
    // Steps of which the larger ones took hardly longer: some of it is the rows' fault nevertheless.
    ChunkSizer flat;
    for (int i = 0; i < 20; ++i) flat.observe(i % 2 ? 40 : 20, 100);
    EXPECT_LE(flat.rows(200), 80);
}

TEST(ChunkSizerTest, AShortChunkAtAPromptsEndDoesNotShortenTheNext) {
    ChunkSizer sizer;
    for (int i = 0; i < 3; ++i) sizer.observe(30 + 10 * i, 50 + 2.5 * (30 + 10 * i));
    for (int i = 0; i < 20; ++i) sizer.observe(60, 200);
    sizer.observe(3, 57.5);
    EXPECT_GE(sizer.rows(200), 54);
    EXPECT_LE(sizer.rows(200), 66);
}

/// A die whose steps take what a formula says, with streams that decode and one prompt that never ends.
struct Simulation {
    double step_ms = 0, row_ms = 0;
    int n_streams = 0;
    std::chrono::milliseconds max_gap{200};
    StepPacer pacer;
    double longest_ms = 0, now_ms = 0, streams = 0, read = 0;

    void run(int n_steps) {
        for (int i = 0; i < n_steps; ++i) {
            const ChunkLimits chunk = pacer.limits(n_streams, n_streams, max_gap);
            const std::int64_t n_rows = n_streams + chunk.prompt;
            if (n_rows == 0) return ADD_FAILURE() << "an empty step";
            const double ms = step_ms + row_ms * static_cast<double>(n_rows);
            StepShape shape;
            shape.n_decode_rows = shape.n_decoding = n_streams;
            shape.n_read_rows = chunk.prompt;
            pacer.observe(shape, ms);
            longest_ms = std::max(longest_ms, ms);
            now_ms += ms;
            streams += 1;
            read += static_cast<double>(chunk.prompt);
        }
    }
};

struct Pace {
    const char* name;
    double step_ms, row_ms;
    int n_streams;
};

TEST(StepPacerTest, KeepsItsPromisesWhateverStepsTake) {
    const Pace paces[] = {{"small model", 1, 0.2, 4},
                          {"fast rows", 24, 1, 4},
                          {"one stream", 30, 3, 1},
                          {"slow rows", 40, 10, 4},
                          {"many streams", 40, 5, 16},
                          {"a step takes most of the gap", 150, 5, 4},
                          {"a step takes the gap", 200, 5, 4},
                          {"a step takes more", 280, 20, 4}};
    for (const Pace& pace : paces) {
        SCOPED_TRACE(pace.name);
        Simulation alone;
        alone.step_ms = pace.step_ms;
        alone.row_ms = pace.row_ms;
        alone.run(400);
        EXPECT_LE(alone.longest_ms, 3000 + 1);
        const double whole_ms = pace.step_ms + pace.row_ms * kMaxChunk;
        EXPECT_GE(alone.longest_ms, 0.9 * std::min(3000.0, whole_ms))
            << "short steps read all weights too often";

        Simulation beside = alone;
        beside.n_streams = pace.n_streams;
        beside.longest_ms = 0;
        const double one_step = pace.step_ms + pace.row_ms * pace.n_streams;
        for (int i = 0; i < 20; ++i) {
            StepShape shape;
            shape.n_decode_rows = shape.n_decoding = pace.n_streams;
            beside.pacer.observe(shape, one_step);
        }
        beside.now_ms = beside.streams = beside.read = 0;
        beside.run(4000);
        EXPECT_LE(beside.longest_ms, 200 + one_step);
        const double throughput = beside.streams * one_step / beside.now_ms;
        EXPECT_GE(throughput, 0.60);
        const double slowdown = (alone.read / alone.now_ms) / (beside.read / beside.now_ms);
        EXPECT_LE(slowdown, 3.0);
    }
}

TEST(StepPacerTest, ScoreJobsHaveAPaceOfTheirOwn) {
    StepPacer pacer;
    for (int i = 0; i < 20; ++i) {
        StepShape prompt{0, 60, false, 1}, score{0, 6, true, 1};
        pacer.observe(prompt, 180);
        pacer.observe(score, 180);
    }
    for (int i = 0; i < 400; ++i) pacer.observe({1, 0, false, 1}, 50);  // what the streams are owed
    EXPECT_NEAR(static_cast<double>(pacer.limits(0, 1, 222ms).prompt), 66, 2);
    EXPECT_LE(pacer.limits(0, 1, 222ms).score, 8);
}

TEST(StepPacerTest, StreamsThatWaitForTheirSlotsWordAreNotOvertaken) {
    StepPacer pacer;
    StepShape decode{4, 0, false, 4}, read{0, 60, false, 4};
    for (int i = 0; i < 20; ++i) pacer.observe(decode, 50);
    EXPECT_GT(pacer.limits(0, 4, 200ms).prompt, 0);
    pacer.observe(read, 200);
    EXPECT_EQ(pacer.limits(0, 4, 200ms).prompt, 0);
    EXPECT_EQ(pacer.limits(0, 4, 200ms).score, 0);
    EXPECT_GT(pacer.limits(0, 0, 200ms).prompt, 0) << "nobody is left who decodes";
    for (int i = 0; i < 7; ++i) pacer.observe(decode, 50);
    EXPECT_GT(pacer.limits(4, 4, 200ms).prompt, 0) << "paid back";
}

}  // namespace
}  // namespace pantheon::actors
