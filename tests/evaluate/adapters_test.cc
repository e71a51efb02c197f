// Runs with adapters: imported from PEFT, used, exported again and merged.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include "checkpoint/tensor_refs.h"
#include "config/model_settings.h"
#include "config/run_folder.h"
#include "evaluate/import_adapters.h"
#include "evaluate/load.h"
#include "evaluate/sequences.h"
#include "formats/hf_config.h"
#include "formats/peft_import.h"
#include "support/message.h"
#include "support/peft_files.h"
#include "support/temporary_folder.h"

namespace quern::train {
namespace {

namespace fs = std::filesystem;
using formats::ExportFormat;
using formats::GgmlType;

void ignore(const std::string&) {}

// A run with random weights, as an import leaves it.
void write_run(const nn::ModelConfig& model, const fs::path& folder) {
  const auto made = nn::make_language_model(model, false);
  made->initialise(7);
  std::mt19937 generator(3);
  std::normal_distribution<float> normal(0.0f, 0.2f);
  for (float& value : made->weights().values()) value += normal(generator);  // biases too
  RunConfig config;
  set_model(config, model, 0.0);
  config.train.steps = 0;
  checkpoint::save(folder / kCheckpointFolder, {checkpoint::weight_refs(*made), {}}, RunState{.seed = 1},
                   formats::to_json({.model = model}));
  write_config(config, folder);
}

std::vector<float> logits(const fs::path& run) {
  const TrainedModel trained = load_model(run, ignore);
  std::vector<int32_t> tokens(2 * 16);
  for (size_t i = 0; i < tokens.size(); ++i) tokens[i] = static_cast<int32_t>(i * 7 % 50);
  std::vector<float> out(tokens.size() * trained.model->config().vocabulary);
  compute_logits(*trained.model, {tokens, 2, 16}, 1, out);
  return out;
}

// The largest difference, relative to the largest logit.
double difference(const std::vector<float>& a, const std::vector<float>& b) {
  double largest = 0.0, scale = 0.0;
  for (size_t i = 0; i < a.size(); ++i) {
    largest = std::max(largest, std::abs(static_cast<double>(a[i]) - static_cast<double>(b[i])));
    scale = std::max(scale, std::abs(static_cast<double>(a[i])));
  }
  return largest / scale;
}

struct Case {
  std::string name;
  nn::ModelConfig model;
  nn::AdapterConfig adapters;
};
std::vector<Case> cases() {
  std::vector<Case> all;
  for (const auto& [name, model] : test::adapted_models()) {
    all.push_back({name, model, {.rank = 3, .alpha = 6}});
    all.push_back({name + ", some layers", model, {.rank = 5, .alpha = 4, .rank_stabilized = true}});
    all.back().adapters.targets = model.is_gpt2() ? std::vector<std::string>{"h.0.mlp.c_proj", "h.1.attn.c_attn"}
                                                  : std::vector<std::string>{"k_proj", "o_proj", "up_proj"};
  }
  return all;
}

// The export of an imported adapter has its bits, in every type.
TEST(ImportAdapters, ExportsWhatWasImported) {
  for (const Case& test : cases()) {
    const test::TemporaryFolder root;
    write_run(test.model, root / "base");
    test::peft_files(test.model, test.adapters).write(root / "peft");
    import_adapters(root / "peft", root / "base", root / "run", {}, ignore);
    for (const auto& [type, name] :
         {std::pair{GgmlType::kF32, "f32"}, std::pair{GgmlType::kF16, "f16"}, std::pair{GgmlType::kBF16, "bf16"}}) {
      const auto out = [&](const char* step) { return root / fmt::format("{}-{}", name, step); };
      open_model(root / "run", ignore).export_to(out("a"), {.to = ExportFormat::kPeft, .type = type});
      import_adapters(out("a"), root / "base", out("run"), {}, ignore);
      open_model(out("run"), ignore).export_to(out("b"), {.to = ExportFormat::kPeft, .type = type});
      EXPECT_EQ(read_file(out("a") / "adapter_model.safetensors", 1 << 20),
                read_file(out("b") / "adapter_model.safetensors", 1 << 20));
      EXPECT_EQ(read_file(out("a") / "adapter_config.json", 1 << 20),
                read_file(out("b") / "adapter_config.json", 1 << 20));
    }
    const safetensors::File given(root / "peft/adapter_model.safetensors"),
        kept(root / "f32-a/adapter_model.safetensors");
    EXPECT_EQ(checkpoint::weights_hash(given), checkpoint::weights_hash(kept)) << test.name;
    EXPECT_EQ(open_model(root / "run", ignore).model.adapters.scale(), test.adapters.scale());
  }
}

TEST(ImportAdapters, MergedModelComputesWhatBaseAndAdaptersDo) {
  for (const Case& test : cases()) {
    const test::TemporaryFolder root;
    write_run(test.model, root / "base");
    test::peft_files(test.model, test.adapters).write(root / "peft");
    import_adapters(root / "peft", root / "base", root / "run", {}, ignore);
    const std::vector<float> adapted = logits(root / "run");
    EXPECT_GT(difference(adapted, logits(root / "base")), 1e-2) << test.name;
    open_model(root / "run", ignore).export_to(root / "saved", {.to = ExportFormat::kHf, .merge = true});
    load_model(root / "run", ignore).export_to(root / "loaded", {.to = ExportFormat::kHf, .merge = true});
    EXPECT_EQ(read_file(root / "saved/model.safetensors", 1 << 24),
              read_file(root / "loaded/model.safetensors", 1 << 24));
    formats::import_model(root / "saved", root / "merged");
    EXPECT_LT(difference(adapted, logits(root / "merged")), 1e-5) << test.name;
    load_model(root / "run", ignore).export_to(root / "a.gguf", {.to = ExportFormat::kGguf, .merge = true});
    formats::import_model(root / "a.gguf", root / "again");
    EXPECT_EQ(logits(root / "merged"), logits(root / "again")) << test.name;
  }
}

// The adapters of the base become part of the model that the new ones belong to.
TEST(ImportAdapters, ABaseWithAdaptersIsMerged) {
  const Case test = cases()[2];
  const test::TemporaryFolder root;
  write_run(test.model, root / "base");
  test::peft_files(test.model, test.adapters).write(root / "peft");
  import_adapters(root / "peft", root / "base", root / "first", {}, ignore);
  const std::vector<float> first = logits(root / "first");
  test::PeftFiles zero = test::peft_files(test.model, test.adapters, 2);
  for (auto& [name, tensor] : zero.tensors) std::ranges::fill(tensor.values, 0.0f);
  zero.write(root / "zero");
  import_adapters(root / "zero", root / "first", root / "second", {}, ignore);
  EXPECT_LT(difference(first, logits(root / "second")), 1e-5);
  open_model(root / "second", ignore).export_to(root / "out", {.to = ExportFormat::kPeft});
  const std::string config = read_file(root / "out/adapter_config.json", 1 << 20);
  EXPECT_NE(config.find((root / "second/base/step-00000000").string()), std::string::npos) << config;
}

TEST(ImportAdapters, KeepsTheFilesOfTheBaseAndTheChatTemplateOfTheAdapters) {
  const Case test = cases()[0];
  const test::TemporaryFolder root;
  write_run(test.model, root / "base");
  write_file(root / "base/generation_config.json", R"({"eos_token_id": 5})");
  write_file(root / "base/chat_template.jinja", "old");
  test::peft_files(test.model, test.adapters).write(root / "peft");
  write_file(root / "peft/chat_template.jinja", "new");
  EXPECT_TRUE(import_adapters(root / "peft", root / "base", root / "run", {}, ignore).has_chat_template);
  EXPECT_EQ(read_file(root / "run/chat_template.jinja", 100), "new");
  EXPECT_EQ(read_file(root / "run/checkpoints/step-00000000/chat_template.jinja", 100), "new");
  EXPECT_EQ(load_model(root / "run", ignore).end_tokens, std::vector<int32_t>{5});
  EXPECT_EQ(fs::hard_link_count(root / "run/base/step-00000000/model.safetensors"), 2u);
}

TEST(ImportAdapters, NothingIsLeftOfOneThatFails) {
  const Case test = cases()[0];
  const test::TemporaryFolder root;
  write_run(test.model, root / "base");
  test::PeftFiles files = test::peft_files(test.model, test.adapters);
  files.tensors.rbegin()->second.values.back() = std::nanf("");
  files.write(root / "peft");
  const std::string message =
      test::message_of([&] { import_adapters(root / "peft", root / "base", root / "run", {}, ignore); });
  EXPECT_NE(message.find("expected finite values, found nan"), std::string::npos) << message;
  EXPECT_EQ(test::names_in(root / "."), (std::set<std::string>{"base", "peft"}));
  const std::string without = test::message_of([&] { formats::import_model(root / "peft", root / "run"); });
  EXPECT_NE(without.find("found the adapters of one; import the model first, then the adapters with --base RUN"),
            std::string::npos)
      << without;
}

TEST(ExportAdapters, NobodyGetsAMergedModelWithoutAskingForIt) {
  const Case test = cases()[2];
  const test::TemporaryFolder root;
  write_run(test.model, root / "base");
  test::peft_files(test.model, test.adapters).write(root / "peft");
  import_adapters(root / "peft", root / "base", root / "run", {}, ignore);
  const auto message = [&](const char* run, ExportFormat to, bool merge) {
    return test::message_of(
        [&] { open_model(root / run, ignore).export_to(root / "out", {.to = to, .merge = merge}); });
  };
  for (const ExportFormat to : {ExportFormat::kHf, ExportFormat::kGguf}) {
    const std::string found = message("run", to, false);
    for (const char* choice : {"--merge", "--to peft", "--to gguf-lora"}) {
      EXPECT_NE(found.find(choice), std::string::npos) << found;
    }
    EXPECT_NE(message("base", to, true).find("expected a run with adapters to merge"), std::string::npos);
  }
  for (const ExportFormat to : {ExportFormat::kPeft, ExportFormat::kGgufLora}) {
    EXPECT_NE(message("run", to, true).find("expected --to hf or --to gguf"), std::string::npos);
    EXPECT_NE(message("base", to, false).find("choose --to hf or --to gguf"), std::string::npos);
  }
  EXPECT_FALSE(fs::exists(root / "out"));
}

}  // namespace
}  // namespace quern::train
