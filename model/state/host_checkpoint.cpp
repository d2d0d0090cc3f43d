#include "model/state/host_checkpoint.h"

#include <algorithm>
#include <new>
#include <stdexcept>
#include <utility>

#include "kernels/quant/half_values.h"

namespace pantheon::model {
namespace {

std::vector<std::uint64_t> names_of(const std::vector<KvBlockPtr>& blocks) {
    std::vector<std::uint64_t> names;
    names.reserve(blocks.size());
    for (const KvBlockPtr& block : blocks) names.push_back(block->id());
    return names;
}

Error no_memory(std::int32_t length) {
    return Error(Code::resource_exhausted,
                 "no memory for a checkpoint of " + std::to_string(length) + " tokens");
}

std::string format_name(const StateShape& shape) {
    std::string name;
    switch (shape.kv_type) {
        case kernels::KvRowType::f32:
            name = "f32";
            break;
        case kernels::KvRowType::f16:
            name = "f16";
            break;
        case kernels::KvRowType::q8_0:
            name = "q8_0";
            break;
        case kernels::KvRowType::q4_0:
            name = "q4_0";
            break;
    }
    if (!shape.keeps_half()) return name;
    return name + " sink " + std::to_string(shape.kv_sink) + " window " + std::to_string(shape.kv_window);
}

template <class Values>
std::int64_t n_values(const Values& values) {
    return static_cast<std::int64_t>(values.size());
}

class HostCheckpointCodec final : public CheckpointCodec {
  public:
    HostCheckpointCodec(const StateShape& shape, ImageFormat format) : shape_(shape), format_(format) {}

    std::string layout() const override {
        const auto number = [](auto value) { return std::to_string(value) + " "; };
        return "host " + number(shape_.n_gdn_layers) + number(shape_.conv_floats) +
               number(shape_.gdn_floats) + number(shape_.n_attention_layers) + number(shape_.n_head_kv) +
               number(shape_.head_dim) + format_name(shape_) +
               (format_ == ImageFormat::f16 ? " states f16" : "");
    }

    std::uint64_t encoded_bytes(std::int32_t length) const override {
        const auto pages = static_cast<std::uint64_t>(shape_.n_attention_layers) *
                           static_cast<std::uint64_t>(shape_.n_head_kv);
        const HalfRows half = half_rows(length);
        const auto n_half = static_cast<std::uint64_t>(half.sink_end + length - half.window_begin);
        return shape_.image_bytes(format_) + 2 * pages *
                                                 (static_cast<std::uint64_t>(length) * row_bytes(shape_) +
                                                  n_half * row_bytes(shape_.in_half()));
    }

    Status encode(const Checkpoint& checkpoint, const Sink& sink) const override {
        const auto* host = dynamic_cast<const HostCheckpoint*>(&checkpoint);
        if (!host || !(host->shape == shape_) || host->format() != format_)
            return Error(Code::invalid_argument, "the checkpoint has another shape");
        const auto put_image = [&](const auto& image) -> Status {
            if (Status ok = sink(std::as_bytes(std::span(image.conv))); !ok) return ok;
            return sink(std::as_bytes(std::span(image.gdn)));
        };
        if (Status ok = host->half_image ? put_image(*host->half_image) : put_image(*host->image); !ok)
            return ok;
        return for_each_run(checkpoint.length(), [&](bool is_half, std::size_t page, int layer, int head,
                                                     std::size_t at, std::size_t n_bytes) {
            const auto& blocks = is_half ? host->blocks.halves : host->blocks.rows;
            return sink({std::as_const(*blocks[page]).page(layer, head) + at, n_bytes});
        });
    }

    Result<CheckpointPtr> decode(std::int32_t length, const Source& source) const override {
        try {
            if (format_ == ImageFormat::f16)
                return decode_with(std::make_shared<HalfImage>(shape_), length, source);
            return decode_with(std::make_shared<StateImage>(shape_), length, source);
        } catch (const std::bad_alloc&) {
            return no_memory(length);
        } catch (const std::length_error&) {
            return no_memory(length);
        }
    }

  private:
    template <class Image>
    Result<CheckpointPtr> decode_with(std::shared_ptr<Image> image, std::int32_t length,
                                      const Source& source) const {
        if (Status ok = source(std::as_writable_bytes(std::span(image->conv))); !ok)
            return std::move(ok).error();
        if (Status ok = source(std::as_writable_bytes(std::span(image->gdn))); !ok)
            return std::move(ok).error();
        KvPools pools(shape_);
        KvBlocks blocks;
        for (std::int64_t page = 0; page < n_kv_pages(length); ++page) {
            blocks.rows.push_back(pools.rows.allocate());
            if (!shape_.keeps_half()) continue;
            blocks.halves.push_back(shape_.keeps_half_of(page, length) ? pools.halves.allocate() : nullptr);
        }
        Status ok = for_each_run(length, [&](bool is_half, std::size_t page, int layer, int head,
                                             std::size_t at, std::size_t n_bytes) {
            const auto& rows = is_half ? blocks.halves : blocks.rows;
            return source({rows[page]->page(layer, head) + at, n_bytes});
        });
        if (!ok) return std::move(ok).error();
        return CheckpointPtr(
            std::make_shared<const HostCheckpoint>(shape_, length, std::move(image), std::move(blocks)));
    }

    static std::size_t row_bytes(const StateShape& shape) {
        return kernels::kv_row_bytes(shape.kv_type, shape.head_dim);
    }

    /// The f16 rows that go with a length: [0, sink_end) and [window_begin, length).
    struct HalfRows {
        std::int64_t sink_end, window_begin;
    };
    HalfRows half_rows(std::int32_t length) const {
        const std::int64_t sink_end = std::min<std::int64_t>(shape_.kv_sink, length);
        return {sink_end, std::max<std::int64_t>(sink_end, length - shape_.kv_window)};
    }

    /// Calls f(is_half, page, layer, head, offset in the page, bytes) for the K rows and for the V rows that
    /// a sequence of that length has in each page; then for its f16 rows.
    template <class F>
    Status for_each_run(std::int32_t length, const F& f) const {
        if (Status ok = for_each_page(false, 0, length, f); !ok) return ok;
        const HalfRows half = half_rows(length);
        if (Status ok = for_each_page(true, 0, half.sink_end, f); !ok) return ok;
        return for_each_page(true, half.window_begin, length, f);
    }
    template <class F>
    Status for_each_page(bool is_half, std::int64_t begin, std::int64_t end, const F& f) const {
        const std::size_t n_bytes = row_bytes(is_half ? shape_.in_half() : shape_);
        while (begin < end) {
            const std::int64_t page = begin / kernels::kKvPageRows;
            const std::int64_t n = std::min((page + 1) * kernels::kKvPageRows, end) - begin;
            const auto at = static_cast<std::size_t>(begin % kernels::kKvPageRows);
            for (int layer = 0; layer < shape_.n_attention_layers; ++layer)
                for (int head = 0; head < shape_.n_head_kv; ++head)
                    for (const std::size_t first : {at, at + kernels::kKvPageRows})
                        if (Status ok = f(is_half, static_cast<std::size_t>(page), layer, head,
                                          first * n_bytes, static_cast<std::size_t>(n) * n_bytes);
                            !ok)
                            return ok;
            begin += n;
        }
        return {};
    }

    StateShape shape_;
    ImageFormat format_;
};

}  // namespace

HostCheckpoint::HostCheckpoint(const StateShape& shape_, std::int32_t length,
                               std::shared_ptr<StateImage> image_, KvBlocks blocks_)
    : Checkpoint(length, names_of(blocks_.rows)),
      shape(shape_),
      image(std::move(image_)),
      blocks(std::move(blocks_)) {}

HostCheckpoint::HostCheckpoint(const StateShape& shape_, std::int32_t length,
                               std::shared_ptr<const HalfImage> image_, KvBlocks blocks_)
    : Checkpoint(length, names_of(blocks_.rows)),
      shape(shape_),
      half_image(std::move(image_)),
      blocks(std::move(blocks_)) {}

std::shared_ptr<const HalfImage> narrowed(const StateImage& image, const StateShape& shape,
                                          kernels::Exec& exec) {
    auto half = std::make_shared<HalfImage>(shape);
    kernels::narrow_to_half_cpu(exec, image.conv.data(), half->conv.data(), n_values(image.conv));
    kernels::narrow_to_half_cpu(exec, image.gdn.data(), half->gdn.data(), n_values(image.gdn));
    return half;
}

std::shared_ptr<StateImage> widened(const HalfImage& half, const StateShape& shape, kernels::Exec& exec) {
    auto image = std::make_shared<StateImage>(shape);
    kernels::widen_half_cpu(exec, half.conv.data(), image->conv.data(), n_values(half.conv));
    kernels::widen_half_cpu(exec, half.gdn.data(), image->gdn.data(), n_values(half.gdn));
    return image;
}

std::shared_ptr<const CheckpointCodec> host_checkpoint_codec(const StateShape& shape, ImageFormat format) {
    return std::make_shared<const HostCheckpointCodec>(shape, format);
}

}  // namespace pantheon::model
