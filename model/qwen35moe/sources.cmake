target_sources(pantheon_model PRIVATE
  executor.cpp perplexity.cpp score.cpp step_batch.cpp step_bytes.cpp
  state/host_checkpoint.cpp state/kv_block.cpp state/kv_sequence.cpp state/slot_store.cpp state/state_file.cpp
  state/zeroed_floats.cpp
  qwen35moe/attn_layer.cpp qwen35moe/config.cpp qwen35moe/forward.cpp qwen35moe/gdn_layer.cpp
  qwen35moe/key_reader.cpp qwen35moe/moe_block.cpp qwen35moe/ops.cpp qwen35moe/step_context.cpp
  qwen35moe/packed_weights.cpp qwen35moe/step_profile.cpp qwen35moe/tensor_finder.cpp qwen35moe/weight_loader.cpp)
