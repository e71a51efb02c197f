// Adapters alone: folders for PEFT, and GGUF files for llama.cpp.
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <string>
#include <vector>

#include "core/json.h"
#include "formats/export.h"
#include "formats/gguf.h"
#include "formats/peft.h"
#include "nn/models/language_model.h"
#include "support/message.h"
#include "support/peft_files.h"
#include "support/temporary_folder.h"

namespace quern::formats {
namespace {

namespace fs = std::filesystem;

// The adapters of a model: matrix `i` has the values i, i + 1/1024, ..., which F16 and BF16 cannot all represent.
class Adapters {
 public:
  Adapters(const nn::ModelConfig& model, const nn::AdapterConfig& adapters) : model_(model) {
    model_.adapters = adapters;
    const nn::Declaration declaration = nn::declare(model_);
    values_.resize(declaration.parameters.size());
    for (size_t i = 0; const nn::Parameter& parameter : declaration.parameters.all()) {
      if (!parameter.adapter) continue;
      const auto values = std::span(values_).subspan(parameter.offset, parameter.size);
      for (size_t j = 0; j < values.size(); ++j) values[j] = static_cast<float>(i) + static_cast<float>(j) / 1024;
      weights_.push_back(memory_tensor(parameter.name, parameter.shape, values));
      ++i;
    }
  }
  ExportedModel exported() const {
    return {.name = "run", .model = model_, .weights = weights_, .tokenizer = nullptr, .files = {}, .base = "a/base"};
  }

 private:
  nn::ModelConfig model_;
  std::vector<float> values_;
  std::vector<TensorSource> weights_;
};

nn::ModelConfig model_of(size_t index) { return test::adapted_models()[index].second; }

std::vector<float> floats(std::span<const std::byte> bytes) {
  std::vector<float> values(bytes.size() / sizeof(float));
  std::memcpy(values.data(), bytes.data(), bytes.size());
  return values;
}

std::vector<float> read_all(const TensorSource& source) {
  std::vector<float> values(source.size());
  source.read(0, values);
  return values;
}

const TensorSource& weight(const ExportedModel& model, const std::string& name) {
  for (const TensorSource& tensor : model.weights) {
    if (tensor.name == name) return tensor;
  }
  throw Error("no {}", name);
}

TEST(PeftExport, WritesPeftsNamesAndSettings) {
  const test::TemporaryFolder root;
  const Adapters adapters(model_of(0), {.rank = 2, .alpha = 6, .targets = {"c_attn"}});
  const ExportResult result = export_model(adapters.exported(), root / "out", {.to = ExportFormat::kPeft});
  EXPECT_EQ(result.files, (std::vector<std::string>{"adapter_model.safetensors", "adapter_config.json"}));
  const safetensors::File file(root / "out/adapter_model.safetensors");
  ASSERT_EQ(file.tensors().size(), 4u);
  const safetensors::Tensor* b = file.find("base_model.model.transformer.h.1.attn.c_attn.lora_B.weight");
  ASSERT_NE(b, nullptr);
  EXPECT_EQ(b->shape, (std::vector<size_t>{96, 2}));
  EXPECT_EQ(floats(b->bytes), read_all(weight(adapters.exported(), "h.1.attn.c_attn.lora_B.weight")));
  const nlohmann::json config = parse_json(read_file(root / "out/adapter_config.json", 10000));
  EXPECT_EQ(config["base_model_name_or_path"], "a/base");
  EXPECT_EQ(config["target_modules"], nlohmann::json({"c_attn"}));
  EXPECT_EQ(config["lora_alpha"].dump(), "6");
  EXPECT_TRUE(config["fan_in_fan_out"]);
}

TEST(PeftExport, RoundsToTheWantedType) {
  const test::TemporaryFolder root;
  const Adapters adapters(model_of(1), {.rank = 2});
  export_model(adapters.exported(), root / "out", {.to = ExportFormat::kPeft, .type = GgmlType::kBF16});
  const safetensors::File file(root / "out/adapter_model.safetensors");
  for (const safetensors::Tensor& tensor : file.tensors()) EXPECT_EQ(tensor.dtype, safetensors::Dtype::kBF16);
}

// Row 2j + i of a head of a llama is Hugging Face's row i d/2 + j; heads have 8 rows here.
TEST(GgufLora, RowsOfQueriesAndKeysOfALlamaAreInItsOrder) {
  const test::TemporaryFolder root;
  const Adapters adapters(model_of(1), {.rank = 3});
  export_model(adapters.exported(), root / "a.gguf", {.to = ExportFormat::kGgufLora});
  const GgufFile file(root / "a.gguf");
  EXPECT_EQ(file.text("general.type"), "adapter");
  EXPECT_EQ(file.text("general.architecture"), "llama");
  EXPECT_EQ(file.text("adapter.type"), "lora");
  EXPECT_EQ(file.real("adapter.lora.alpha", 0, 100), 32.0);
  EXPECT_EQ(file.tensors().size(), 2u * 7u * 2u);
  for (const auto& [layer, name, rows] :
       {std::tuple{"self_attn.q_proj", "attn_q", size_t{32}}, std::tuple{"self_attn.k_proj", "attn_k", size_t{16}}}) {
    const GgufTensor* b = file.find_tensor(fmt::format("blk.1.{}.weight.lora_b", name));
    ASSERT_NE(b, nullptr);
    ASSERT_EQ(b->shape, (std::vector<size_t>{rows, 3}));
    const std::vector<float> stored = floats(b->bytes);
    const std::vector<float> ours =
        read_all(weight(adapters.exported(), fmt::format("model.layers.1.{}.lora_B.weight", layer)));
    for (size_t row = 0; row < rows; ++row) {
      const size_t j = row % 8 / 2, i = row % 2, from = row / 8 * 8 + i * 4 + j;
      for (size_t k = 0; k < 3; ++k) EXPECT_EQ(stored[row * 3 + k], ours[from * 3 + k]) << layer << " row " << row;
    }
  }
  for (const auto& [layer, name] : {std::pair{"self_attn.q_proj.lora_A", "attn_q.weight.lora_a"},
                                    std::pair{"self_attn.v_proj.lora_B", "attn_v.weight.lora_b"},
                                    std::pair{"mlp.down_proj.lora_B", "ffn_down.weight.lora_b"}}) {
    const GgufTensor* found = file.find_tensor(fmt::format("blk.0.{}", name));
    ASSERT_NE(found, nullptr) << name;
    EXPECT_EQ(floats(found->bytes),
              read_all(weight(adapters.exported(), fmt::format("model.layers.0.{}.weight", layer))));
  }
}

TEST(GgufLora, MatricesOfOtherFamiliesAreThoseOfPeft) {
  for (const size_t index : {size_t{0}, size_t{2}, size_t{3}}) {
    const test::TemporaryFolder root;
    const Adapters adapters(model_of(index), {.rank = 3});
    export_model(adapters.exported(), root / "a.gguf", {.to = ExportFormat::kGgufLora});
    const GgufFile file(root / "a.gguf");
    const ExportedModel exported = adapters.exported();
    ASSERT_EQ(file.tensors().size(), exported.weights.size());
    for (size_t i = 0; i < exported.weights.size(); ++i) {
      EXPECT_EQ(file.tensors()[i].shape, exported.weights[i].shape) << exported.weights[i].name;
      EXPECT_EQ(floats(file.tensors()[i].bytes), read_all(exported.weights[i])) << exported.weights[i].name;
    }
  }
  const test::TemporaryFolder root;
  export_model(Adapters(model_of(0), {.rank = 3}).exported(), root / "a.gguf", {.to = ExportFormat::kGgufLora});
  const GgufTensor* qkv = GgufFile(root / "a.gguf").find_tensor("blk.0.attn_qkv.weight.lora_b");
  ASSERT_NE(qkv, nullptr);
}

// llama.cpp has no other scale than alpha / rank.
TEST(GgufLora, RankStabilizedAdaptersHaveTheAlphaOfTheSameScale) {
  const test::TemporaryFolder root;
  const Adapters adapters(model_of(2), {.rank = 9, .alpha = 6, .rank_stabilized = true});
  export_model(adapters.exported(), root / "a.gguf", {.to = ExportFormat::kGgufLora, .type = GgmlType::kF16});
  const GgufFile file(root / "a.gguf");
  EXPECT_FLOAT_EQ(static_cast<float>(file.real("adapter.lora.alpha", 0, 100) / 9), 6.0f / std::sqrt(9.0f));
  for (const GgufTensor& tensor : file.tensors()) EXPECT_EQ(tensor.type, GgmlType::kF16);
}

TEST(AdapterExport, RefusesBlocksOfQ8) {
  const test::TemporaryFolder root;
  const Adapters adapters(model_of(1), {.rank = 32});
  for (const ExportFormat format : {ExportFormat::kPeft, ExportFormat::kGgufLora}) {
    const std::string message = test::message_of(
        [&] { export_model(adapters.exported(), root / "out", {.to = format, .type = GgmlType::kQ8_0}); });
    EXPECT_NE(message.find("dtype: expected f32, f16 or bf16 for adapters"), std::string::npos) << message;
  }
  EXPECT_FALSE(fs::exists(root / "out"));
}

// The adapters of another program may be the only copy, and so may be a whole model of the same name.
TEST(AdapterExport, ForceReplacesExportsOfTheSameFormatOnly) {
  const test::TemporaryFolder root;
  const nn::AdapterConfig settings{.rank = 2};
  const Adapters adapters(model_of(1), settings);
  const auto write = [&](const fs::path& out, ExportFormat format, bool force) {
    return test::message_of([&] { export_model(adapters.exported(), out, {.to = format, .force = force}); });
  };
  EXPECT_EQ(write(root / "out", ExportFormat::kPeft, false), "no error");
  EXPECT_NE(write(root / "out", ExportFormat::kPeft, false).find("replace this export with --force"),
            std::string::npos);
  EXPECT_EQ(write(root / "out", ExportFormat::kPeft, true), "no error");
  EXPECT_NE(write(root / "out", ExportFormat::kHf, true).find("expected an earlier export"), std::string::npos);
  test::peft_files(model_of(1), settings).write(root / "foreign");
  EXPECT_NE(write(root / "foreign", ExportFormat::kPeft, true).find("expected an earlier export"), std::string::npos);
  EXPECT_EQ(write(root / "a.gguf", ExportFormat::kGgufLora, false), "no error");
  EXPECT_EQ(write(root / "a.gguf", ExportFormat::kGgufLora, true), "no error");
  EXPECT_NE(write(root / "a.gguf", ExportFormat::kGguf, true).find("found another file"), std::string::npos);
}

}  // namespace
}  // namespace quern::formats
