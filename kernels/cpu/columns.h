// The rows of an input as the columns of a product, for either kind of weight.
#pragma once

#include "kernels/cpu/leaves.h"
#include "kernels/linear/activation_rows.h"

namespace pantheon::kernels {

class Columns {
  public:
    /// Quantises the rows if the type wants that and nobody has yet. x must outlive this object.
    Columns(Exec& exec, ActivationRows& x, WeightType type)
        : x_(x), quantised_(quant_width(type) == 0 ? nullptr : &x.quantised(exec, quant_width(type))) {}

    Column column(std::int64_t row) const {
        if (!quantised_) return {x_.row(row), nullptr, nullptr, nullptr};
        return {nullptr, quantised_->q(row), quantised_->d(row), quantised_->sums(row)};
    }

  private:
    const ActivationRows& x_;
    const QuantisedRows* quantised_;
};

}  // namespace pantheon::kernels
