// make_model: writes synthetic qwen35moe models, and F32 expansions of existing ones.
#include <CLI/CLI.hpp>
#include <cstdio>
#include <exception>
#include <string_view>

#include "tests/tools/make_model/expand_f32.h"
#include "tests/tools/make_model/model_writer.h"

namespace {

using namespace pantheon::test;

/// The preset sets what the other options start from, so it is looked for before they are read.
std::string preset_from(int argc, char** argv) {
    for (int i = 1; i < argc; ++i) {
        const std::string_view arg = argv[i];
        if (arg.starts_with("--preset=")) return std::string(arg.substr(9));
        if (arg == "--preset" && i + 1 < argc) return argv[i + 1];
    }
    return "tiny";
}

struct Options {
    ModelSpec spec;
    std::string preset, out, uniform_type, mix, nextn_words;
    std::vector<std::string> overrides, set_keys, expand;
    bool has_nextn = false, has_nextn_missing = false, has_no_nextn = false, is_v2 = false;
    std::string router_gap = "normal", weights;
};

void add_shape_options(CLI::App& app, ModelShape& s) {
    const char* group = "Shape (defaults are the preset's)";
    auto add = [&](const char* name, int& value, const char* what) {
        app.add_option(name, value, what)->group(group)->capture_default_str();
    };
    add("--n-embd", s.n_embd, "model width");
    add("--layers", s.n_layer, "trunk layers; a nextn block comes on top");
    add("--interval", s.interval, "layer i is attention iff (i + 1) % interval == 0");
    add("--heads", s.n_head, "query heads of attention layers");
    add("--kv-heads", s.n_head_kv, "key/value heads");
    add("--head-dim", s.head_dim, "width of an attention head");
    add("--rope-dim", s.rope_dim, "rotated dimensions of a head");
    app.add_option("--rope-sections", s.rope_sections,
                   "M-RoPE sections, four numbers (default: shared out evenly)")
        ->group(group)
        ->delimiter(',');
    app.add_option("--rope-base", s.rope_base, "theta base")->group(group)->capture_default_str();
    app.add_option("--eps", s.eps, "epsilon of the norms")->group(group)->capture_default_str();
    add("--gdn-heads-k", s.gdn_n_head_k, "key heads of Gated-Delta-Net layers");
    add("--gdn-heads-v", s.gdn_n_head_v, "value heads");
    add("--gdn-head-dim", s.gdn_head_dim, "width of a key and of a value head");
    add("--gdn-conv", s.gdn_d_conv, "taps of the convolution");
    add("--experts", s.n_expert, "routed experts");
    add("--experts-used", s.n_expert_used, "experts a token takes");
    add("--ff", s.n_ff_exp, "width of a routed expert");
    add("--shared-ff", s.n_ff_shexp, "width of the shared expert");
    add("--vocab", s.n_vocab, "vocabulary size, at least 289; padded with unused entries; 0: as it comes");
    add("--context", s.context_length, "training context length in the metadata");
}

void add_other_options(CLI::App& app, Options& o) {
    app.add_option("--type", o.uniform_type,
                   "one type for all tensors that a quantiser touches, F32 included")
        ->group("Types");
    app.add_option("--mix", o.mix, "the mix of llama.cpp's quantiser: q4_k_m, q3_k_m, q8_0 or mxfp4_moe")
        ->group("Types")
        ->excludes("--type");
    app.add_option("--tensor-type", o.overrides,
                   "REGEX=TYPE (repeatable): type of the tensors in whose name REGEX (ECMAScript) is found; "
                   "the first "
                   "that matches wins")
        ->group("Types")
        ->allow_extra_args(false);
    app.add_flag("--tied", o.spec.shape.is_tied, "no output.weight: the head is token_embd")
        ->group("Variants");
    app.add_flag("--fused-experts", o.spec.shape.fuses_gate_up,
                 "ffn_gate_up_exps instead of gate and up, with the same weights in it")
        ->group("Variants");
    app.add_flag("--nextn", o.has_nextn, "a nextn block with its tensors")->group("Variants");
    app.add_flag("--nextn-missing", o.has_nextn_missing, "a nextn block in the metadata only")
        ->group("Variants");
    app.add_flag("--no-nextn", o.has_no_nextn, "no nextn block (for presets that have one)")
        ->group("Variants");
    app.add_option("--router-gap", o.router_gap, "normal, or wide: routing that no rounding changes")
        ->group("Weights")
        ->check(CLI::IsMember({"normal", "wide"}))
        ->capture_default_str();
    app.add_option("--weights", o.weights,
                   "random, or fixture: by formula from name and index, float types only")
        ->group("Weights")
        ->check(CLI::IsMember({"random", "fixture"}));
    app.add_option("--seed", o.spec.weights.seed, "of the random weights")
        ->group("Weights")
        ->capture_default_str();
    app.add_option("--tokenizer-json", o.spec.tokenizer_json,
                   "take vocabulary and merges from this Hugging Face file instead of the built-in word list")
        ->group("Vocabulary");
    app.add_option("--split", o.spec.n_files, "number of files; OUT's name without .gguf becomes the prefix")
        ->group("File")
        ->check(CLI::Range(1, 999));
    app.add_flag("--v2", o.is_v2, "GGUF version 2")->group("File");
    app.add_option("--alignment", o.spec.alignment, "of the tensor data")
        ->group("File")
        ->capture_default_str();
    app.add_option("--name", o.spec.name, "general.name")->group("File");
    app.add_option("--set", o.set_keys,
                   "KEY=TYPE:VALUE (repeatable), for example general.name=string:x; adds or replaces")
        ->group("File")
        ->allow_extra_args(false);
    app.add_option("--drop-key", o.spec.drop_keys, "REGEX (repeatable): leave these metadata keys out")
        ->group("File")
        ->allow_extra_args(false);
    app.add_option("--drop-tensor", o.spec.drop_tensors, "REGEX (repeatable): leave these tensors out")
        ->group("File")
        ->allow_extra_args(false);
}

void finish_spec(Options& o) {
    ModelSpec& spec = o.spec;
    if (!o.uniform_type.empty()) spec.mix = o.uniform_type;
    if (!o.mix.empty()) spec.mix = o.mix;
    for (const std::string& text : o.overrides) spec.type_overrides.push_back(parse_type_override(text));
    if (o.has_nextn + o.has_nextn_missing + o.has_no_nextn > 1)
        throw std::invalid_argument("--nextn, --nextn-missing and --no-nextn exclude each other");
    if (o.has_nextn) spec.shape.nextn = Nextn::present;
    if (o.has_nextn_missing) spec.shape.nextn = Nextn::promised_only;
    if (o.has_no_nextn) spec.shape.nextn = Nextn::none;
    if (o.router_gap == "wide") spec.weights.router_gap = RouterGap::wide;
    if (o.weights == "random") spec.weights.kind = WeightKind::random;
    if (o.weights == "fixture") spec.weights.kind = WeightKind::fixture;
    if (o.is_v2) spec.version = 2;
    if (spec.name.empty()) spec.name = "synthetic " + o.preset;
    for (const std::string& text : o.set_keys) {
        const std::size_t equals = text.find('=');
        if (equals == std::string::npos)
            throw std::invalid_argument("--set '" + text + "': want KEY=TYPE:VALUE");
        spec.set_keys.emplace_back(text.substr(0, equals), parse_typed_value(text.substr(equals + 1)));
    }
}

void report(const WrittenModel& written) {
    for (const std::string& path : written.paths) std::printf("wrote %s\n", path.c_str());
    std::printf("%zu tensors (%s), %llu bytes of data\n", written.n_tensors, written.type_counts.c_str(),
                static_cast<unsigned long long>(written.data_bytes));
}

}  // namespace

int main(int argc, char** argv) try {
    Options o;
    o.preset = preset_from(argc, argv);
    const Preset* preset = find_preset(o.preset);
    if (!preset)
        throw std::invalid_argument("--preset " + o.preset + ": unknown; there are\n" + describe_presets());
    o.spec.shape = preset->shape;
    o.spec.mix = preset->mix;
    if (preset->has_fixture_weights) o.spec.weights.kind = WeightKind::fixture;

    CLI::App app(
        "Writes a synthetic qwen35moe model as GGUF: random weights in any type and shape, or the F32\n"
        "expansion of an existing file. The same options give the same bytes on every machine.\n");
    app.footer(
        "Presets:\n" + describe_presets() + "\nTypes and mixes: " + TypeMix::names() +
        "\nTypes of 256 do not fit rows that are no multiple of 256; like llama.cpp's quantiser this falls "
        "back to\nIQ4_NL, Q4_0, Q5_0, Q5_1 or Q8_0, and to F16 for rows that are no multiple of 32.\n\n"
        "Examples:\n"
        "  make_model tiny.gguf\n"
        "  make_model --preset fixture fixture.gguf\n"
        "  make_model --n-embd 96 --heads 3 --kv-heads 1 --interval 3 --type F32 odd.gguf\n"
        "  make_model --preset real8 --mix q4_k_m --tokenizer-json tokenizer.json --split 3 real8.gguf\n"
        "  make_model --expand-f32 tiny.gguf tiny-f32.gguf");
    app.get_formatter()->column_width(32);
    app.add_option("out", o.out, "file to write");
    app.add_option("--preset", o.preset, "what the options start from, see below")->capture_default_str();
    app.add_option("--expand-f32", o.expand,
                   "IN OUT: write IN (any file of a split set) as OUT with every tensor F32")
        ->expected(2)
        ->excludes("out");
    add_shape_options(app, o.spec.shape);
    add_other_options(app, o);
    CLI11_PARSE(app, argc, argv);

    if (!o.expand.empty()) {
        report(expand_f32(o.expand[0], o.expand[1]));
        return 0;
    }
    if (o.out.empty()) throw std::invalid_argument("want a file to write, or --expand-f32; see --help");
    finish_spec(o);
    report(write_model(o.spec, o.out));
    return 0;
} catch (const std::exception& e) {
    std::fprintf(stderr, "make_model: %s\n", e.what());
    return 1;
}
