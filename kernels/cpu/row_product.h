// Some rows of a matrix times some columns, from the packed panels where the matrix has them for this
// instruction set, else from its rows. The results have the same bits either way.
#pragma once

#include <algorithm>

#include "kernels/cpu/leaves.h"
#include "kernels/exec/exec.h"
#include "kernels/linear/weight_matrix.h"

namespace pantheon::kernels {

class RowProduct {
  public:
    /// For matrices of w's type and shape, which all have panels or all have none.
    RowProduct(const Exec& exec, const WeightMatrix& w) {
        const Leaves& leaves = cpu_leaves(exec.isa());
        rows_ = leaves.dot_rows(w.type);
        if (!w.panels || w.panel_rows != panel_rows(exec.isa())) return;
        panels_ = leaves.dot_panels(w.type);
        layout_ = panel_layout(w.type, w.panel_rows, w.n_in);
    }

    /// How many rows of w a thread should take at once, a multiple of any panel. Few columns: long stretches,
    /// because what counts then is memory and a new stretch costs a few misses. Many columns: so few rows
    /// that they stay in the thread's cache for all columns.
    std::int64_t rows_per_item(const WeightMatrix& w, std::int64_t n_columns,
                               std::int64_t n_items_wanted) const {
        constexpr std::int64_t kFewest = 32, kLongBytes = 160 * 1024;
        if (n_columns > max_columns()) return kFewest;
        const std::int64_t long_rows = kLongBytes / w.row_bytes;
        const std::int64_t fair = w.n_out / n_items_wanted;
        return std::max(kFewest, std::min(long_rows, fair) / kFewest * kFewest);
    }
    int max_columns() const { return panels_ ? kMaxPanelColumns : kMaxColumns; }

    /// y[c][i] = row first + i · column c for n_rows rows and up to max_columns() columns.
    void run(const WeightMatrix& w, std::int64_t first, std::int64_t n_rows, const Column* columns,
             int n_columns, float* const* y) const {
        if (panels_)
            panels_(w.panels + first / layout_.n_rows * layout_.bytes, layout_, n_rows, columns, n_columns,
                    y);
        else
            rows_(w.row(first), w.row_bytes, static_cast<int>(n_rows), w.n_in, columns, n_columns, y);
    }

  private:
    DotRows* rows_ = nullptr;
    DotPanels* panels_ = nullptr;
    PanelLayout layout_;
};

}  // namespace pantheon::kernels
