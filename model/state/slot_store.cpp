#include "model/state/slot_store.h"

#include <cassert>
#include <new>
#include <stdexcept>
#include <string>

#include "model/state/host_checkpoint.h"
#include "runtime/base/units.h"

namespace pantheon::model {
namespace {

std::string slot_name(SlotId slot) {
    return "slot " + std::to_string(slot.value);
}

Error out_of_range(SlotId slot, int n_slots) {
    return Error(Code::invalid_argument,
                 slot_name(slot) + ": there are " + std::to_string(n_slots) + " slots");
}

Error no_memory_for_state(SlotId slot) {
    return Error(Code::resource_exhausted, slot_name(slot) + ": no memory for the state of a sequence");
}

}  // namespace

SlotStore::SlotStore(const StateShape& shape, int n_slots, int n_ctx, std::optional<int> slide_sink,
                     const SlotStoreOptions& options)
    : shape_(shape),
      n_ctx_(n_ctx),
      pool_bytes_(options.kv_pool_bytes),
      exec_(options.exec),
      pools_(std::make_shared<KvPools>(shape)),
      sequences_(static_cast<std::size_t>(n_slots)) {
    assert(n_slots >= 1 && n_ctx >= 1);
    if (options.other && !(*options.other == shape)) other_pools_ = std::make_shared<KvPools>(*options.other);
    if (!slide_sink) return;
    assert(*slide_sink >= 0 && *slide_sink < n_ctx && (!shape.keeps_half() || *slide_sink == shape.kv_sink));
    slide_ = {*slide_sink, n_ctx - *slide_sink};
}

Status SlotStore::check_free(SlotId slot) const {
    if (!is_valid(slot)) return out_of_range(slot, n_slots());
    if (is_bound(slot)) return Error(Code::failed_precondition, slot_name(slot) + ": is bound");
    return {};
}

Status SlotStore::bind(SlotId slot, bool is_other) {
    if (Status ok = check_free(slot); !ok) return ok;
    const auto& pools = is_other && other_pools_ ? other_pools_ : pools_;
    try {
        sequences_[index(slot)].reset(new Sequence{0, std::make_shared<StateImage>(shape_),
                                                   std::make_unique<KvSequence>(pools, KvBlocks(), slide_)});
    } catch (const std::bad_alloc&) {
        return no_memory_for_state(slot);
    } catch (const std::length_error&) {
        return no_memory_for_state(slot);
    }
    return {};
}

Status SlotStore::restore(SlotId slot, const Checkpoint& from) {
    if (Status ok = check_free(slot); !ok) return ok;
    const auto* state = dynamic_cast<const HostCheckpoint*>(&from);
    const auto& pools =
        state && other_pools_ && state->shape == other_pools_->shape() ? other_pools_ : pools_;
    const bool is_known = state && (state->format() == ImageFormat::f32 || exec_);
    if (!is_known || !(state->shape == pools->shape()) || from.length() > n_ctx_)
        return Error(Code::invalid_argument, slot_name(slot) + ": the checkpoint has another shape");
    try {
        auto image = state->half_image ? widened(*state->half_image, shape_, *exec_) : state->image;
        sequences_[index(slot)].reset(new Sequence{
            from.length(), std::move(image), std::make_unique<KvSequence>(pools, state->blocks, slide_)});
    } catch (const std::bad_alloc&) {
        return no_memory_for_state(slot);
    }
    return {};
}

Result<CheckpointPtr> SlotStore::snapshot(SlotId slot, ImageFormat format) const {
    if (!is_bound(slot)) return Error(Code::failed_precondition, slot_name(slot) + ": is not bound");
    const Sequence& sequence = at(slot);
    if (sequence.length > n_ctx_)
        return Error(Code::failed_precondition, slot_name(slot) + ": its first rows are gone");
    if (format == ImageFormat::f16 && !exec_)
        return Error(Code::invalid_argument, slot_name(slot) + ": this store keeps no images in f16");
    try {
        const auto keep = [&](auto image) {
            return CheckpointPtr(std::make_shared<const HostCheckpoint>(sequence.kv->shape(), sequence.length,
                                                                        std::move(image),
                                                                        sequence.kv->share(sequence.length)));
        };
        if (format == ImageFormat::f16) return keep(narrowed(*sequence.image, shape_, *exec_));
        return keep(sequence.image);
    } catch (const std::bad_alloc&) {
        return no_memory_for_state(slot);
    }
}

Status SlotStore::convert(SlotId slot) {
    if (!is_bound(slot)) return Error(Code::failed_precondition, slot_name(slot) + ": is not bound");
    Sequence& sequence = at(slot);
    if (!other_pools_ || sequence.kv->shape() == other_pools_->shape()) return {};
    try {
        sequence.kv = sequence.kv->converted(other_pools_, sequence.length);
    } catch (const std::bad_alloc&) {
        return no_memory_for_state(slot);
    }
    return {};
}

void SlotStore::release(SlotId slot) {
    if (is_valid(slot)) sequences_[index(slot)].reset();
}

Status SlotStore::move(SlotId from, SlotId to) {
    if (!is_valid(from)) return out_of_range(from, n_slots());
    if (!is_valid(to)) return out_of_range(to, n_slots());
    if (!is_bound(from)) return Error(Code::failed_precondition, slot_name(from) + ": is not bound");
    if (is_bound(to)) return Error(Code::failed_precondition, slot_name(to) + ": is bound");
    sequences_[index(to)] = std::move(sequences_[index(from)]);
    return {};
}

std::int32_t SlotStore::length(SlotId slot) const {
    return is_bound(slot) ? at(slot).length : -1;
}

Status SlotStore::reserve(SlotId slot, std::int32_t n_rows) {
    Sequence& sequence = at(slot);
    assert(n_rows >= 0 && n_rows <= room(slot));
    const std::uint64_t n_missing = sequence.kv->missing_bytes(sequence.length, n_rows);
    if (pool_bytes_ > 0 && n_missing > 0 && kv_used_bytes() + n_missing > pool_bytes_)
        return Error(Code::resource_exhausted, slot_name(slot) + ": " + format_bytes(n_missing) +
                                                   " more KV, " + format_bytes(kv_used_bytes()) + " of " +
                                                   format_bytes(pool_bytes_) + " in use");
    try {
        if (n_rows > 0 && !is_held_alone(sequence.image))
            sequence.image = std::make_shared<StateImage>(*sequence.image);
        sequence.kv->reserve(sequence.length, n_rows);
    } catch (const std::bad_alloc&) {
        return Error(Code::resource_exhausted,
                     slot_name(slot) + ": no memory for KV, " + format_bytes(kv_used_bytes()) + " in use");
    }
    return {};
}

void SlotStore::commit(SlotId slot, std::int32_t n_rows) {
    Sequence& sequence = at(slot);
    sequence.length += n_rows;
    sequence.kv->trim(sequence.length);
}

float* SlotStore::conv_state(SlotId slot, int gdn_layer) {
    return at(slot).image->conv.data() + static_cast<std::size_t>(gdn_layer) * shape_.conv_floats;
}

kernels::GdnState SlotStore::gdn_state(SlotId slot, int gdn_layer) {
    return {at(slot).image->gdn.data() + static_cast<std::size_t>(gdn_layer) * shape_.gdn_floats,
            shape_.gdn_head_dim};
}

kernels::KvView SlotStore::kv(SlotId slot, int attention_layer) const {
    return at(slot).kv->view(attention_layer);
}

std::uint64_t SlotStore::kv_used_bytes() const {
    return pools_->sequence_bytes() + (other_pools_ ? other_pools_->sequence_bytes() : 0);
}

std::uint64_t SlotStore::kv_pool_bytes() const {
    if (pool_bytes_ > 0) return pool_bytes_;
    return static_cast<std::uint64_t>(n_slots()) * shape_.kv_bytes_of(n_ctx_);
}

}  // namespace pantheon::model
