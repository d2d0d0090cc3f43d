// The checkpoint of a SlotStore: images and blocks in host memory.
#pragma once

#include <memory>

#include "kernels/exec/exec.h"
#include "model/state/checkpoint.h"
#include "model/state/checkpoint_codec.h"
#include "model/state/kv_sequence.h"
#include "model/state/state_shape.h"
#include "model/state/zeroed_floats.h"

namespace pantheon::model {

/// The recurrent states of a sequence. Shared between slots and checkpoints until somebody writes.
struct StateImage {
    explicit StateImage(const StateShape& shape)
        : conv(static_cast<std::size_t>(shape.n_gdn_layers) * shape.conv_floats),
          gdn(static_cast<std::size_t>(shape.n_gdn_layers) * shape.gdn_floats) {}
    ZeroedFloats conv;  // [GDN layer][gdn_conv_dim][gdn_d_conv − 1]
    ZeroedFloats gdn;   // [GDN layer][v head][v][k]
};

/// The same rounded to f16, in half the bytes. Values beyond its range are cut off at the largest finite one
/// and what is not finite is NaN (kernels/quant/half_values.h): nothing becomes infinite unseen.
struct HalfImage {
    explicit HalfImage(const StateShape& shape)
        : conv(static_cast<std::size_t>(shape.n_gdn_layers) * shape.conv_floats),
          gdn(static_cast<std::size_t>(shape.n_gdn_layers) * shape.gdn_floats) {}
    ZeroedHalves conv, gdn;
};

/// Both throw std::bad_alloc.
std::shared_ptr<const HalfImage> narrowed(const StateImage& image, const StateShape& shape,
                                          kernels::Exec& exec);
std::shared_ptr<StateImage> widened(const HalfImage& image, const StateShape& shape, kernels::Exec& exec);

struct HostCheckpoint final : Checkpoint {
    HostCheckpoint(const StateShape& shape_, std::int32_t length, std::shared_ptr<StateImage> image_,
                   KvBlocks blocks_);
    HostCheckpoint(const StateShape& shape_, std::int32_t length, std::shared_ptr<const HalfImage> image_,
                   KvBlocks blocks_);
    ImageFormat format() const { return half_image ? ImageFormat::f16 : ImageFormat::f32; }

    StateShape shape;
    // One of them. Not const: a slot that holds the last reference goes on in it, and in the blocks. While a
    // checkpoint holds them nobody writes.
    std::shared_ptr<StateImage> image;
    std::shared_ptr<const HalfImage> half_image;
    KvBlocks blocks;
};

/// Of checkpoints whose image is in that format; the bytes are those of memory, so nothing is rounded here.
std::shared_ptr<const CheckpointCodec> host_checkpoint_codec(const StateShape& shape,
                                                             ImageFormat format = ImageFormat::f32);

}  // namespace pantheon::model
