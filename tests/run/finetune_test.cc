// Runs that adapt a model to conversations: one result, whatever happens on the way.
#include <fmt/format.h>

#include <fstream>
#include <map>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "chat/conversation_files.h"
#include "chat/marked_tokens.h"
#include "config/recompute.h"
#include "config/run_folder.h"
#include "core/files.h"
#include "core/sha256.h"
#include "data/stories.h"
#include "diagnose/incidents.h"
#include "diagnose/rerun_step.h"
#include "dist/thread_ranks.h"
#include "evaluate/base_model.h"
#include "evaluate/load.h"
#include "run/finetune_settings.h"
#include "run/run.h"
#include "run/source_run.h"
#include "support/modern.h"

namespace quern::train {
namespace {

class FinetuneTest : public IncidentTest {
 protected:
  static constexpr uint64_t kContext = 40, kConversations = 30;

  FinetuneTest() {
    std::mt19937 random(1);
    std::ofstream file(root_ / "chats.jsonl", std::ios::binary);
    for (size_t i = 0; i < kConversations; ++i) {
      const auto word = [&](size_t most) {
        std::string text;
        for (size_t n = 1 + random() % most; n > 0; --n) text += static_cast<char>('a' + random() % 26);
        return text;
      };
      file << fmt::format("{{\"prompt\": \"{}\", \"completion\": \"{}\"}}\n", word(12), word(18));
    }
  }

  void train_base(const std::string& name, RunConfig::Model (*kind)(RunConfig::Model)) {
    std::string letters;
    for (char c = ' '; c < 127; ++c) letters += c;
    std::ofstream(root_ / "text.txt", std::ios::binary) << letters + data::stories_text(1, 20'000);
    RunConfig config;
    config.model = kind({.layers = 3, .heads = 2, .width = 16, .context = kContext, .vocabulary = 0, .dropout = 0.1});
    config.train.steps = 6;
    config.train.batch = 4;
    config.train.threads = 2;
    config.train.validation_interval = 0;
    config.data.paths = {(root_ / "text.txt").string()};
    Listener listener;
    start(config, name, listener);
  }

  // LoRA with both kinds of dropout on packed conversations, validated and saved on the way.
  RunConfig lora(const std::string& base = "base") {
    if (!fs::exists(root_ / base)) train_base(base, [](RunConfig::Model model) { return model; });
    RunConfig config = finetune_config(root_ / base);
    config.data.paths = {(root_ / "chats.jsonl").string()};
    config.lora = {.rank = 3, .alpha = 6, .dropout = 0.1};
    config.model.dropout = 0.1;
    config.train.batch = 8;
    config.train.threads = 2;
    config.train.validation_interval = 2;
    config.data.epochs = 6;
    config.optimizer.rate = 1e-2;
    config.checkpoint.interval = 2;
    return config;
  }

  RunResult start_quietly(const RunConfig& config, const std::string& name, uint64_t stop_after = 0) {
    Listener listener;
    listener.stop_after = stop_after;
    return start(config, name, listener);
  }
  RunResult resume_quietly(const std::string& name, uint64_t stop_after = 0) {
    Listener listener;
    listener.stop_after = stop_after;
    return resume(read_config(root_ / name), name, listener);
  }

  std::string base_hash(const std::string& name) const {
    return checkpoint::weights_hash(open_base(root_ / name).model());
  }

  // Weights and moments.
  std::string files_of(const std::string& name) const {
    const fs::path folder = newest(name).path();
    return read_file(folder / "adapter_model.safetensors", 1 << 30) +
           read_file(folder / "optimizer.safetensors", 1 << 30);
  }

  std::string refusal(const RunConfig& config) {
    const std::string text = message_of([&] { start_quietly(config, "refused"); });
    EXPECT_FALSE(fs::exists(root_ / "refused"));
    return text;
  }
};

TEST_F(FinetuneTest, AdaptersDoNotDependOnThreadsAccumulationOrRecomputation) {
  struct Cut {
    uint64_t threads, batch, accumulation;
    const char* recompute;
  };
  for (const auto& kind : test::model_kinds()) {
    SCOPED_TRACE(kind.name);
    train_base(kind.name, kind.apply);
    const bool muon = kind.name == "Modern" || kind.name == "Llama";
    std::string expected;
    for (const Cut& cut : {Cut{1, 8, 1, "none"}, Cut{2, 4, 2, "sqrt"}, Cut{4, 2, 4, "every-layer"},
                           Cut{7, 8, 1, "every-layer"}, Cut{64, 1, 8, "none"}}) {
      RunConfig config = lora(kind.name);
      if (muon) config.optimizer.kind = OptimizerRule::kMuon;
      config.train.steps = 5;
      config.data.epochs = 0;
      config.train.threads = cut.threads;
      config.train.batch = cut.batch;
      config.train.accumulation = cut.accumulation;
      config.train.recompute = *parse_recompute(cut.recompute);
      const std::string name = fmt::format("{}-{}", kind.name, cut.threads);
      EXPECT_TRUE(start_quietly(config, name).finished);
      if (expected.empty()) expected = files_of(name);
      EXPECT_EQ(files_of(name), expected) << cut.threads << " threads";
      EXPECT_EQ(base_hash(name), hash_of(kind.name));
    }
  }
}

TEST_F(FinetuneTest, TrainsInEveryPrecision) {
  for (const Precision precision : {Precision::kBf16, Precision::kFp16}) {
    RunConfig config = lora();
    config.train.precision = precision;
    std::vector<std::string> files;
    for (const uint64_t threads : {1, 4}) {
      config.train.threads = threads;
      const std::string name = fmt::format("{}-{}", precision_name(precision), threads);
      Listener listener;
      start(config, name, listener);
      EXPECT_LT(listener.steps.back().loss, listener.steps.front().loss);
      EXPECT_TRUE(listener.incidents.empty());
      files.push_back(files_of(name));
    }
    EXPECT_EQ(files[0], files[1]);
  }
}

// Every conversation as often as there are epochs; the last step has what is left.
TEST_F(FinetuneTest, StepsFollowFromEpochs) {
  RunConfig config = lora();
  config.data.packing = false;
  config.data.validation_fraction = 0;
  config.data.epochs = 3;
  config.train.batch = 7;
  Listener listener;
  const RunResult result = start(config, "run", listener);
  EXPECT_EQ(result.step, (3 * kConversations + 6) / 7);
  EXPECT_EQ(read_config(root_ / "run").train.steps, result.step);
}

// The base is in the run: what it was trained from may go.
TEST_F(FinetuneTest, ResumedRunEqualsAnUninterruptedOneWithoutItsBase) {
  const RunConfig config = lora();
  const RunResult whole = start_quietly(config, "whole");
  ASSERT_GT(whole.step, 6u);
  const std::string base = hash_of("base");
  EXPECT_FALSE(start_quietly(config, "cut", 1).finished);
  fs::rename(root_ / "base", root_ / "elsewhere");
  EXPECT_FALSE(resume_quietly("cut", 3).finished);
  EXPECT_FALSE(resume_quietly("cut", 6).finished);
  const RunResult result = resume_quietly("cut");
  EXPECT_TRUE(result.finished);
  EXPECT_EQ(result.validation_loss, whole.validation_loss);
  EXPECT_EQ(files_of("cut"), files_of("whole"));
  EXPECT_EQ(base_hash("cut"), base);
  EXPECT_EQ(load_model(root_ / "cut", {}).state.step, whole.step);
}

TEST_F(FinetuneTest, BaseThatIsMissingOrDamagedIsAnError) {
  start_quietly(lora(), "run", 3);
  const fs::path base = root_ / "run" / kBaseFolder;
  fs::copy(base, root_ / "copy", fs::copy_options::recursive);
  const auto messages = [&](const std::string& expected) {
    EXPECT_NE(message_of([&] { resume_quietly("run"); }).find(expected), std::string::npos)
        << message_of([&] { resume_quietly("run"); });
    EXPECT_NE(message_of([&] { load_model(root_ / "run", {}); }).find(expected), std::string::npos);
  };
  fs::remove_all(base);
  messages("run/base: expected the model that the adapters of this run belong to, found 0 checkpoints");
  fs::copy(root_ / "copy", base, fs::copy_options::recursive);
  const fs::path file =
      checkpoint::Checkpoint(base / "step-00000006", checkpoint::Parts::kWeights).path() / "model.safetensors";
  std::string bytes = read_file(file, 1 << 30);
  bytes[bytes.size() / 2] ^= 1;
  fs::remove(file);
  std::ofstream(file, std::ios::binary) << bytes;
  messages("model.safetensors");
  fs::resize_file(file, bytes.size() / 2);
  messages("model.safetensors");
  fs::remove(file);
  messages("model.safetensors");
  fs::remove_all(base);
  fs::copy(root_ / "copy", base, fs::copy_options::recursive);
  EXPECT_TRUE(resume_quietly("run").finished);
}

// Its base is the merged model: W + s B A of the first run, in fp32.
TEST_F(FinetuneTest, CanStartFromAnAdaptedRun) {
  start_quietly(lora(), "first");
  RunConfig config = lora("first");
  config.lora.rank = 2;
  start_quietly(config, "second", 3);
  const checkpoint::Checkpoint original = newest("base"), base = open_base(root_ / "second");
  std::map<std::string, std::vector<float>> merged;
  {
    const TrainedModel first = load_model(root_ / "first", {});
    const nn::ParameterTable& table = first.model->parameters();
    const auto values = [&](const std::string& name) {
      const auto& parameter = *std::ranges::find(table.all(), name, &nn::Parameter::name);
      return std::as_const(first.model->weights()).values().subspan(parameter.offset, parameter.size);
    };
    for (const nn::Parameter& parameter : table.all()) {
      if (parameter.adapter) continue;
      std::vector<float>& sum = merged[parameter.name];
      sum.assign(values(parameter.name).begin(), values(parameter.name).end());
      const std::string layer = parameter.name.substr(0, parameter.name.rfind('.'));
      const bool adapted =
          parameter.name.ends_with(".weight") &&
          std::ranges::find(table.all(), layer + ".lora_A.weight", &nn::Parameter::name) != table.all().end();
      if (!adapted) continue;
      const std::span<const float> a = values(layer + ".lora_A.weight"), b = values(layer + ".lora_B.weight");
      const size_t rank = 3, in = parameter.shape[0], out = parameter.shape[1];  // of GPT-2: (in, out)
      for (size_t i = 0; i < in; ++i) {
        for (size_t o = 0; o < out; ++o) {
          double change = 0;
          for (size_t r = 0; r < rank; ++r) change += double{b[o * rank + r]} * a[r * in + i];
          sum[i * out + o] += static_cast<float>(2 * change);
        }
      }
    }
  }
  size_t changed = 0;
  for (const auto& [name, expected] : merged) {
    const safetensors::Tensor* tensor = base.model().find(name);
    ASSERT_NE(tensor, nullptr) << name;
    std::vector<float> found(expected.size());
    ASSERT_EQ(tensor->bytes.size(), found.size() * sizeof(float));
    std::memcpy(found.data(), tensor->bytes.data(), tensor->bytes.size());
    for (size_t i = 0; i < found.size(); ++i) ASSERT_NEAR(found[i], expected[i], 1e-6) << name;
    const safetensors::Tensor* before = original.model().find(name);
    changed += std::memcmp(before->bytes.data(), tensor->bytes.data(), tensor->bytes.size()) != 0 ? 1 : 0;
  }
  EXPECT_EQ(changed, 3u * 4);
  const std::string hash = base_hash("second");
  start_quietly(config, "whole");
  fs::remove_all(root_ / "first");
  fs::remove_all(root_ / "base");
  EXPECT_TRUE(resume_quietly("second").finished);
  EXPECT_EQ(base_hash("second"), hash);
  EXPECT_EQ(files_of("second"), files_of("whole"));
}

// More epochs from step 5 on, other threads and recomputation all the time.
TEST_F(FinetuneTest, CanBeExtendedAndChanged) {
  RunConfig config = lora();
  config.train.steps = 4;
  config.data.epochs = 0;
  config.optimizer.warmup = 1;
  start_quietly(config, "whole");
  fs::copy(root_ / "whole", root_ / "cut", fs::copy_options::recursive);
  const auto extended = [&](const std::string& name) {
    RunConfig more = read_config(root_ / name);
    more.train.steps = 9;
    more.optimizer.rate = 3e-3;
    more.model.dropout = 0.2;
    return more;
  };
  Listener listener, stopped;
  EXPECT_EQ(resume(extended("whole"), "whole", listener).step, 9u);
  stopped.stop_after = 6;
  RunConfig other = extended("cut");
  other.train.threads = 7;
  resume(other, "cut", stopped);
  EXPECT_TRUE(resume_quietly("cut").finished);
  EXPECT_EQ(files_of("cut"), files_of("whole"));
  EXPECT_EQ(base_hash("cut"), hash_of("base"));
}

// The model of a run or of an incident that a rollback returns to is complete, also if settings changed in between.
TEST_F(FinetuneTest, IncidentsAreRecordedRerunAndRolledBack) {
  RunConfig config = lora();
  config.data.epochs = 0;
  config.train.steps = 22;
  config.train.validation_interval = 0;
  config.checkpoint.interval = 22;
  config.checkpoint.keep = 9;
  config.optimizer.rate = 1e-5;  // the loss is noise
  start_quietly(config, "start");
  for (const Policy policy : {Policy::kSkip, Policy::kRollback, Policy::kStop}) {
    const std::string name(policy_name(policy));
    SCOPED_TRACE(name);
    fs::copy(root_ / "start", root_ / name, fs::copy_options::recursive);
    RunConfig noisy = read_config(root_ / name);
    noisy.train.steps = 34;
    noisy.optimizer.rate = 2e-5;
    noisy.diagnostics.spike_z = 1e-3;
    noisy.diagnostics.incident_limit = 3;
    noisy.diagnostics.policy = policy;
    fs::copy(root_ / name, root_ / (name + "-2"), fs::copy_options::recursive);
    std::vector<std::string> files;
    for (const std::string& copy : {name, name + "-2"}) {
      Listener listener;
      noisy.train.threads = copy == name ? 1 : 4;
      const std::string error = message_of([&] { resume(noisy, copy, listener); });
      EXPECT_TRUE(listener.warnings.empty()) << listener.warnings.front();
      ASSERT_FALSE(listener.incidents.empty()) << error;
      files.push_back(files_of(copy));
      for (const IncidentReport& report : listener.incidents) {
        for (const size_t threads : {1u, 3u}) {
          const RecordedIncident recorded = load_incident(report.folder);
          EXPECT_FALSE(recorded.tokens.positions.empty());
          const RerunStep again = rerun_step(recorded, threads);
          EXPECT_TRUE(again.same) << report.text;
          EXPECT_FALSE(again.found.findings.pass.has_value());
          EXPECT_NEAR(again.losses.front().loss, recorded.incident.worst_loss, 1e-9);
        }
      }
    }
    EXPECT_EQ(files[0], files[1]);
    EXPECT_EQ(base_hash(name), hash_of("base"));
  }
}

// Back to a checkpoint of other settings: a new stage, with the base of the run.
TEST_F(FinetuneTest, RollbackIntoAnEarlierStageHasTheBase) {
  RunConfig config = lora();
  config.data.epochs = 0;
  config.train.steps = 22;
  config.train.validation_interval = 0;
  config.checkpoint.interval = 20;
  config.checkpoint.keep = 9;
  config.optimizer.rate = 1e-5;
  start_quietly(config, "run");
  RunConfig noisy = read_config(root_ / "run");
  noisy.train.steps = 34;
  noisy.checkpoint.interval = 0;
  noisy.diagnostics.spike_z = 1e-3;
  noisy.diagnostics.incident_limit = 1;
  noisy.diagnostics.policy = Policy::kRollback;
  fs::remove_all(root_ / "run/checkpoints/step-00000022");  // as if it had been damaged
  Listener listener;
  const double before = newest("run").state().loss.value_or(0);
  static_cast<void>(message_of([&] { resume(noisy, "run", listener); }));
  ASSERT_FALSE(listener.incidents.empty());
  EXPECT_LE(listener.incidents.front().resumed_after, 20u);
  for (const StepReport& step : listener.steps) EXPECT_NEAR(step.loss, before, 0.5 * before) << step.step;
}

TEST_F(FinetuneTest, IncidentsOfAdaptersWithNaNNameTheTensor) {
  RunConfig config = lora();
  config.train.steps = 4;
  config.data.epochs = 0;
  start_quietly(config, "run");
  {
    TrainedModel trained = load_model(root_ / "run", {});
    nn::Transformer model(trained.model->config(), false);
    AdamW optimizer(model.parameters(), {});
    const checkpoint::Checkpoint found = newest("run");
    const auto weights = checkpoint::weight_refs(model);
    const auto states = checkpoint::optimizer_refs(model.parameters(), optimizer);
    found.load({weights, states});
    for (const checkpoint::TensorRef& ref : weights) {
      if (ref.name.ends_with("h.1.mlp.c_fc.lora_B.weight")) ref.values[3] = NAN;
    }
    checkpoint::save(root_ / "run/checkpoints", {weights, states, true}, found.state(), {});
  }
  RunConfig more = read_config(root_ / "run");
  more.train.steps = 6;
  Listener listener;
  const std::string error = message_of([&] { resume(more, "run", listener); });
  EXPECT_NE(error.find("h.1.mlp.c_fc.lora_B.weight contains NaN before the step"), std::string::npos) << error;
  ASSERT_EQ(listener.incidents.size(), 1u);
  const RecordedIncident recorded = load_incident(listener.incidents[0].folder);
  const RerunStep again = rerun_step(recorded, 2);
  EXPECT_TRUE(again.same);
  ASSERT_TRUE(again.found.findings.weight.has_value());
  EXPECT_EQ(again.found.findings.weight->tensor, "h.1.mlp.c_fc.lora_B.weight");
  ASSERT_TRUE(again.found.findings.pass.has_value());
  EXPECT_EQ(again.found.findings.pass->tensor, recorded.incident.findings.pass->tensor);
  fs::rename(listener.incidents[0].folder, root_ / "step-00000005");
  EXPECT_NE(message_of([&] { load_incident(root_ / "step-00000005"); }).find("base: expected the model"),
            std::string::npos);
}

TEST_F(FinetuneTest, RanksAreTheRunOfOneProcess) {
  for (const bool muon : {false, true}) {
    RunConfig config = lora();
    config.train.lanes = 4;
    config.train.threads = 1;
    config.data.epochs = 0;
    config.train.steps = 5;
    if (muon) config.optimizer.kind = OptimizerRule::kMuon;
    const std::string whole = fmt::format("whole-{}", muon);
    const RunResult expected = start_quietly(config, whole);
    for (const size_t count : {2, 3}) {
      const std::string name = fmt::format("ranks-{}-{}", count, muon);
      dist::ThreadRanks ranks(count);
      std::vector<std::string> errors(count, "none");
      std::vector<RunResult> results(count);
      {
        std::vector<std::jthread> threads;
        for (size_t rank = 0; rank < count; ++rank) {
          threads.emplace_back([&, rank] {
            Listener listener;
            errors[rank] = message_of(
                [&] { results[rank] = start_run(config, root_ / name, listener, listener.stop, &ranks[rank]); });
          });
        }
      }
      for (size_t rank = 0; rank < count; ++rank) {
        EXPECT_EQ(errors[rank], "no error");
        EXPECT_EQ(results[rank].validation_loss, expected.validation_loss);
      }
      EXPECT_EQ(files_of(name), files_of(whole)) << count << " ranks";
      EXPECT_EQ(base_hash(name), hash_of("base"));
    }
  }
}

// The same conversations in one step: the loss is the mean over the same targets, wherever they are.
TEST_F(FinetuneTest, PackingDoesNotChangeTheLoss) {
  std::vector<StepReport> steps;
  for (const bool packing : {true, false}) {
    RunConfig config = lora();
    config.lora.dropout = config.model.dropout = 0;
    config.data.packing = packing;
    config.data.validation_fraction = 0;
    config.data.epochs = 1;
    config.train.batch = kConversations + 3;  // some rows are empty
    Listener listener;
    start(config, packing ? "packed" : "single", listener);
    ASSERT_EQ(listener.steps.size(), 1u);
    steps.push_back(listener.steps.front());
  }
  EXPECT_NEAR(steps[0].loss, steps[1].loss, 1e-9);
  EXPECT_NEAR(steps[0].gradient_norm, steps[1].gradient_norm, 1e-5 * steps[0].gradient_norm);
}

TEST_F(FinetuneTest, ValidationLossIsTheMeanOverHeldOutTargets) {
  RunConfig config = lora();
  config.data.validation_fraction = 0.3;
  config.train.validation_batches = 0;
  const RunResult result = start_quietly(config, "run");
  ASSERT_TRUE(result.validation_loss.has_value());
  const TrainedModel trained = load_model(root_ / "run", {});
  const std::vector<chat::Conversation> all = chat::read_conversations(root_ / "chats.jsonl");
  double sum = 0;
  uint64_t targets = 0;
  for (size_t i = all.size() - 9; i < all.size(); ++i) {
    for (const chat::MarkedTokens& tokens : chat::mark(all[i], nullptr, *trained.tokenizer)) {
      const size_t T = tokens.ids.size() - 1;
      std::vector<int32_t> wanted(T);
      for (size_t t = 0; t < T; ++t) wanted[t] = tokens.trained[t + 1] != 0 ? tokens.ids[t + 1] : kNoTarget;
      nn::Workspace work(trained.model->activations(), {});
      sum += trained.model->loss(
          {.columns = {{kTokensColumn, tokens.ids.data()}, {kTargetsColumn, wanted.data()}}, .sequences = 1, .T = T},
          work);
      targets += tokens.targets();
    }
  }
  EXPECT_NEAR(*result.validation_loss, sum / static_cast<double>(targets), 1e-6);
}

TEST_F(FinetuneTest, FrozenTensorsDoNotChange) {
  RunConfig config = lora();
  config.lora = {};
  config.train.freeze = {"wte", "h.1", "ln_2"};
  start_quietly(config, "run");
  const checkpoint::Checkpoint before = newest("base"), after = newest("run");
  const nn::Declaration model = nn::declare(load_model(root_ / "run", {}).model->config());
  for (const nn::Parameter& parameter : model.parameters.all()) {
    const auto bytes = [&](const checkpoint::Checkpoint& found) { return found.model().find(parameter.name)->bytes; };
    const bool frozen = parameter.name.starts_with("wte") || parameter.name.starts_with("h.1.") ||
                        parameter.name.find("ln_2") != std::string::npos;
    EXPECT_EQ(std::ranges::equal(bytes(before), bytes(after)), frozen) << parameter.name;
  }
  config.train.freeze = {"wte", "h.7"};
  EXPECT_NE(refusal(config).find("train.freeze: expected parts of parameters' names"), std::string::npos);
  config.train.freeze = {"wte", "wpe", "h", "ln_f"};
  EXPECT_NE(refusal(config).find("train.freeze: expected something left to train"), std::string::npos);
  config.train.freeze = {"wte"};
  config.lora.rank = 2;
  EXPECT_NE(refusal(config).find("train.freeze: expected none with lora.rank"), std::string::npos);
}

TEST_F(FinetuneTest, MemoryIsWhatWasPlanned) {
  struct Watch : Listener {
    void on_start(const RunStart& start) override {
      plan = start.plan->memory;
      trainable = start.trainable;
    }
    void on_step(const StepReport& report) override {
      if (report.memory) memory = *report.memory;
    }
    MemoryPlan plan;
    MemoryUse memory;
    size_t trainable = 0;
  } watch;
  RunConfig config = lora();
  config.train.threads = 3;
  config.train.recompute = *parse_recompute("sqrt");
  start(config, "run", watch);
  const nn::Declaration model = nn::declare(load_model(root_ / "run", {}).model->config());
  EXPECT_EQ(watch.trainable, model.parameters.trainable_count());
  EXPECT_LT(watch.trainable, model.parameters.count() / 4);
  EXPECT_EQ(watch.plan.gradient, model.parameters.trainable_size() * sizeof(float));
  EXPECT_EQ(watch.plan.moments, 2 * model.parameters.trainable_size() * sizeof(float));
  EXPECT_LE(watch.memory.allocated() - watch.memory.pool, watch.plan.total());
  EXPECT_GT(watch.memory.arena, 0u);
}

}  // namespace
}  // namespace quern::train
