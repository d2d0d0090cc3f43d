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

/// The mapping's pages leave this process; the file's cached content stays for whoever reads it next.
void release_pages(const std::byte* begin, std::int64_t n_bytes) {
    const auto page = static_cast<std::uintptr_t>(::sysconf(_SC_PAGESIZE));
    const std::uintptr_t first = (reinterpret_cast<std::uintptr_t>(begin) + page - 1) / page * page;
    const std::uintptr_t last =
        (reinterpret_cast<std::uintptr_t>(begin) + static_cast<std::uintptr_t>(n_bytes)) / page * page;
    if (first < last) ::madvise(reinterpret_cast<void*>(first), last - first, MADV_DONTNEED);
}

/// One matrix, or as many as there are experts.
struct Source {
    kernels::WeightMatrix first;
    std::int64_t n_matrices = 1;
    std::int64_t stride_bytes = 0;
};

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

class Packer {
  public:
    Packer(PackedWeights& packed, kernels::Exec& exec)
        : packed_(packed), exec_(exec), n_rows_(kernels::panel_rows(exec.isa())) {}

    void matrix(kernels::WeightMatrix& w) {
        if (!can_pack(w)) return;
        w.panels = pack({w, 1, 0});
        w.panel_rows = n_rows_;
    }
    void experts(kernels::ExpertMatrices& w) {
        if (!can_pack(w.first)) return;
        w.first.panels = pack({w.first, w.n_expert, w.expert_stride_bytes});
        w.first.panel_rows = n_rows_;
        w.expert_panel_bytes = panels_bytes(w.first, n_rows_);
    }

  private:
    bool can_pack(const kernels::WeightMatrix& w) const {
        return n_rows_ > 0 && kernels::has_panels(w.type, w.n_in);
    }

    const std::byte* pack(const Source& source) {
        const kernels::WeightMatrix& w = source.first;
        const kernels::PanelLayout layout = layout_of(w, n_rows_);
        const std::int64_t n_panels = layout.n_panels(w.n_out);
        const auto n_bytes = static_cast<std::size_t>(source.n_matrices * n_panels * layout.bytes);
        packed_.arenas_.emplace_back(n_bytes);
        packed_.n_bytes_ += n_bytes;
        std::byte* to = packed_.arenas_.back().data();
        exec_.team().parallel_for(source.n_matrices * n_panels, 8, [&](std::int64_t begin, std::int64_t end) {
            for (std::int64_t i = begin; i < end; ++i) {
                const std::int64_t first = i % n_panels * n_rows_;
                const int n = static_cast<int>(std::min<std::int64_t>(n_rows_, w.n_out - first));
                kernels::pack_panel(w.type, layout, w.row(first) + i / n_panels * source.stride_bytes,
                                    w.row_bytes, n, to + i * layout.bytes);
            }
        });
        for (std::int64_t i = 0; i < source.n_matrices; ++i)
            release_pages(w.data + i * source.stride_bytes, w.n_out * w.row_bytes);
        return to;
    }

    PackedWeights& packed_;
    kernels::Exec& exec_;
    int n_rows_;
};

Result<std::unique_ptr<const PackedWeights>> PackedWeights::pack(std::shared_ptr<const Weights> weights,
                                                                 Repack repack, kernels::Exec& exec) {
    try {
        std::unique_ptr<PackedWeights> packed(new PackedWeights);
        const std::shared_ptr<Weights> copy = weights->copy();
        Packer packer(*packed, exec);
        if (repack != Repack::none)
            copy->visit_products([&](kernels::WeightMatrix& w) { packer.matrix(w); },
                                 [&](kernels::ExpertMatrices& w) {
                                     if (repack == Repack::all) packer.experts(w);
                                 });
        packed->weights_ = copy;
        return std::unique_ptr<const PackedWeights>(std::move(packed));
    } catch (const std::bad_alloc&) {
        return Error(
            Code::resource_exhausted,
            "no memory for " + format_bytes(bytes_for(*weights, repack, exec.isa())) + " of packed weights");
    }
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

}  // namespace pantheon::model
