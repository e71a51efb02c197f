#include "formats/export.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <string>
#include <vector>

#include "core/files.h"
#include "nn/models/language_model.h"
#include "support/message.h"
#include "support/temporary_folder.h"

namespace quern::formats {
namespace {

namespace fs = std::filesystem;

// A small Llama whose weights are all `value`.
class Exported {
 public:
  explicit Exported(float value) {
    config_ = {.family = nn::Family::kLlama, .layers = 2, .heads = 2, .width = 32, .context = 16, .vocabulary = 64};
    const nn::Declaration declaration = nn::declare(config_);
    values_.assign(declaration.parameters.size(), value);
    for (const nn::Parameter& parameter : declaration.parameters.all()) {
      weights_.push_back(memory_tensor(parameter.name, parameter.shape,
                                       std::span<const float>(values_).subspan(parameter.offset, parameter.size)));
    }
  }
  ExportedModel model() const {
    return {.name = "run", .model = config_, .weights = weights_, .tokenizer = nullptr, .files = {}};
  }

 private:
  nn::ModelConfig config_;
  std::vector<float> values_;
  std::vector<TensorSource> weights_;
};

// 65504 is the largest F16, and 65519 still rounds to it.
TEST(Export, ValuesThatF16CannotHoldAreAnErrorAndNothingIsLeft) {
  const test::TemporaryFolder root;
  const ExportOptions f16{.to = ExportFormat::kHf, .type = GgmlType::kF16};
  export_model(Exported(65519.0f).model(), root / "fits", f16);
  EXPECT_TRUE(fs::exists(root / "fits/model.safetensors"));
  const Exported large(65520.0f);
  const std::string message = test::message_of([&] { export_model(large.model(), root / "large", f16); });
  EXPECT_NE(message.find("model.embed_tokens.weight: expected values of up to 65504 for f16, found 65520"),
            std::string::npos)
      << message;
  EXPECT_FALSE(fs::exists(root / "large"));
  EXPECT_EQ(std::distance(fs::directory_iterator(root / "."), {}), 1);
  export_model(large.model(), root / "large", {.to = ExportFormat::kHf, .type = GgmlType::kBF16});
}

// A folder or file of another program may be the only copy of a model.
TEST(Export, ForceReplacesExportsOnly) {
  const test::TemporaryFolder root;
  const Exported exported(0.5f);
  const ExportOptions force{.to = ExportFormat::kHf, .type = GgmlType::kF32, .force = true};
  export_model(exported.model(), root / "out", force);
  export_model(exported.model(), root / "out", force);
  fs::create_directory_symlink(root / "out", root / "link");
  export_model(exported.model(), root / "link", force);
  fs::create_directory(root / "foreign");
  fs::copy_file(root / "out/config.json", root / "foreign/config.json");
  {
    FileWriter file(root / "foreign/model.safetensors", root / "foreign/model.safetensors");
    const std::vector<float> values(4);
    const std::vector<safetensors::Tensor> tensors = {
        {"a", safetensors::Dtype::kF32, {4}, std::as_bytes(std::span(values))}};
    safetensors::write(file, tensors, {{"format", "pt"}});
    file.close();
  }
  const std::string message = test::message_of([&] { export_model(exported.model(), root / "foreign", force); });
  EXPECT_NE(message.find("expected an earlier export to replace"), std::string::npos) << message;
  EXPECT_EQ(safetensors::File(root / "foreign/model.safetensors").tensors().size(), 1u);
}

TEST(Export, ReportsItsProgressUpToTheEnd) {
  const test::TemporaryFolder root;
  const Exported exported(0.5f);
  uint64_t last = 0, all = 0;
  ExportOptions options{.to = ExportFormat::kHf, .type = GgmlType::kBF16};
  options.progress = [&](uint64_t done, uint64_t total) {
    EXPECT_GE(done, last);
    last = done;
    all = total;
  };
  export_model(exported.model(), root / "out", options);
  EXPECT_GT(all, 0u);
  EXPECT_EQ(last, all);
}

}  // namespace
}  // namespace quern::formats
