#include "kernels/moe/expert_ffn.h"

#include <memory>

#include "kernels/linear/add_rows.h"
#include "kernels/linear/linear.h"
#include "kernels/moe/moe_combine.h"
#include "kernels/moe/swiglu.h"
#include "tests/kernels/activations.h"
#include "tests/kernels/kernel_test.h"
#include "tests/kernels/weight_bytes.h"

namespace pantheon::kernels::test {
namespace {

std::size_t size(std::int64_t n) {
    return static_cast<std::size_t>(n);
}

struct FfnCase {
    const char* name;
    WeightType gate, down;
    std::int64_t n_embd, n_ff, n_ff_shared;
    int n_rows;
};
const FfnCase kCases[] = {
    {"decode", WeightType::q4_k, WeightType::q6_k, 256, 256, 256, 1},
    {"several_blocks", WeightType::q4_k, WeightType::q4_k, 512, 512, 256, 3},
    {"more_rows_than_a_task_has", WeightType::q8_0, WeightType::q8_0, 64, 96, 32, 70},
    {"float", WeightType::f32, WeightType::bf16, 24, 40, 56, 5},
    {"mixed_widths", WeightType::q4_0, WeightType::q3_k, 96, 256, 512, 9},
};
constexpr int kExperts = 5, kUsed = 2;

/// The experts as they lie in a file, and what the two passes work with.
class Ffn {
  public:
    explicit Ffn(const FfnCase& c)
        : c_(c),
          gate_bytes_(c.gate, c.n_embd, kExperts * c.n_ff, 1),
          up_bytes_(c.gate, c.n_embd, kExperts * c.n_ff, 2),
          down_bytes_(c.down, c.n_ff, kExperts * c.n_embd, 3),
          shared_gate_bytes_(c.gate, c.n_embd, c.n_ff_shared, 4),
          shared_up_bytes_(c.gate, c.n_embd, c.n_ff_shared, 5),
          shared_down_bytes_(c.down, c.n_ff_shared, c.n_embd, 6) {
        gate = experts(gate_bytes_, c.n_ff), up = experts(up_bytes_, c.n_ff),
        down = experts(down_bytes_, c.n_embd);
        shared_gate = shared_gate_bytes_.matrix(), shared_up = shared_up_bytes_.matrix();
        shared_down = shared_down_bytes_.matrix();
        for (int p = 0; p < c.n_rows * kUsed; ++p) ids.push_back((p * 7 + p / 3) % kExperts);
        active.resize(kExperts), begin.resize(kExperts + 1), pairs.resize(ids.size());
        groups = group_by_expert(ids.data(), static_cast<int>(ids.size()), kExperts, active.data(),
                                 begin.data(), pairs.data());
        x = random_values(size(c.n_rows * c.n_embd), 9);
        residual = random_values(x.size(), 10);
        weights = random_values(ids.size(), 11, 0, 1);
        shared_logit = random_values(size(c.n_rows), 12, -3, 3);
    }

    ExpertMatrices gate, up, down;
    WeightMatrix shared_gate, shared_up, shared_down;
    ExpertGroups groups;
    std::vector<std::int32_t> ids, active, begin, pairs;
    std::vector<float> x, residual, weights, shared_logit;

    /// The two passes.
    std::vector<float> fused(Exec& exec, ExpertHidden* hidden_op, ExpertOutput* output_op) const {
        std::vector<ExpertTask> tasks(size(max_expert_tasks(c_.n_rows, kUsed, kExperts)));
        const int n_tasks = plan_expert_tasks(groups, c_.n_rows, tasks.data());
        EXPECT_LE(size(n_tasks), tasks.size());
        const std::unique_ptr<std::atomic<std::int32_t>[]> counters(
            new std::atomic<std::int32_t>[expert_counters(n_tasks, c_.n_embd,
                                                          std::max(c_.n_ff, c_.n_ff_shared))]);
        const ExpertTasks planned{tasks.data(), n_tasks, counters.get()};
        ExpertFfn ffn;
        ffn.gate = &gate, ffn.up = &up, ffn.down = &down;
        ffn.shared_gate = &shared_gate, ffn.shared_up = &shared_up, ffn.shared_down = &shared_down;
        ffn.pairs = groups.pairs, ffn.n_rows = c_.n_rows, ffn.n_used = kUsed;
        Input in(x, c_.n_embd);
        std::vector<float> nan_pairs(ids.size() * size(c_.n_ff), std::numeric_limits<float>::quiet_NaN());
        std::vector<float> nan_rows(size(c_.n_rows * c_.n_ff_shared),
                                    std::numeric_limits<float>::quiet_NaN());
        Input hidden(nan_pairs, c_.n_ff), shared_hidden(nan_rows, c_.n_ff_shared);
        std::vector<float> routed_up(nan_pairs.size()), shared_up_work(nan_rows.size());
        ExpertHiddenOut out;
        out.hidden = hidden.values.data(), out.up = routed_up.data();
        out.shared_hidden = shared_hidden.values.data(), out.shared_up = shared_up_work.data();
        out.routed = &hidden.rows, out.shared = &shared_hidden.rows;
        hidden_op(exec, ffn, groups, planned, in.rows, out);

        std::vector<float> down_work(ids.size() * size(c_.n_embd)), shared_work(x.size()), mix(x.size());
        ExpertOutputArgs args;
        args.hidden = &hidden.rows, args.shared_hidden = &shared_hidden.rows;
        args.weights = weights.data(), args.shared_gate = shared_logit.data();
        args.down = down_work.data(), args.shared = shared_work.data(), args.mix = mix.data();
        Guarded sum(residual);
        output_op(exec, ffn, groups, planned, args, sum.data());
        return sum.vector();
    }

    std::vector<float> one_op_at_a_time_cpu(Exec& exec) const {
        Input in(x, c_.n_embd);
        std::vector<float> g(ids.size() * size(c_.n_ff)), u(g.size()), d(ids.size() * size(c_.n_embd));
        expert_linear_cpu(exec, gate, groups, in.rows, kUsed, g.data());
        expert_linear_cpu(exec, up, groups, in.rows, kUsed, u.data());
        swiglu_cpu(exec, g.data(), u.data(), g.data(), static_cast<std::int64_t>(g.size()));
        Input hidden(g, c_.n_ff);
        expert_linear_cpu(exec, down, groups, hidden.rows, 1, d.data());
        std::vector<float> sg(size(c_.n_rows * c_.n_ff_shared)), su(sg.size()), sd(x.size()), mix(x.size());
        linear_cpu(exec, shared_gate, in.rows, sg.data());
        linear_cpu(exec, shared_up, in.rows, su.data());
        swiglu_cpu(exec, sg.data(), su.data(), sg.data(), static_cast<std::int64_t>(sg.size()));
        Input shared_hidden(sg, c_.n_ff_shared);
        linear_cpu(exec, shared_down, shared_hidden.rows, sd.data());
        moe_combine_cpu(exec, d.data(), weights.data(), sd.data(), shared_logit.data(), mix.data(), c_.n_rows,
                        kUsed, static_cast<int>(c_.n_embd));
        std::vector<float> sum = residual;
        add_rows_ref(exec, sum.data(), mix.data(), static_cast<std::int64_t>(sum.size()));
        return sum;
    }

  private:
    ExpertMatrices experts(const WeightBytes& bytes, std::int64_t n_out) const {
        ExpertMatrices matrices{bytes.matrix(), kExperts, 0};
        matrices.first.n_out = n_out;
        matrices.expert_stride_bytes = n_out * matrices.first.row_bytes;
        return matrices;
    }
    const FfnCase& c_;
    WeightBytes gate_bytes_, up_bytes_, down_bytes_, shared_gate_bytes_, shared_up_bytes_, shared_down_bytes_;
};

TEST(ExpertTasksTest, CoverEveryPairAndEveryRowOnce) {
    for (const int n_rows : {1, 64, 65, 200}) {
        std::vector<std::int32_t> ids, active(3), begin(4), pairs(size(2 * n_rows));
        for (int p = 0; p < 2 * n_rows; ++p) ids.push_back(p % 2 * (1 + p % 3 % 2));
        const ExpertGroups groups =
            group_by_expert(ids.data(), 2 * n_rows, 3, active.data(), begin.data(), pairs.data());
        std::vector<ExpertTask> tasks(size(max_expert_tasks(n_rows, 2, 3)));
        tasks.resize(size(plan_expert_tasks(groups, n_rows, tasks.data())));
        std::vector<int> n_pairs(ids.size(), 0), n_shared(size(n_rows), 0);
        for (const ExpertTask& task : tasks) {
            ASSERT_LT(task.begin, task.end);
            ASSERT_LE(task.end - task.begin, ExpertTask::kMaxRows);
            for (int i = task.begin; i < task.end; ++i) {
                if (task.expert == ExpertTask::kShared) {
                    ++n_shared[size(i)];
                    continue;
                }
                EXPECT_EQ(ids[size(pairs[size(i)])], task.expert);
                ++n_pairs[size(pairs[size(i)])];
            }
        }
        EXPECT_EQ(n_pairs, std::vector<int>(n_pairs.size(), 1));
        EXPECT_EQ(n_shared, std::vector<int>(n_shared.size(), 1));
    }
}

TEST(ExpertFfnTest, GivesTheBitsOfItsOpsOneAtATime) {
    for (const CpuIsa isa : cpu_isas())
        for (const FfnCase& c : kCases) {
            SCOPED_TRACE(std::string(cpu_isa_name(isa)) + " " + c.name);
            const Ffn ffn(c);
            for (const int n_threads : {1, 2, 3}) {
                ThreadTeam team(n_threads);
                Exec exec(team, isa);
                EXPECT_EQ(ffn.fused(exec, expert_hidden_cpu, expert_output_cpu),
                          ffn.one_op_at_a_time_cpu(exec));
            }
        }
}

TEST(ExpertFfnTest, FloatWeightsComeCloseToTheReference) {
    const Ffn ffn(kCases[3]);
    ThreadTeam team(2);
    Exec exec(team);
    exec.reserve_scratch(1 << 16);
    expect_close(ffn.fused(exec, expert_hidden_cpu, expert_output_cpu),
                 ffn.fused(exec, expert_hidden_ref, expert_output_ref), 1e-5);
}

TEST(LinearAllTest, GivesTheBitsOfSingleProductsAndAddsToASum) {
    for (const CpuIsa isa : cpu_isas())
        for (const int n_rows : {1, 3, 9}) {
            const WeightBytes a(WeightType::q4_k, 256, 300, 1), b(WeightType::f32, 256, 7, 2),
                c(WeightType::q8_0, 256, 64, 3);
            const WeightMatrix w[] = {a.matrix(), b.matrix(), c.matrix()};
            const auto x = random_values(size(n_rows * 256), 4);
            for (const int n_threads : {1, 3}) {
                ThreadTeam team(n_threads);
                Exec exec(team, isa);
                Input in(x, 256), again(x, 256);
                std::vector<float> all[3], one[3];
                Product products[3];
                for (std::size_t i = 0; i < 3; ++i) {
                    all[i].resize(size(n_rows * w[i].n_out));
                    one[i] = all[i];
                    products[i] = {&w[i], all[i].data()};
                    linear_cpu(exec, w[i], again.rows, one[i].data());
                }
                linear_all_cpu(exec, products, 3, in.rows);
                for (std::size_t i = 0; i < 3; ++i) {
                    EXPECT_EQ(all[i], one[i]);
                    const auto base = random_values(one[i].size(), 5);
                    std::vector<float> sum = base, want = base;
                    linear_add_cpu(exec, w[i], in.rows, all[i].data(), sum.data());
                    add_rows_ref(exec, want.data(), one[i].data(), static_cast<std::int64_t>(want.size()));
                    EXPECT_EQ(sum, want);
                }
            }
        }
}

}  // namespace
}  // namespace pantheon::kernels::test
