// The checkpoint of a SlotStore: images and blocks in host memory.
#pragma once

#include <memory>

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

struct HostCheckpoint final : Checkpoint {
    HostCheckpoint(const StateShape& shape_, std::int32_t length, std::shared_ptr<StateImage> image_,
                   KvBlocks blocks_);
    // Not const: a slot that holds the last reference goes on in them. While a checkpoint holds them nobody
    // writes.
    StateShape shape;
    std::shared_ptr<StateImage> image;
    KvBlocks blocks;
};

std::shared_ptr<const CheckpointCodec> host_checkpoint_codec(const StateShape& shape);

}  // namespace pantheon::model
