// Distinct integer types for the things that are numbered, so that a slot cannot be passed where a die is
// wanted.
#pragma once

#include <compare>
#include <cstdint>
#include <functional>

namespace pantheon {

template <class Tag, class T>
struct Id {
    T value{};
    constexpr Id() = default;
    constexpr explicit Id(T v) : value(v) {}
    friend constexpr auto operator<=>(const Id&, const Id&) = default;
    template <class Inspector>
    friend auto inspect(Inspector& f, Id& x) {
        return f(x.value);
    }
};

using SlotId = Id<struct SlotTag, std::int32_t>;       // 0 … n_slots − 1 within an engine
using SeatId = Id<struct SeatTag, std::int32_t>;       // a slot actor: one of a running or parked sequence
using DieId = Id<struct DieTag, std::int32_t>;         // index into the engine's dies
using EngineId = Id<struct EngineTag, std::int32_t>;   // index into the daemon's engines
using TicketId = Id<struct TicketTag, std::uint64_t>;  // one accepted request; never reused in a process
using CheckpointId = Id<struct CheckpointTag, std::uint64_t>;  // a kept state on a die; 0 is none
using TokenId = std::int32_t;                                  // a vocabulary entry; −1 is none

}  // namespace pantheon

template <class Tag, class T>
struct std::hash<pantheon::Id<Tag, T>> {
    std::size_t operator()(const pantheon::Id<Tag, T>& id) const noexcept { return std::hash<T>{}(id.value); }
};
