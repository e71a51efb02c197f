#include "formats/hf_config.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "formats/hf_config_reader.h"
#include "tests/formats/hf_files.h"

namespace quern::formats {
namespace {

TEST(HfConfig, OfGpt2) {
  const HfConfig config{.model = {.layers = 3, .heads = 2, .width = 8, .context = 16, .vocabulary = 5}};
  const auto json = nlohmann::json::parse(to_json(config));
  EXPECT_EQ(json["model_type"], "gpt2");
  EXPECT_EQ(json["n_layer"], 3);
  EXPECT_EQ(json["n_head"], 2);
  EXPECT_EQ(json["n_embd"], 8);
  EXPECT_EQ(json["n_positions"], 16);
  EXPECT_EQ(json["vocab_size"], 5);
  EXPECT_EQ(json["activation_function"], "gelu_new");
  EXPECT_EQ(json["tie_word_embeddings"], true);
  EXPECT_EQ(json["layer_norm_epsilon"], 1e-5);
}

TEST(HfConfig, ReadsBackWhatItWrote) {
  for (const std::string& text : hf_configs()) {
    const HfConfig config = parse_hf_config(text, "config.json");
    const HfConfig again = parse_hf_config(to_json(config), "again.json");
    EXPECT_EQ(again.model, config.model) << text;
    EXPECT_EQ(again.tokens, config.tokens) << text;
    EXPECT_EQ(again.dropout, config.dropout) << text;
  }
}

TEST(HfConfig, SaysWhenTransformersLacksTheModel) {
  HfConfig config{.model = {.layers = 3, .heads = 2, .width = 8, .context = 16, .vocabulary = 5}};
  config.model.tied_output = false;
  config.model.zero_projections = true;
  EXPECT_EQ(unlike_hf(config.model), "");  // GPT-2 has an untied form
  EXPECT_EQ(nlohmann::json::parse(to_json(config))["tie_word_embeddings"], false);
  config.model.norm = nn::NormKind::kRmsnorm;
  config.model.qk_norm = true;
  EXPECT_EQ(unlike_hf(config.model), "model.norm=rmsnorm, model.qk_norm=true");
  const auto json = nlohmann::json::parse(to_json(config));
  EXPECT_EQ(json["model_type"], "quern");
  EXPECT_EQ(json["norm"], "rmsnorm");
  EXPECT_EQ(json["positions"], "learned");
  EXPECT_FALSE(json.contains("architectures"));
}

}  // namespace
}  // namespace quern::formats
