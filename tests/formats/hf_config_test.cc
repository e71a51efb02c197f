#include "formats/hf_config.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

namespace quern::formats {
namespace {

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
