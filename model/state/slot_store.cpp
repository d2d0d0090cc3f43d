#include "model/state/slot_store.h"

#include <cassert>
#include <new>
#include <stdexcept>
#include <string>

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

}  // namespace

SlotStore::SlotStore(const StateShape& shape, int n_slots, int n_ctx)
    : shape_(shape), n_ctx_(n_ctx), sequences_(static_cast<std::size_t>(n_slots)) {
    assert(n_slots >= 1 && n_ctx >= 1);
}

Status SlotStore::bind(SlotId slot) {
    if (!is_valid(slot)) return out_of_range(slot, n_slots());
    if (is_bound(slot)) return Error(Code::failed_precondition, slot_name(slot) + ": is bound");
    try {
        sequences_[index(slot)] = std::make_unique<Sequence>(shape_);
    } catch (const std::bad_alloc&) {
        return Error(Code::resource_exhausted, slot_name(slot) + ": no memory for the state of a sequence");
    } catch (const std::length_error&) {
        return Error(Code::resource_exhausted, slot_name(slot) + ": no memory for the state of a sequence");
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
    assert(n_rows >= 0 && n_rows <= n_ctx_ - sequence.length);
    try {
        sequence.kv.reserve(sequence.length + n_rows);
    } catch (const std::bad_alloc&) {
        return Error(Code::resource_exhausted,
                     slot_name(slot) + ": no memory for KV, " + format_bytes(kv_used_bytes()) + " in use");
    }
    return {};
}

void SlotStore::commit(SlotId slot, std::int32_t n_rows) {
    at(slot).length += n_rows;
}

float* SlotStore::conv_state(SlotId slot, int gdn_layer) {
    return at(slot).conv.data() + static_cast<std::size_t>(gdn_layer) * shape_.conv_floats;
}

kernels::GdnState SlotStore::gdn_state(SlotId slot, int gdn_layer) {
    return {at(slot).gdn.data() + static_cast<std::size_t>(gdn_layer) * shape_.gdn_floats,
            shape_.gdn_head_dim};
}

kernels::KvView SlotStore::kv(SlotId slot, int attention_layer) const {
    return at(slot).kv.view(attention_layer);
}

std::uint64_t SlotStore::kv_used_bytes() const {
    std::uint64_t sum = 0;
    for (const auto& sequence : sequences_)
        if (sequence) sum += sequence->kv.used_bytes();
    return sum;
}

std::uint64_t SlotStore::kv_pool_bytes() const {
    return static_cast<std::uint64_t>(n_slots()) * static_cast<std::uint64_t>(n_kv_pages(n_ctx_)) *
           shape_.kv_bytes_per_page_row();
}

}  // namespace pantheon::model
