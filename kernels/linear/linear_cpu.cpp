#include <algorithm>
#include <cassert>
#include <optional>

#include "kernels/cpu/columns.h"
#include "kernels/cpu/row_product.h"
#include "kernels/linear/linear.h"

namespace pantheon::kernels {
namespace {

// A thread that was held up by another process must not keep the others waiting for long.
constexpr int kItemsPerThread = 8;

/// One product, cut into items of some weight rows and all rows of x.
class Task {
  public:
    Task(Exec& exec, const WeightMatrix& w, ActivationRows& x, float* y, float* sum,
         std::int64_t n_items_wanted)
        : w_(w), n_rows_(x.n_rows()), columns_(exec, x, w.type), product_(exec, w), y_(y), sum_(sum) {
        rows_per_item_ = product_.rows_per_item(w, n_rows_, n_items_wanted);
        n_items_ = (w.n_out + rows_per_item_ - 1) / rows_per_item_;
    }
    std::int64_t n_items() const { return n_items_; }

    void run(std::int64_t item) const {
        const std::int64_t first = item * rows_per_item_;
        const std::int64_t n_out = std::min(rows_per_item_, w_.n_out - first);
        for (int r = 0; r < n_rows_; r += product_.max_columns()) {
            const int n = std::min(product_.max_columns(), n_rows_ - r);
            Column group[kMaxColumns];
            float* out[kMaxColumns];
            for (int c = 0; c < n; ++c) {
                group[c] = columns_.column(r + c);
                out[c] = y_ + static_cast<std::int64_t>(r + c) * w_.n_out + first;
            }
            product_.run(w_, first, n_out, group, n, out);
            if (!sum_) continue;
            for (int c = 0; c < n; ++c) {
                float* sum = sum_ + static_cast<std::int64_t>(r + c) * w_.n_out + first;
                for (std::int64_t i = 0; i < n_out; ++i) sum[i] += out[c][i];
            }
        }
    }

  private:
    const WeightMatrix& w_;
    int n_rows_;
    Columns columns_;
    RowProduct product_;
    float *y_, *sum_;
    std::int64_t rows_per_item_ = 0, n_items_ = 0;
};

}  // namespace

void linear_all_cpu(Exec& exec, const Product* products, int n_products, ActivationRows& x) {
    assert(n_products <= kMaxProducts);
    if (x.n_rows() == 0) return;
    std::int64_t n_out = 0, n_items = 0;
    for (int i = 0; i < n_products; ++i) n_out += products[i].w->n_out;
    std::optional<Task> tasks[kMaxProducts];
    for (int i = 0; i < n_products; ++i) {
        const WeightMatrix& w = *products[i].w;
        const std::int64_t share = kItemsPerThread * exec.team().n_threads() * w.n_out / n_out;
        tasks[i].emplace(exec, w, x, products[i].y, nullptr, std::max<std::int64_t>(share, 1));
        n_items += tasks[i]->n_items();
    }
    exec.team().parallel_for(n_items, 1, [&](std::int64_t begin, std::int64_t end) {
        for (; begin < end; ++begin) {
            std::int64_t item = begin;
            int i = 0;
            for (; item >= tasks[i]->n_items(); ++i) item -= tasks[i]->n_items();
            tasks[i]->run(item);
        }
    });
}

void linear_cpu(Exec& exec, const WeightMatrix& w, ActivationRows& x, float* y) {
    const Product product{&w, y};
    linear_all_cpu(exec, &product, 1, x);
}

void linear_add_cpu(Exec& exec, const WeightMatrix& w, ActivationRows& x, float* y, float* sum) {
    if (x.n_rows() == 0) return;
    const Task task(exec, w, x, y, sum, kItemsPerThread * exec.team().n_threads());
    exec.team().parallel_for(task.n_items(), 1, [&](std::int64_t begin, std::int64_t end) {
        for (; begin < end; ++begin) task.run(begin);
    });
}

}  // namespace pantheon::kernels
