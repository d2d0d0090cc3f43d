#include "model/qwen35moe/packed_weights.h"

#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <new>
#include <string>
#include <utility>

#include "kernels/linear/weight_panels.h"
#include "runtime/base/units.h"

namespace pantheon::model {
namespace {

constexpr std::size_t kHugePage = std::size_t{2} << 20;
constexpr std::int64_t kSliceBytes = std::int64_t{4} << 20;  // packed between two looks at the clock

/// The mapping's pages leave this process; the file's cached content stays for whoever reads it next.
void release_pages(const std::byte* begin, std::int64_t n_bytes) {
    const auto page = static_cast<std::uintptr_t>(::sysconf(_SC_PAGESIZE));
    const std::uintptr_t first = (reinterpret_cast<std::uintptr_t>(begin) + page - 1) / page * page;
    const std::uintptr_t last =
        (reinterpret_cast<std::uintptr_t>(begin) + static_cast<std::uintptr_t>(n_bytes)) / page * page;
    if (first < last) ::madvise(reinterpret_cast<void*>(first), last - first, MADV_DONTNEED);
}

kernels::PanelLayout layout_of(const kernels::WeightMatrix& w, int n_rows) {
    return kernels::panel_layout(w.type, n_rows, w.n_in);
}
std::int64_t panels_bytes(const kernels::WeightMatrix& w, int n_rows) {
    const kernels::PanelLayout layout = layout_of(w, n_rows);
    return layout.n_panels(w.n_out) * layout.bytes;
}

}  // namespace

PackedWeights::Arena::Arena(std::size_t n_bytes)
    : n_bytes_((n_bytes + kHugePage - 1) / kHugePage * kHugePage) {
    void* address =
        ::mmap(nullptr, n_bytes_, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (address == MAP_FAILED) throw std::bad_alloc();
    ::madvise(address, n_bytes_, MADV_HUGEPAGE);
    data_ = static_cast<std::byte*>(address);
}

PackedWeights::Arena::Arena(Arena&& other) noexcept
    : data_(std::exchange(other.data_, nullptr)), n_bytes_(other.n_bytes_) {}

PackedWeights::Arena::~Arena() {
    if (data_) ::munmap(data_, n_bytes_);
}

PackedWeights::PackedWeights(const std::shared_ptr<const Weights>& weights, Repack repack,
                             kernels::Exec& exec)
    : weights_(weights->copy()), exec_(exec), n_rows_(kernels::panel_rows(exec.isa())) {
    if (n_rows_ == 0 || repack == Repack::none) return;
    std::vector<Source> experts;
    weights_->visit_products(
        [&](kernels::WeightMatrix& w) {
            if (kernels::has_panels(w.type, w.n_in)) sources_.push_back({&w, nullptr});
        },
        [&](kernels::ExpertMatrices& w) {
            if (repack == Repack::all && kernels::has_panels(w.first.type, w.first.n_in))
                experts.push_back({&w.first, &w});
        });
    sources_.insert(sources_.end(), experts.begin(), experts.end());
}

Result<bool> PackedWeights::pack_some(std::chrono::microseconds budget) {
    const auto start = std::chrono::steady_clock::now();
    while (next_ < sources_.size()) {
        const Source& source = sources_[next_];
        const kernels::WeightMatrix& w = *source.matrix;
        const std::int64_t n_panels = layout_of(w, n_rows_).n_panels(w.n_out) * source.n_matrices();
        if (next_panel_ == 0) {
            const auto n_bytes = static_cast<std::uint64_t>(source.n_matrices() * panels_bytes(w, n_rows_));
            try {
                arenas_.emplace_back(n_bytes);
            } catch (const std::bad_alloc&) {
                return Error(Code::resource_exhausted, "no memory for " + format_bytes(n_bytes) +
                                                           " of packed weights after " +
                                                           format_bytes(n_bytes_));
            }
            n_bytes_ += n_bytes;
        }
        const std::int64_t n_slice = std::max<std::int64_t>(1, kSliceBytes / (n_rows_ * w.row_bytes));
        pack_panels(std::min(n_slice, n_panels - next_panel_));
        if (next_panel_ == n_panels) finish(source);
        if (std::chrono::steady_clock::now() - start >= budget) break;
    }
    return next_ < sources_.size();
}

/// The next n panels of the source in hand.
void PackedWeights::pack_panels(std::int64_t n) {
    const Source& source = sources_[next_];
    const kernels::WeightMatrix& w = *source.matrix;
    const kernels::PanelLayout layout = layout_of(w, n_rows_);
    const std::int64_t n_panels = layout.n_panels(w.n_out);
    std::byte* to = arenas_.back().data();
    exec_.team().parallel_for(n, 8, [&](std::int64_t begin, std::int64_t end) {
        for (std::int64_t i = next_panel_ + begin; i < next_panel_ + end; ++i) {
            const std::int64_t first = i % n_panels * n_rows_;
            const int n_here = static_cast<int>(std::min<std::int64_t>(n_rows_, w.n_out - first));
            kernels::pack_panel(w.type, layout, w.row(first) + i / n_panels * source.stride_bytes(),
                                w.row_bytes, n_here, to + i * layout.bytes);
        }
    });
    next_panel_ += n;
}

/// All panels are there: products read them from now on.
void PackedWeights::finish(const Source& source) {
    kernels::WeightMatrix& w = *source.matrix;
    w.panels = arenas_.back().data();
    w.panel_rows = n_rows_;
    if (source.experts) source.experts->expert_panel_bytes = panels_bytes(w, n_rows_);
    for (std::int64_t i = 0; i < source.n_matrices(); ++i)
        release_pages(w.data + i * source.stride_bytes(), w.n_out * w.row_bytes);
    ++next_;
    next_panel_ = 0;
}

std::uint64_t PackedWeights::bytes_for(const Weights& weights, Repack repack, kernels::CpuIsa isa) {
    const int n_rows = kernels::panel_rows(isa);
    if (n_rows == 0 || repack == Repack::none) return 0;
    std::int64_t n_bytes = 0;
    const auto add = [&](const kernels::WeightMatrix& w, std::int64_t n) {
        if (kernels::has_panels(w.type, w.n_in)) n_bytes += n * panels_bytes(w, n_rows);
    };
    weights.copy()->visit_products([&](const kernels::WeightMatrix& w) { add(w, 1); },
                                   [&](const kernels::ExpertMatrices& w) {
                                       if (repack == Repack::all) add(w.first, w.n_expert);
                                   });
    return static_cast<std::uint64_t>(n_bytes);
}

std::uint64_t repack_bytes(const Weights& weights, Backend backend, Repack repack) {
    return backend == Backend::cpu ? PackedWeights::bytes_for(weights, repack, kernels::host_cpu_isa()) : 0;
}

Repack repack_that_fits(const Weights& weights, Backend backend, std::int64_t free_bytes) {
    constexpr std::int64_t kForSequences = std::int64_t{2} << 30;
    for (const Repack repack : {Repack::all, Repack::dense}) {
        const auto n_bytes = static_cast<std::int64_t>(repack_bytes(weights, backend, repack));
        if (n_bytes > 0 && n_bytes + kForSequences <= free_bytes) return repack;
    }
    return Repack::none;
}

}  // namespace pantheon::model
