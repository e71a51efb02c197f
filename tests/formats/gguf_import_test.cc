// GGUF files as models: what their keys and tensors must say.
#include <gtest/gtest.h>

#include <functional>
#include <map>

#include "core/files.h"
#include "formats/gguf.h"
#include "formats/gguf_names.h"
#include "formats/gguf_writer.h"
#include "formats/model_source.h"
#include "nn/models/language_model.h"
#include "support/message.h"
#include "support/support.h"
#include "support/temporary_folder.h"

namespace quern::formats {
namespace {

const nn::ModelConfig kModel = {.family = nn::Family::kLlama,
                                .layers = 1,
                                .heads = 4,
                                .width = 32,
                                .context = 16,
                                .vocabulary = 10,
                                .max_context = 16,
                                .inner_width = 64,
                                .norm_epsilon = 1e-5,
                                .kv_heads = 2,
                                .head_width = 8};

struct Changes {
  std::map<std::string, uint64_t> keys = {};           // instead of the usual values
  std::function<void(GgufOutputTensor&)> tensor = {};  // called for each
};

// Writes the model with values 0, 1, 2, ... in every parameter.
std::filesystem::path write_model(const test::TemporaryFolder& folder, const Changes& changes = {}) {
  std::map<std::string, uint64_t> sizes = {{"llama.block_count", 1},          {"llama.context_length", 16},
                                           {"llama.embedding_length", 32},    {"llama.feed_forward_length", 64},
                                           {"llama.attention.head_count", 4}, {"llama.attention.head_count_kv", 2}};
  for (const auto& [key, value] : changes.keys) sizes[key] = value;
  GgufKeys keys;
  keys.add_text("general.architecture", "llama");
  keys.add_real("llama.attention.layer_norm_rms_epsilon", 1e-5);
  for (const auto& [key, value] : sizes) keys.add_whole(key, value);
  std::vector<std::vector<float>> storage;
  std::vector<GgufOutputTensor> tensors;
  const nn::Declaration declaration = nn::declare(kModel);
  storage.reserve(declaration.parameters.all().size());
  for (const nn::Parameter& parameter : declaration.parameters.all()) {
    storage.emplace_back(parameter.size);
    for (size_t i = 0; i < parameter.size; ++i) storage.back()[i] = static_cast<float>(i);
    const GgufPlace place = gguf_place(kModel, parameter.name);
    TensorSource source = to_gguf(kModel, place, memory_tensor(parameter.name, parameter.shape, storage.back()));
    source.name = place.name;
    tensors.push_back({std::move(source), GgmlType::kF32});
    if (changes.tensor) changes.tensor(tensors.back());
  }
  AtomicFile file(folder / "a.gguf");
  write_gguf(file.writer(), keys, tensors);
  file.commit();
  return folder / "a.gguf";
}

std::string message(const Changes& changes) {
  const test::TemporaryFolder folder;
  const std::filesystem::path path = write_model(folder, changes);
  return test::message_of([&] { open_gguf_model(path); });
}

bool contains(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }

TEST(GgufImport, ReadsKeysAndUndoesTheOrderOfRows) {
  const test::TemporaryFolder folder;
  const ModelSource source = open_gguf_model(write_model(folder));
  EXPECT_EQ(source.config.model, kModel);
  EXPECT_EQ(source.type, "F32");
  EXPECT_EQ(source.tokenizer, nullptr);
  for (const TensorSource& tensor : source.tensors) {
    std::vector<float> values(tensor.size());
    tensor.read(0, values);
    for (size_t i = 0; i < values.size(); ++i) ASSERT_EQ(values[i], static_cast<float>(i)) << tensor.name;
  }
}

// Heads of 8: rows 0 to 7 of the file are rows 0, 4, 1, 5, 2, 6, 3, 7 of Hugging Face.
TEST(GgufImport, PairsOfRotaryPositionsAreNeighboursInTheFile) {
  const test::TemporaryFolder folder;
  const GgufFile file(write_model(folder));
  const GgufTensor* q = file.find_tensor("blk.0.attn_q.weight");
  ASSERT_NE(q, nullptr);
  std::vector<float> values(32 * 32);
  stored_tensor("q", q->shape, q->type, q->bytes).read(0, values);
  constexpr size_t kRows[] = {0, 4, 1, 5, 2, 6, 3, 7};
  for (size_t row = 0; row < 32; ++row) {
    EXPECT_EQ(values[row * 32], static_cast<float>((row / 8 * 8 + kRows[row % 8]) * 32)) << row;
  }
}

// llama.cpp takes a factor without a type for linear scaling.
TEST(GgufImport, AFactorWithoutATypeScalesLinearly) {
  const test::TemporaryFolder folder;
  const ModelSource source = open_gguf_model(write_model(folder, {.keys = {{"llama.rope.scaling.factor", 2}}}));
  EXPECT_EQ(source.config.model.rotary.scaling, nn::RotaryScaling::kLinear);
  EXPECT_EQ(source.config.model.rotary.factor, 2.0);
}

TEST(GgufImport, OtherModelsAreErrorsThatNameTheKeyOrTensor) {
  EXPECT_TRUE(contains(message({.keys = {{"llama.rope.scaling.attn_factor", 2}}}),
                       "key 'llama.rope.scaling.attn_factor': expected 1, because"));
  EXPECT_TRUE(
      contains(message({.keys = {{"llama.expert_count", 8}}}), "key 'llama.expert_count': expected 0, because"));
  EXPECT_TRUE(
      contains(message({.keys = {{"llama.rope.dimension_count", 4}}}), "'llama.rope.dimension_count': expected 8"));
  EXPECT_TRUE(contains(message({.keys = {{"llama.attention.value_length", 4}}}), "'llama.attention.value_length'"));
  EXPECT_TRUE(contains(message({.keys = {{"llama.block_count", 2}}}),
                       "expected tensor 'blk.1.attn_norm.weight' of shape (32), found none of that name"));
  EXPECT_TRUE(
      contains(message({.keys = {{"llama.block_count", 0}}}), "key 'llama.block_count': expected a whole number"));
  EXPECT_TRUE(contains(message({.keys = {{"llama.feed_forward_length", 32}}}),
                       "expected shape (32, 32), as the keys say, found (64, 32)"));
  const auto rename = [](GgufOutputTensor& tensor) {
    if (tensor.source.name == "blk.0.ffn_norm.weight") tensor.source.name = "blk.0.strange.weight";
  };
  EXPECT_TRUE(contains(message({.tensor = rename}), "expected tensor 'blk.0.ffn_norm.weight'"));
}

}  // namespace
}  // namespace quern::formats
