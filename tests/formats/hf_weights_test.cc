#include "formats/hf_weights.h"

#include <gtest/gtest.h>

#include <vector>

#include "core/files.h"
#include "support/message.h"
#include "support/temporary_folder.h"
#include "tests/formats/hf_files.h"

namespace quern::formats {
namespace {

using safetensors::Dtype;

const std::vector<float> kValues = {1, 2, 3, 4, 5, 6};

void write(const std::filesystem::path& path, const std::vector<std::string>& names, Dtype dtype = Dtype::kF32) {
  std::vector<safetensors::Tensor> tensors;
  for (const std::string& name : names) {
    const size_t count = 4 / dtype_bytes(dtype) * 3;
    tensors.push_back({name, dtype, {2, count}, std::as_bytes(std::span(kValues))});
  }
  FileWriter file(path);
  safetensors::write(file, tensors);
  file.close();
}

std::string message(const std::filesystem::path& folder) {
  return test::message_of([&] { const HfWeights weights(folder); });
}

bool contains(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }

TEST(HfWeights, OneFile) {
  const test::TemporaryFolder folder;
  write(folder / "model.safetensors", {"b", "a"});
  const HfWeights weights(folder.path());
  EXPECT_EQ(weights.names(), (std::vector<std::string>{"a", "b"}));
  const TensorSource source = weights.source("a", "renamed");
  EXPECT_EQ(source.name, "renamed");
  std::vector<float> found(6);
  source.read(0, found);
  EXPECT_EQ(found, kValues);
  EXPECT_TRUE(weights.same_bytes("a", "b"));
}

TEST(HfWeights, SeveralFilesByTheirIndex) {
  const test::TemporaryFolder folder;
  write(folder / "model-00001-of-00002.safetensors",
        {"model.embed_tokens.weight", "model.layers.0.self_attn.q_proj.weight", "not in the index"});
  write_file(folder / "model.safetensors.index.json", hf_index());
  EXPECT_TRUE(contains(message(folder.path()), "model-00002-of-00002.safetensors"));
  write(folder / "model-00002-of-00002.safetensors", {"other"});
  EXPECT_TRUE(
      contains(message(folder.path()), "expected tensor 'lm_head.weight', which model.safetensors.index.json says"));
  std::filesystem::remove(folder / "model-00002-of-00002.safetensors");
  write(folder / "model-00002-of-00002.safetensors", {"lm_head.weight"});
  const HfWeights weights(folder.path());
  EXPECT_EQ(weights.names().size(), 3u);
  EXPECT_FALSE(weights.contains("not in the index"));
  EXPECT_TRUE(weights.file_of("lm_head.weight").ends_with("model-00002-of-00002.safetensors"));
}

TEST(HfWeights, FilesOutsideOfTheFolderAreRefused) {
  for (const char* name : {"../model.safetensors", "/etc/model.safetensors", "a/b.safetensors", "..", ".", "", "passwd",
                           "a\\u0000.safetensors"}) {
    const std::string index = std::string(R"({"weight_map": {"t": ")") + name + "\"}}";
    const std::string found = test::message_of([&] { parse_weight_index(index, "index.json"); });
    EXPECT_TRUE(contains(found, "weight_map.t: expected a file name without a folder")) << name << ": " << found;
  }
  EXPECT_TRUE(
      contains(test::message_of([] { parse_weight_index(R"({"weight_map": {"t": 1}})", "i"); }), "expected text"));
  EXPECT_TRUE(contains(test::message_of([] { parse_weight_index(R"({"weight_map": {}})", "i"); }), "found none"));
}

TEST(HfWeights, OtherTypesAndFormatsAreRefused) {
  const test::TemporaryFolder folder;
  EXPECT_TRUE(
      contains(message(folder.path()), "expected model.safetensors or model.safetensors.index.json, found neither"));
  write_file(folder / "pytorch_model.bin", "x");
  EXPECT_TRUE(contains(message(folder.path()), "expected model.safetensors, found pytorch_model.bin; load it with"));
  write(folder / "model.safetensors", {"a"}, Dtype::kI8);
  const HfWeights weights(folder.path());
  EXPECT_TRUE(
      contains(test::message_of([&] { weights.source("a", "a"); }), "tensor 'a': expected F32, F16 or BF16, found I8"));
}

}  // namespace
}  // namespace quern::formats
