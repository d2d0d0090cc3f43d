// Finds tensors by name and checks shape and type; keeps the first error and remembers what was used.
#pragma once

#include <array>
#include <cstdint>
#include <initializer_list>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_set>
#include <vector>

#include "kernels/linear/weight_matrix.h"
#include "model/gguf/gguf_file.h"
#include "runtime/base/status.h"

namespace pantheon::model {

/// Slowest axis first, as in our own layouts: {n_out, n_in}, {n_expert, n_out, n_in}.
using TensorShape = std::initializer_list<std::int64_t>;

class TensorFinder {
  public:
    explicit TensorFinder(const GgufFile& file) : file_(file) {}

    /// Errors from here on start with this ("layer 7"); empty for none.
    void set_context(std::string context) { context_ = std::move(context); }

    /// The tensor, or nullptr with an error recorded. Trailing 1s of the shape in the file do not count.
    const GgufTensor* require(const std::string& name, TensorShape shape);
    bool contains(const std::string& name) const { return file_.find_tensor(name) != nullptr; }

    kernels::WeightMatrix matrix(const std::string& name, std::int64_t n_out, std::int64_t n_in);
    kernels::ExpertMatrices experts(const std::string& name, std::int64_t n_expert, std::int64_t n_out,
                                    std::int64_t n_in);
    /// Fills `values` later, in read_vectors(): nothing is allocated while tensors are still being checked.
    void vector(const std::string& name, TensorShape shape, std::vector<float>& values);
    void read_vectors();

    void fail(Code code, const std::string& name, const std::string& what);
    const std::optional<Error>& error() const { return error_; }

    bool is_used(const std::string& name) const { return used_.count(name) != 0; }
    std::uint64_t used_bytes() const { return used_bytes_; }
    std::int64_t max_row_elems() const { return max_row_elems_; }

  private:
    struct PendingVector {
        const GgufTensor* tensor;
        std::vector<float>* values;
    };
    const GgufFile& file_;
    std::string context_;
    std::optional<Error> error_;
    std::unordered_set<std::string> used_;
    std::uint64_t used_bytes_ = 0;
    std::int64_t max_row_elems_ = 0;
    std::vector<PendingVector> pending_;
};

}  // namespace pantheon::model
