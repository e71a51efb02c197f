#include "formats/hf_config_reader.h"

#include <gtest/gtest.h>

#include "core/json.h"
#include "support/message.h"
#include "tests/formats/hf_files.h"

namespace quern::formats {
namespace {

HfConfig parse(std::string_view text) { return parse_hf_config(text, "config.json"); }

// The config with one field, at a JSON pointer, set to a JSON value.
std::string with(const char* config, const std::string& pointer, const std::string& value) {
  nlohmann::json json = parse_json(config);
  json[nlohmann::json::json_pointer(pointer)] = parse_json(value);
  return json_text(json);
}

std::string without(const char* config, const std::string& key) {
  nlohmann::json json = parse_json(config);
  json.erase(key);
  return json_text(json);
}

std::string message(const std::string& text) {
  return test::message_of([&] { parse(text); });
}

bool contains(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }

TEST(HfConfigReader, Gpt2) {
  const HfConfig found = parse(kGpt2Config);
  const nn::ModelConfig expected = {.family = nn::Family::kGpt2,
                                    .layers = 2,
                                    .heads = 3,
                                    .width = 24,
                                    .context = 32,
                                    .vocabulary = 97,
                                    .dropout = 0.1f,
                                    .max_context = 32,
                                    .inner_width = 96};
  EXPECT_EQ(found.model, expected);
  EXPECT_EQ(found.dropout, 0.1);
  EXPECT_EQ(found.tokens.bos, 96);
  EXPECT_EQ(found.tokens.eos, std::vector<int32_t>{96});
}

TEST(HfConfigReader, LlamaOfOlderFiles) {
  const HfConfig found = parse(kLlamaConfig);
  const nn::ModelConfig expected = {.family = nn::Family::kLlama,
                                    .layers = 2,
                                    .heads = 6,
                                    .width = 48,
                                    .context = 131072,
                                    .vocabulary = 128,
                                    .max_context = 131072,
                                    .inner_width = 96,
                                    .norm_epsilon = 1e-5,
                                    .tied_output = true,
                                    .rotary = {.base = 500000,
                                               .scaling = nn::RotaryScaling::kLlama3,
                                               .factor = 32,
                                               .low_frequency = 1,
                                               .high_frequency = 4,
                                               .original_context = 8192},
                                    .kv_heads = 2,
                                    .head_width = 16};
  EXPECT_EQ(found.model, expected);
  EXPECT_EQ(found.tokens.eos, (std::vector<int32_t>{2, 5}));
}

TEST(HfConfigReader, Qwen) {
  const nn::ModelConfig qwen3 = parse(kQwen3Config).model;
  EXPECT_EQ(qwen3.family, nn::Family::kQwen3);
  EXPECT_EQ(qwen3.head_dim(), 32u);
  EXPECT_EQ(qwen3.rotary.base, 1e6);
  EXPECT_EQ(qwen3.norm_epsilon, 1e-6);
  const nn::ModelConfig qwen2 = parse(kQwen2Config).model;
  EXPECT_EQ(qwen2.family, nn::Family::kQwen2);
  EXPECT_EQ(qwen2.head_dim(), 8u);
  EXPECT_EQ(qwen2.key_heads(), 1u);
  EXPECT_FALSE(qwen2.tied_output);
  EXPECT_FALSE(qwen2.attention_bias);  // its biases are part of the family
}

TEST(HfConfigReader, BothSpellingsOfRotaryPositionsAreTheSame) {
  const auto rotary = [](const std::string& text) { return parse(text).model.rotary; };
  nlohmann::json json = parse_json(kLlamaConfig);
  nlohmann::json rope = json["rope_scaling"];
  json.erase("rope_scaling");
  json.erase("rope_theta");
  rope["rope_theta"] = 500000.0;
  json["rope_parameters"] = rope;
  EXPECT_EQ(rotary(json_text(json)), rotary(kLlamaConfig));
  const std::string old_name = with(kLlamaConfig, "/rope_scaling", R"({"type": "linear", "factor": 2.0})");
  EXPECT_EQ(rotary(old_name).scaling, nn::RotaryScaling::kLinear);
  EXPECT_EQ(rotary(old_name).factor, 2.0);
  EXPECT_EQ(rotary(old_name).base, 500000.0);
  EXPECT_EQ(rotary(without(kQwen3Config, "rope_parameters")).base, 10000.0);
  EXPECT_EQ(rotary(with(kQwen2Config, "/rope_scaling", "null")).base, 1e6);
}

TEST(HfConfigReader, DefaultsAreThoseOfTransformers) {
  EXPECT_TRUE(parse(without(kGpt2Config, "n_inner")).model.tied_output);
  EXPECT_EQ(parse(with(kGpt2Config, "/n_inner", "100")).model.inner(), 100u);
  EXPECT_FALSE(parse(without(kLlamaConfig, "tie_word_embeddings")).model.tied_output);
  EXPECT_EQ(parse(without(kLlamaConfig, "num_key_value_heads")).model.key_heads(), 6u);
  EXPECT_EQ(parse(without(kLlamaConfig, "head_dim")).model.head_dim(), 8u);
  EXPECT_EQ(parse(without(kQwen3Config, "head_dim")).model.head_dim(), 128u);
  EXPECT_EQ(parse(without(kLlamaConfig, "rms_norm_eps")).model.norm_epsilon, 1e-6);
  EXPECT_TRUE(parse(with(kLlamaConfig, "/attention_bias", "true")).model.attention_bias);
  EXPECT_TRUE(parse(with(kLlamaConfig, "/mlp_bias", "true")).model.mlp_bias);
  EXPECT_EQ(parse(with(kLlamaConfig, "/eos_token_id", "-1")).tokens.eos.size(), 0u);
}

TEST(HfConfigReader, RatesOfDropoutThatDifferAreRemarked) {
  std::vector<std::string> remarks;
  EXPECT_EQ(parse_hf_config(kGpt2Config, "config.json", &remarks).dropout, 0.1);
  EXPECT_TRUE(remarks.empty());
  EXPECT_EQ(parse_hf_config(with(kGpt2Config, "/attn_pdrop", "0.0"), "config.json", &remarks).dropout, 0.0);
  ASSERT_EQ(remarks.size(), 1u);
  EXPECT_TRUE(contains(remarks[0], "(0.1, 0 and 0.1) became 0"));
}

struct Unsupported {
  const char* config;
  const char* pointer;
  const char* value;
  const char* message;
};

TEST(HfConfigReader, OtherMathematicsIsAnErrorThatNamesTheField) {
  const Unsupported cases[] = {
      {kGpt2Config, "/model_type", "\"mistral\"", "model_type: expected gpt2, llama, qwen2 or qwen3, found 'mistral'"},
      {kGpt2Config, "/activation_function", "\"relu\"", "activation_function: expected gelu_new or gelu_pytorch_tanh"},
      {kGpt2Config, "/scale_attn_weights", "false", "scale_attn_weights: expected true, found false"},
      {kGpt2Config, "/scale_attn_by_inverse_layer_idx", "true", "scale_attn_by_inverse_layer_idx: expected false"},
      {kGpt2Config, "/add_cross_attention", "true", "add_cross_attention: expected false"},
      {kGpt2Config, "/n_head", "5", "n_embd: expected a multiple of n_head, which is 5"},
      {kGpt2Config, "/quantization_config", R"({"quant_method": "gptq"})", "quantization_config: expected none"},
      {kLlamaConfig, "/hidden_act", "\"gelu\"", "hidden_act: expected silu, found 'gelu'"},
      {kLlamaConfig, "/num_local_experts", "8", "num_local_experts: expected no mixture of experts, found 8"},
      {kLlamaConfig, "/rope_interleaved", "true", "rope_interleaved: expected false"},
      {kLlamaConfig, "/partial_rotary_factor", "0.5", "partial_rotary_factor: expected 1, found 0.5"},
      {kLlamaConfig, "/rope_scaling/rope_type", "\"yarn\"",
       "rope_scaling.rope_type: expected default, linear or llama3"},
      {kLlamaConfig, "/rope_scaling/rope_type", "\"dynamic\"", "found 'dynamic'"},
      {kLlamaConfig, "/rope_scaling/rope_type", "\"longrope\"", "found 'longrope'"},
      {kLlamaConfig, "/rope_scaling/high_freq_factor", "1.0", "rope_scaling.high_freq_factor: expected more than"},
      {kLlamaConfig, "/rope_scaling/factor", "null", "rope_scaling.factor: expected a number"},
      {kLlamaConfig, "/num_key_value_heads", "4", "kv_heads: expected a divisor of heads (6), found 4"},
      {kLlamaConfig, "/head_dim", "15", "expected an even number for rotary positions, found 15"},
      {kLlamaConfig, "/vocab_size", "0", "vocab_size: expected 1 to 16777216, found '0'"},
      {kQwen2Config, "/use_sliding_window", "true", "use_sliding_window: expected false"},
      {kQwen3Config, "/layer_types/1", "\"sliding_attention\"", "layer_types: expected full_attention in every layer"},
      {kQwen3Config, "/num_experts", "128", "num_experts: expected no mixture of experts"},
      {kQwen3Config, "/rope_parameters/partial_rotary_factor", "0.25",
       "rope_parameters.partial_rotary_factor: expected 1"},
  };
  for (const Unsupported& one : cases) {
    const std::string found = message(with(one.config, one.pointer, one.value));
    EXPECT_TRUE(contains(found, one.message)) << found << "\nexpected: " << one.message;
    EXPECT_TRUE(contains(found, "[import] config.json: ")) << found;
  }
}

TEST(HfConfigReader, MissingFieldsAreNamed) {
  EXPECT_TRUE(contains(message(without(kLlamaConfig, "hidden_size")), "hidden_size: expected this field, found none"));
  EXPECT_TRUE(contains(message(without(kGpt2Config, "model_type")), "model_type: expected this field, found none"));
  EXPECT_TRUE(contains(message("{}"), "model_type: expected this field"));
  EXPECT_TRUE(contains(message("no JSON"), "expected JSON, found something else"));
  EXPECT_TRUE(contains(message("[1]"), "expected an object"));
}

}  // namespace
}  // namespace quern::formats
