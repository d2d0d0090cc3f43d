#include "runtime/daemon/load_model.h"

#include <fmt/format.h>

#include "actors/kv_pool.h"
#include "runtime/base/log.h"
#include "runtime/base/units.h"
#include "runtime/config/host_defaults.h"
#include "runtime/daemon/live_settings.h"

namespace pantheon::daemon {
namespace {

model::TemplateFamily template_family(const model::GgufMetadata& file) {
    const auto source = file.get_string("tokenizer.chat_template");
    const bool is_there = source.has_value() && source->has_value();
    const model::TemplateChoice choice = model::choose_template(is_there ? **source : std::string_view{});
    if (!choice.is_known)
        log_warning("model", is_there ? "the file's chat template is unknown; the Qwen3.5 rules are used"
                                      : "the file has no chat template; the Qwen3.5 rules are used");
    return choice.family;
}

model::KvSettings kv_of(const config::KvSection& kv) {
    return {kv.format, static_cast<int>(kv.sink), static_cast<int>(kv.window), kv.overflow};
}

Result<std::uint64_t> kv_pool_bytes(const config::Config& config, const model::Weights& weights) {
    std::optional<std::uint64_t> asked;
    if (config.kv.pool_bytes) asked = static_cast<std::uint64_t>(*config.kv.pool_bytes);
    const auto free_bytes = static_cast<std::uint64_t>(config::host_defaults().free_bytes);
    return actors::choose_kv_pool(asked, model::checkpoint_sizes(weights, kv_of(config.kv)),
                                  limits_of(config), static_cast<int>(config.engines.front().slots),
                                  free_bytes);
}

}  // namespace

Status check_kv_pool(const config::Config& config) {
    auto file = model::GgufFile::open(config.model.path);
    if (!file) return {};
    auto weights = model::Weights::load(*file);
    if (!weights) return {};
    const auto pool = kv_pool_bytes(config, **weights);
    return pool ? Status() : Status(pool.error());
}

Result<LoadedModel> load_model(const config::Config& config) {
    auto file = model::GgufFile::open(config.model.path);
    if (!file) return std::move(file).error();
    auto weights = model::Weights::load(*file);
    if (!weights) return std::move(weights).error().with_context(config.model.path);
    const model::GgufMetadata& metadata = (*file)->metadata();
    auto tokenizer = model::Tokenizer::load(metadata, (*weights)->n_vocab());
    if (!tokenizer) return std::move(tokenizer).error().with_context(config.model.path);
    auto sampling = file_sampling(metadata);
    if (!sampling) return std::move(sampling).error().with_context(config.model.path);

    LoadedModel loaded;
    loaded.weights = *weights;
    loaded.files.assign((*file)->shard_paths().begin(), (*file)->shard_paths().end());
    loaded.file_sampling = *sampling;
    actors::DaemonSettings& settings = loaded.settings;
    settings.version = PANTHEON_VERSION;
    settings.config_path = config.file;
    settings.model.path = config.model.path;
    settings.model.name = (*weights)->name();
    settings.model.fingerprint = (*file)->fingerprint();
    settings.model.n_layer = (*weights)->n_layer();
    settings.model.n_vocab = static_cast<std::int32_t>((*weights)->n_vocab());
    settings.model.has_nextn = (*weights)->nextn().state == model::NextnInfo::State::present;
    settings.model.weights_bytes = (*weights)->weight_bytes();
    settings.text.tokenizer = *tokenizer;
    settings.text.family = template_family(metadata);
    settings.text.sampling = sampling_defaults(config.sampling, *sampling);
    settings.limits = limits_of(config);
    settings.cache = cache_of(config);

    const config::EngineSection& engine = config.engines.front();
    settings.engine.name = engine.name;
    settings.engine.die_id = engine.dies.front();
    settings.engine.die_kind = "cpu";
    const model::Backend backend =
        settings.engine.die_id == "ref" ? model::Backend::ref : model::Backend::cpu;
    settings.engine.isa = model::isa_name(backend);
    settings.engine.ops = model::op_choices(backend);
    settings.engine.n_threads = static_cast<int>(config.cpu.threads);
    settings.engine.n_slots = static_cast<int>(engine.slots);
    const model::KvSettings kv = kv_of(config.kv);
    const model::ImageFormat images = config.sessions.f16 ? model::ImageFormat::f16 : model::ImageFormat::f32;
    settings.engine.image_format = images;
    settings.engine.codec = model::checkpoint_codec(**weights, kv, images);
    settings.engine.checkpoint = model::checkpoint_sizes(**weights, kv, images);
    if (kv.format != model::KvFormat::q4_0) {
        model::KvSettings in_q4_0 = kv;
        in_q4_0.format = model::KvFormat::q4_0;
        settings.engine.in_q4_0 = model::checkpoint_sizes(**weights, in_q4_0);
    }
    const auto pool = kv_pool_bytes(config, **weights);
    if (!pool) return pool.error();
    settings.engine.kv_pool_bytes = *pool;

    model::ExecutorConfig executor;
    executor.backend = backend;
    executor.n_threads = settings.engine.n_threads;
    executor.n_slots = settings.engine.n_slots;
    executor.n_ctx = static_cast<int>(config.kv.n_ctx);
    executor.kv = kv;
    executor.kv_pool_bytes = settings.engine.kv_pool_bytes;
    settings.engine.repack =
        config.cpu.repack ? model::repack_that_fits(**weights, backend, config::host_defaults().free_bytes)
                          : model::Repack::none;
    settings.engine.packed_bytes = model::repack_bytes(**weights, backend, settings.engine.repack);
    settings.memory.ladder = ladder_of(config);
    settings.engine.make_executor = [weights = loaded.weights, executor] {
        return model::Executor::create(weights, executor);
    };
    return loaded;
}

std::string describe_plan(const config::Config& config, const LoadedModel& loaded) {
    const model::Weights& weights = *loaded.weights;
    const model::ModelConfig& shape = weights.config();
    const auto n_slots = static_cast<std::uint64_t>(config.engines.front().slots);
    const auto n_gdn = static_cast<std::uint64_t>(shape.n_gdn_layers());
    const auto n_attention = static_cast<std::uint64_t>(shape.n_attention_layers());
    const auto state_floats =
        static_cast<std::uint64_t>(shape.gdn_d_inner()) * static_cast<std::uint64_t>(shape.gdn_head_dim) +
        static_cast<std::uint64_t>(shape.gdn_conv_dim()) * static_cast<std::uint64_t>(shape.gdn_d_conv - 1);
    const std::uint64_t state_bytes = n_gdn * state_floats * sizeof(float);
    const model::KvSizes kv = model::kv_sizes(weights, kv_of(config.kv), static_cast<int>(config.kv.n_ctx));
    std::string plan;
    plan += fmt::format("model    {} ({})\n", config.model.path,
                        shape.name.empty() ? std::string("no name") : shape.name);
    plan += fmt::format(
        "engine   {}: die {} runs layers 0…{} ({} Gated-Delta-Net, {} attention), embedding and head\n",
        config.engines.front().name, config.engines.front().dies.front(), shape.n_layer - 1, n_gdn,
        n_attention);
    plan += fmt::format("nextn    {}\n", shape.nextn.describe());
    plan += fmt::format("weights  {} mapped from the file\n", format_bytes(weights.weight_bytes()));
    plan += fmt::format("states   {} slots × {}\n", n_slots, format_bytes(state_bytes));
    const std::uint64_t pool_bytes = loaded.settings.engine.kv_pool_bytes;
    plan += fmt::format("KV       up to {}, allocated as sequences grow: {} slots × ({} rows × {}{}) = {}\n",
                        format_bytes(pool_bytes), n_slots, config.kv.n_ctx, format_bytes(kv.row_bytes),
                        kv.half_bytes > 0 ? " + " + format_bytes(kv.half_bytes) + " of f16 rows" : "",
                        format_bytes(n_slots * kv.slot_bytes));
    const auto cache_bytes = static_cast<std::uint64_t>(config.sessions.bytes);
    plan += fmt::format("cache    up to {}: {} a state{}, and its KV\n", format_bytes(cache_bytes),
                        format_bytes(loaded.settings.engine.checkpoint.image_bytes),
                        config.sessions.f16 ? " in f16" : "");
    if (!config.sessions.dir.empty())
        plan += fmt::format("disk     up to {} of spilled states in {}\n",
                            format_bytes(static_cast<std::uint64_t>(config.sessions.disk_bytes)),
                            config.sessions.dir);
    plan += fmt::format("memory   up to {} besides the mapped file\n",
                        format_bytes(n_slots * state_bytes + pool_bytes + cache_bytes));
    return plan;
}

}  // namespace pantheon::daemon
