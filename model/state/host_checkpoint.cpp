#include "model/state/host_checkpoint.h"

#include <algorithm>
#include <new>
#include <stdexcept>
#include <utility>

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

class HostCheckpointCodec final : public CheckpointCodec {
  public:
    explicit HostCheckpointCodec(const StateShape& shape) : shape_(shape) {}

    std::string layout() const override {
        const auto number = [](auto value) { return std::to_string(value) + " "; };
        return "host " + number(shape_.n_gdn_layers) + number(shape_.conv_floats) +
               number(shape_.gdn_floats) + number(shape_.n_attention_layers) + number(shape_.n_head_kv) +
               number(shape_.head_dim) + (shape_.kv_type == kernels::KvRowType::f32 ? "f32" : "f16");
    }

    std::uint64_t encoded_bytes(std::int32_t length) const override {
        return shape_.image_bytes() + static_cast<std::uint64_t>(length) * 2 *
                                          static_cast<std::uint64_t>(shape_.n_attention_layers) *
                                          static_cast<std::uint64_t>(shape_.n_head_kv) * row_bytes();
    }

    Status encode(const Checkpoint& checkpoint, const Sink& sink) const override {
        const auto* host = dynamic_cast<const HostCheckpoint*>(&checkpoint);
        if (!host || !(host->shape == shape_))
            return Error(Code::invalid_argument, "the checkpoint has another shape");
        if (Status ok = sink(std::as_bytes(std::span(host->image->conv))); !ok) return ok;
        if (Status ok = sink(std::as_bytes(std::span(host->image->gdn))); !ok) return ok;
        for (std::size_t i = 0; i < host->blocks.size(); ++i) {
            const Status ok = for_each_run(
                i, checkpoint.length(), [&](int layer, int head, std::size_t at, std::size_t n_bytes) {
                    return sink({std::as_const(*host->blocks[i]).page(layer, head) + at, n_bytes});
                });
            if (!ok) return ok;
        }
        return {};
    }

    Result<CheckpointPtr> decode(std::int32_t length, const Source& source) const override {
        try {
            auto image = std::make_shared<StateImage>(shape_);
            if (Status ok = source(std::as_writable_bytes(std::span(image->conv))); !ok)
                return std::move(ok).error();
            if (Status ok = source(std::as_writable_bytes(std::span(image->gdn))); !ok)
                return std::move(ok).error();
            KvPool pool(shape_);
            std::vector<KvBlockPtr> blocks;
            for (std::size_t i = 0; i < static_cast<std::size_t>(n_kv_pages(length)); ++i) {
                blocks.push_back(pool.allocate());
                Status ok =
                    for_each_run(i, length, [&](int layer, int head, std::size_t at, std::size_t n_bytes) {
                        return source({blocks.back()->page(layer, head) + at, n_bytes});
                    });
                if (!ok) return std::move(ok).error();
            }
            return CheckpointPtr(
                std::make_shared<const HostCheckpoint>(shape_, length, std::move(image), std::move(blocks)));
        } catch (const std::bad_alloc&) {
            return no_memory(length);
        } catch (const std::length_error&) {
            return no_memory(length);
        }
    }

  private:
    std::size_t row_bytes() const { return kernels::kv_row_bytes(shape_.kv_type, shape_.head_dim); }

    /// Calls f(layer, head, offset in the page, bytes) for the K rows and for the V rows that block i of a
    /// sequence of that length has in each page.
    template <class F>
    Status for_each_run(std::size_t i, std::int32_t length, const F& f) const {
        const std::int64_t first = static_cast<std::int64_t>(i) * kernels::kKvPageRows;
        const auto n_rows =
            static_cast<std::size_t>(std::min<std::int64_t>(kernels::kKvPageRows, length - first));
        const std::size_t v_offset = static_cast<std::size_t>(kernels::kKvPageRows) * row_bytes();
        for (int layer = 0; layer < shape_.n_attention_layers; ++layer)
            for (int head = 0; head < shape_.n_head_kv; ++head)
                for (const std::size_t at : {std::size_t{0}, v_offset})
                    if (Status ok = f(layer, head, at, n_rows * row_bytes()); !ok) return ok;
        return {};
    }

    StateShape shape_;
};

}  // namespace

HostCheckpoint::HostCheckpoint(const StateShape& shape_, std::int32_t length,
                               std::shared_ptr<StateImage> image_, std::vector<KvBlockPtr> blocks_)
    : Checkpoint(length, names_of(blocks_)),
      shape(shape_),
      image(std::move(image_)),
      blocks(std::move(blocks_)) {}

std::shared_ptr<const CheckpointCodec> host_checkpoint_codec(const StateShape& shape) {
    return std::make_shared<const HostCheckpointCodec>(shape);
}

}  // namespace pantheon::model
