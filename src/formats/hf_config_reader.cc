#include "formats/hf_config_reader.h"

#include <fmt/format.h>

#include <array>

#include "core/error.h"
#include "formats/hf_fields.h"
#include "formats/model_files.h"

namespace quern::formats {
namespace {

using nn::ModelConfig;
using Json = nlohmann::json;
using Fields = HfFields;

// Fields of mixtures of experts, in all spellings; 0 and 1 expert are no mixture.
void refuse_experts(const Fields& fields) {
  for (const char* key : {"num_experts", "num_local_experts", "n_routed_experts", "moe_intermediate_size"}) {
    if (!fields.has(key)) continue;
    const Json& value = fields.at(key);
    if (value.is_number() && value.get<double>() <= 1) continue;
    fields.refuse(key, "no mixture of experts");
  }
}

void refuse_windows(const Fields& fields) {
  fields.expect_flag("use_sliding_window", false);
  if (!fields.has("layer_types")) return;
  const Json& types = fields.at("layer_types");
  if (!types.is_array()) fields.refuse("layer_types", "a list");
  for (const Json& type : types) {
    if (type != "full_attention") fields.refuse("layer_types", "full_attention in every layer");
  }
}

// `rope` has the scaling; the base may be outside of it.
nn::RotaryConfig read_rotary(const Fields& fields, const Fields& rope) {
  nn::RotaryConfig rotary;
  const Fields& base = rope.has("rope_theta") ? rope : fields;
  rotary.base = base.real_or("rope_theta", 1.0, 1e12, rotary.base);
  const std::string key = rope.has("rope_type") ? "rope_type" : "type";
  const std::string type = rope.text(key, "default");
  if (rope.real_or("partial_rotary_factor", 0.0, 1e6, 1.0) != 1.0) rope.refuse("partial_rotary_factor", "1");
  if (type == "default") return rotary;
  if (type != "linear" && type != "llama3") rope.refuse(key, "default, linear or llama3");
  rotary.factor = rope.real("factor", 1e-3, 1e6);
  rotary.scaling = type == "linear" ? nn::RotaryScaling::kLinear : nn::RotaryScaling::kLlama3;
  if (type == "linear") return rotary;
  rotary.low_frequency = rope.real("low_freq_factor", 1e-3, 1e6);
  rotary.high_frequency = rope.real("high_freq_factor", 1e-3, 1e6);
  if (rotary.high_frequency <= rotary.low_frequency) {
    rope.refuse("high_freq_factor", fmt::format("more than low_freq_factor, which is {}", rotary.low_frequency));
  }
  rotary.original_context = rope.size("original_max_position_embeddings", nn::kMaxContext);
  return rotary;
}

nn::RotaryConfig read_rotary(const Fields& fields) {
  fields.expect_flag("rope_interleaved", false);
  if (fields.real_or("partial_rotary_factor", 0.0, 1e6, 1.0) != 1.0) fields.refuse("partial_rotary_factor", "1");
  for (const char* key : {"rope_scaling", "rope_parameters"}) {
    if (fields.has(key)) return read_rotary(fields, fields.object(key));
  }
  return read_rotary(fields, fields);
}

void read_llama(const Fields& fields, ModelConfig& model) {
  refuse_experts(fields);
  refuse_windows(fields);
  const std::string activation = fields.text("hidden_act", "silu");
  if (activation != "silu" && activation != "swish") fields.refuse("hidden_act", "silu");
  const bool llama = model.family == nn::Family::kLlama;
  model.layers = fields.size("num_hidden_layers", nn::kMaxLayers);
  model.width = fields.size("hidden_size", nn::kMaxWidth);
  model.heads = fields.size("num_attention_heads", nn::kMaxWidth);
  model.inner_width = fields.size("intermediate_size", nn::kMaxInnerWidth);
  model.context = fields.size_or("max_position_embeddings", nn::kMaxContext, llama ? 2048 : 32768);
  model.kv_heads = fields.size_or("num_key_value_heads", nn::kMaxWidth, model.heads);
  const bool qwen3 = model.family == nn::Family::kQwen3;
  if (!fields.has("head_dim") && !qwen3 && model.width % model.heads != 0) {
    fields.refuse("hidden_size", fmt::format("a multiple of num_attention_heads, which is {}", model.heads));
  }
  model.head_width = fields.size_or("head_dim", nn::kMaxWidth, qwen3 ? 128 : model.width / model.heads);
  model.norm_epsilon = fields.real_or("rms_norm_eps", 1e-12, 1.0, 1e-6);
  model.tied_output = fields.flag_or("tie_word_embeddings", false);
  model.attention_bias = model.family != nn::Family::kQwen2 && fields.flag_or("attention_bias", false);
  model.mlp_bias = llama && fields.flag_or("mlp_bias", false);
  model.rotary = read_rotary(fields);
}

// Quern has one rate of dropout for embeddings, attention and residuals.
double read_dropout(const Fields& fields, std::vector<std::string>* remarks) {
  std::array<double, 3> rates = {};
  for (size_t i = 0; const char* key : {"embd_pdrop", "attn_pdrop", "resid_pdrop"}) {
    rates[i++] = fields.real_or(key, 0.0, 0.95, 0.1);
  }
  if (rates[0] == rates[1] && rates[0] == rates[2]) return rates[0];
  if (remarks != nullptr) {
    remarks->push_back(
        fmt::format("dropout of embeddings, attention and residuals ({}, {} and {}) became 0: Quern has one rate for "
                    "all; set it with model.dropout",
                    rates[0], rates[1], rates[2]));
  }
  return 0.0;
}

void read_gpt2(const Fields& fields, ModelConfig& model) {
  const std::string activation = fields.text("activation_function", "gelu_new");
  if (activation != "gelu_new" && activation != "gelu_pytorch_tanh") {
    fields.refuse("activation_function", "gelu_new or gelu_pytorch_tanh");
  }
  fields.expect_flag("scale_attn_weights", true);
  fields.expect_flag("scale_attn_by_inverse_layer_idx", false);
  fields.expect_flag("add_cross_attention", false);
  model.layers = fields.size("n_layer", nn::kMaxLayers);
  model.width = fields.size("n_embd", nn::kMaxWidth);
  model.heads = fields.size("n_head", nn::kMaxWidth);
  if (model.width % model.heads != 0) {
    fields.refuse("n_embd", fmt::format("a multiple of n_head, which is {}", model.heads));
  }
  model.context = fields.size_or("n_positions", nn::kMaxContext, 1024);
  model.inner_width = fields.size_or("n_inner", nn::kMaxInnerWidth, 4 * model.width);
  model.norm_epsilon = fields.real_or("layer_norm_epsilon", 1e-12, 1.0, 1e-5);
  model.tied_output = fields.flag_or("tie_word_embeddings", true);
}

nn::Family family_of(const Fields& fields) {
  const auto family = family_of_hf_type(fields.text("model_type", ""));
  if (!family) fields.refuse("model_type", "gpt2, llama, qwen2 or qwen3");
  return *family;
}

}  // namespace

HfConfig parse_hf_config(std::string_view text, std::string_view where, std::vector<std::string>* remarks) {
  const Json json = parse_json(text);
  if (json.is_discarded()) throw Error("[import] {}: expected JSON, found something else", where);
  const Fields fields(json, std::string(where));
  HfConfig config;
  ModelConfig& model = config.model;
  model.family = family_of(fields);
  fields.expect_absent("quantization_config");
  model.vocabulary = fields.size("vocab_size", nn::kMaxVocabulary);
  if (model.is_gpt2()) {
    read_gpt2(fields, model);
    config.dropout = read_dropout(fields, remarks);
  } else {
    read_llama(fields, model);
  }
  model.dropout = static_cast<float>(config.dropout);
  model.max_context = model.context;
  config.tokens = read_special_tokens(json, model.vocabulary);
  try {
    nn::check(model);
  } catch (const Error& error) {
    throw Error("[import] {}: {}", where, error.what());
  }
  return config;
}

}  // namespace quern::formats
