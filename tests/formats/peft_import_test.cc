#include "formats/peft_import.h"

#include <gtest/gtest.h>

#include <limits>
#include <string>
#include <vector>

#include "support/message.h"
#include "support/peft_files.h"
#include "support/temporary_folder.h"

namespace quern::formats {
namespace {

using nlohmann::json;
using test::PeftFiles;

nn::ModelConfig model_of(const std::string& family) {
  for (const auto& [name, model] : test::adapted_models()) {
    if (name == family) return model;
  }
  return {};
}

AdapterSource reopened(const PeftFiles& files, const nn::ModelConfig& base) {
  const test::TemporaryFolder root;
  files.write(root / "peft");
  return open_peft_folder(root / "peft", base);
}

// Expects that a folder with these contents is refused with a message that has this text in it.
void expect_refused(const PeftFiles& files, const nn::ModelConfig& base, const std::string& text) {
  const test::TemporaryFolder root;
  files.write(root / "peft");
  const std::string message = test::message_of([&] {
    const AdapterSource source = open_peft_folder(root / "peft", base);
    for (const TensorSource& tensor : source.tensors) {
      std::vector<float> values(tensor.size());
      tensor.read(0, values);
    }
  });
  EXPECT_NE(message.find(text), std::string::npos) << "expected: " << text << "\nfound: " << message;
}

TEST(PeftImport, ReadsSettingsAndValuesOfEveryFamily) {
  for (const auto& [name, model] : test::adapted_models()) {
    const nn::AdapterConfig adapters{.rank = 3, .alpha = 7.5, .dropout = 0.25, .rank_stabilized = true};
    const PeftFiles files = test::peft_files(model, adapters);
    const test::TemporaryFolder root;
    files.write(root / "peft");
    const AdapterSource source = open_peft_folder(root / "peft", model);
    EXPECT_EQ(source.model.adapters, adapters) << name;
    EXPECT_EQ(source.base, "some/model");
    EXPECT_EQ(source.type, "F32");
    ASSERT_EQ(source.tensors.size(), files.tensors.size()) << name;
    for (const TensorSource& tensor : source.tensors) {
      std::vector<float> values(tensor.size());
      tensor.read(0, values);
      EXPECT_EQ(values, files.tensors.at(tensor.name).values) << tensor.name;
    }
  }
}

// PEFT adapts every module whose name ends in one of the targets, and so do settings here.
TEST(PeftImport, TargetsCoverExactlyTheLayersWithTensors) {
  const std::vector<std::pair<std::string, std::vector<std::string>>> cases = {
      {"llama", {"q_proj", "v_proj"}},
      {"llama", {"model.layers.1.self_attn.q_proj", "model.layers.1.mlp.up_proj"}},
      {"gpt2", {"c_attn"}},
      {"gpt2", {"h.0.mlp.c_proj", "h.1.mlp.c_proj"}}};  // "c_proj" would also be that of attention
  for (const auto& [family, targets] : cases) {
    const nn::ModelConfig model = model_of(family);
    PeftFiles files = test::peft_files(model, {.rank = 2, .targets = targets});
    for (const json& written : {files.config["target_modules"], json("all-linear"), json(".*(q_proj|c_proj)")}) {
      files.config["target_modules"] = written;
      const AdapterSource source = reopened(files, model);
      EXPECT_EQ(std::set(source.model.adapters.targets.begin(), source.model.adapters.targets.end()),
                std::set(targets.begin(), targets.end()));
      EXPECT_EQ(source.tensors.size(), files.tensors.size());
    }
  }
}

TEST(PeftImport, LayersToTransformLimitsTheBlocks) {
  const nn::ModelConfig model = model_of("llama");
  PeftFiles files = test::peft_files(model, {.rank = 2, .targets = {"model.layers.1.self_attn.q_proj"}});
  files.config["target_modules"] = {"q_proj"};
  for (const json& blocks : {json(1), json({1}), json({0, 1})}) {
    files.config["layers_to_transform"] = blocks;
    EXPECT_EQ(reopened(files, model).model.adapters.targets,
              std::vector<std::string>{"model.layers.1.self_attn.q_proj"});
  }
  files.config["layers_to_transform"] = {0};
  expect_refused(files, model, "expected adapters of target_modules and layers_to_transform alone, found tensor");
  for (const json& wrong : {json({2}), json({-1}), json("1"), json({0.5})}) {
    files.config["layers_to_transform"] = wrong;
    expect_refused(files, model, "layers_to_transform: expected numbers below 2, the layers of the base model, found ");
  }
}

TEST(PeftImport, RefusesSettingsThatItDoesNotSupport) {
  const std::vector<std::tuple<std::string, json, std::string>> cases = {
      {"peft_type", "IA3", "adapter_config.json: peft_type: expected LORA, found 'IA3'"},
      {"task_type", "SEQ_CLS", "task_type: expected CAUSAL_LM, found 'SEQ_CLS'"},
      {"bias", "lora_only", "bias: expected none, found 'lora_only'"},
      {"modules_to_save", {"lm_head"}, "modules_to_save: expected none, found [\"lm_head\"]"},
      {"rank_pattern", {{"q_proj", 16}}, "rank_pattern: expected none, found {\"q_proj\":16}"},
      {"alpha_pattern", {{"q_proj", 16}}, "alpha_pattern: expected none, found {\"q_proj\":16}"},
      {"use_dora", true, "use_dora: expected false, found true"},
      {"lora_bias", true, "lora_bias: expected false, found true"},
      {"use_qalora", true, "use_qalora: expected false, found true"},
      {"fan_in_fan_out", true, "fan_in_fan_out: expected false for all models but gpt2, found true"},
      {"init_lora_weights", "pissa", "init_lora_weights: expected true, false, gaussian, eva or orthogonal, found"},
      {"layer_replication", {{0, 1}}, "layer_replication: expected none, found [[0,1]]"},
      {"trainable_token_indices", {5}, "trainable_token_indices: expected none, found [5]"},
      {"target_parameters", {"w"}, "target_parameters: expected none, found [\"w\"]"},
      {"alora_invocation_tokens", {5}, "alora_invocation_tokens: expected none, found [5]"},
      {"target_modules", 5, "target_modules: expected a list of names, or a pattern, found 5"},
      {"target_modules", {"v_proj"}, "expected adapters of target_modules and layers_to_transform alone, found tensor"},
      {"r", 0, "r: expected 1 to 1024, found '0'"},
      {"r", 2.5, "r: expected a whole number from 0, found '2.5'"},
      {"lora_alpha", -1, "lora_alpha: expected a number from "},
      {"lora_dropout", 1, "lora_dropout: expected a number from 0 to 0.99, found '1'"},
      {"use_rslora", "yes", "use_rslora: expected true or false, found"}};
  const nn::ModelConfig llama = model_of("llama");
  for (const auto& [field, value, text] : cases) {
    PeftFiles files = test::peft_files(llama, {.rank = 2, .targets = {"q_proj"}});
    files.config[field] = value;
    expect_refused(files, llama, text);
  }
  PeftFiles gpt2 = test::peft_files(model_of("gpt2"), {.rank = 2});
  gpt2.config["fan_in_fan_out"] = false;
  expect_refused(gpt2, model_of("gpt2"), "fan_in_fan_out: expected true for a gpt2, found false");
  gpt2.config.erase("fan_in_fan_out");
  reopened(gpt2, model_of("gpt2"));
}

TEST(PeftImport, TakesTheDefaultsOfPeftAndIgnoresWhatDoesNotMatter) {
  const nn::ModelConfig model = model_of("qwen2");
  PeftFiles files = test::peft_files(model, {.rank = 8, .alpha = 8, .targets = {"k_proj"}});
  files.config = {{"peft_type", "LORA"},       {"rank_pattern", json::object()}, {"modules_to_save", nullptr},
                  {"init_lora_weights", true}, {"peft_version", "0.21.2"},       {"exclude_modules", nullptr},
                  {"some_new_field", {1, 2}}};
  EXPECT_EQ(reopened(files, model).model.adapters, (nn::AdapterConfig{.rank = 8, .alpha = 8, .targets = {"k_proj"}}));
}

TEST(PeftImport, RefusesTensorsThatDoNotFitTheBase) {
  const nn::ModelConfig model = model_of("llama");
  const std::string layer = "base_model.model.model.layers.1.self_attn.k_proj";
  const PeftFiles good = test::peft_files(model, {.rank = 2, .targets = {"k_proj"}});
  for (const char half : {'A', 'B'}) {
    PeftFiles files = good;
    const std::string name = layer + ".lora_" + half + ".weight";
    files.tensors.erase(name);
    expect_refused(files, model,
                   "expected tensor '" + name + "' of shape (" + (half == 'A' ? "2, 32" : "16, 2") +
                       "), the other half of an adapter, found none");
  }
  PeftFiles files = good;
  files.config["r"] = 3;
  expect_refused(files, model, "lora_A.weight': expected shape (3, 32) for r = 3 and the base model, found (2, 32)");
  for (const std::string name :
       {"base_model.model.model.layers.2.self_attn.k_proj.lora_A.weight", "base_model.model.model.norm.lora_A.weight",
        "base_model.model.model.layers.0.self_attn.w_proj.lora_B.weight"}) {
    files = good;
    files.tensors[name] = {{1}, {1.0f}};
    expect_refused(files, model, "expected adapters of linear layers that the base model has, found tensor '" + name);
  }
  for (const std::string name :
       {"base_model.model.lm_head.lora_A.weight", "base_model.model.model.embed_tokens.lora_embedding_A",
        "base_model.model.lm_head.weight"}) {
    files = good;
    files.tensors[name] = {{1}, {1.0f}};
    expect_refused(files, model, "expected adapters of linear layers, which embeddings and the output are not here");
  }
  for (const std::string& name :
       {layer + ".lora_magnitude_vector", layer + ".lora_B.bias", std::string("a"), std::string(".lora_A.weight"),
        std::string("base_model.model.lora_A.weight"), std::string("model.layers.1.self_attn.k_proj.lora_A.weight")}) {
    files = good;
    files.tensors[name] = {{1}, {1.0f}};
    expect_refused(files, model, "found tensor '" + name + "'");
  }
  files = good;
  files.tensors.clear();
  expect_refused(files, model, "expected the tensors of adapters, found none");
}

TEST(PeftImport, RefusesValuesThatAreNotFiniteOrOfAnotherType) {
  const nn::ModelConfig model = model_of("gpt2");
  const std::string name = "base_model.model.transformer.h.1.mlp.c_fc.lora_B.weight";
  for (const float value : {std::numeric_limits<float>::infinity(), std::numeric_limits<float>::quiet_NaN()}) {
    PeftFiles files = test::peft_files(model, {.rank = 2, .targets = {"c_fc"}});
    files.tensors.at(name).values[5] = value;
    expect_refused(files, model, "tensor '" + name + "': expected finite values, found ");
  }
  PeftFiles files = test::peft_files(model, {.rank = 2, .targets = {"c_fc"}});
  files.tensors.at(name).dtype = safetensors::Dtype::kI32;
  expect_refused(files, model, "tensor '" + name + "': expected F32, F16 or BF16, found I32");
}

TEST(PeftImport, SaysWhatAFolderLacks) {
  const test::TemporaryFolder root;
  const nn::ModelConfig model = model_of("llama");
  const auto message = [&] { return test::message_of([&] { open_peft_folder(root / "peft", model); }); };
  EXPECT_NE(message().find("expected a PEFT folder with an adapter_config.json, found none"), std::string::npos);
  test::peft_files(model, {.rank = 2}).write(root / "peft");
  EXPECT_TRUE(is_peft_folder(root / "peft"));
  std::filesystem::remove(root / "peft/adapter_model.safetensors");
  EXPECT_NE(message().find("expected adapter_model.safetensors, found none"), std::string::npos);
  write_file(root / "peft/adapter_model.bin", "x");
  EXPECT_NE(message().find("found adapter_model.bin; load it with peft"), std::string::npos);
  write_file(root / "peft/adapter_config.json", "[");
  EXPECT_NE(message().find("adapter_config.json: expected JSON"), std::string::npos);
}

}  // namespace
}  // namespace quern::formats
