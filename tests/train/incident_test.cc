// Runs that go wrong: what is wrong is found, named, saved and dealt with, and the step can be repeated to the bit.
#include "train/incident.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <cmath>
#include <fstream>
#include <limits>
#include <span>
#include <string>
#include <vector>

#include "checkpoint/folder.h"
#include "checkpoint/state.h"
#include "core/error.h"
#include "core/files.h"
#include "core/sha256.h"
#include "support/message.h"
#include "support/temporary_folder.h"
#include "support/watchdog.h"
#include "train/replay_step.h"
#include "train/run.h"
#include "train/sequential.h"

namespace quern::train {
namespace {

namespace fs = std::filesystem;
using ::quern::test::message_of;
using test::Engine;
using test::RandomTokens;

constexpr uint32_t kVocabulary = 61;
constexpr float kNan = std::numeric_limits<float>::quiet_NaN();

bool has(const std::string& text, std::string_view part) { return text.find(part) != std::string::npos; }

// Everything that a run says.
struct Listener : Observer {
  void on_step(const StepReport& report) override {
    steps.push_back(report);
    if (report.step == stop_after) stop = true;
  }
  void on_incident(const IncidentReport& report) override { incidents.push_back(report); }
  void on_warning(const std::string& text) override { warnings.push_back(text); }

  std::vector<StepReport> steps;
  std::vector<IncidentReport> incidents;
  std::vector<std::string> warnings;
  uint64_t stop_after = 0;
  std::atomic<bool> stop{false};
};

class IncidentTest : public ::testing::Test {
 protected:
  static constexpr uint64_t kSequences = 4, kContext = 16, kSpike = 202, kBadSequence = 3;

  // A cycle of letters, learned in no time, and in step kSpike a sequence of other letters.
  RunConfig corrupted(Policy policy) const {
    std::string text;
    for (size_t i = 0; i < 30'000; ++i) text += static_cast<char>('a' + i % 26);
    const size_t bad = ((kSpike - 1) * kSequences + kBadSequence) * kContext;
    for (size_t i = 1; i < kContext; ++i) text[bad + i] = static_cast<char>('a' + (bad + i) * 7 % 25);
    std::ofstream(root_ / "text.txt", std::ios::binary) << text;
    RunConfig config;
    config.model = {.layers = 2, .heads = 2, .width = 32, .context = kContext, .vocabulary = 0, .dropout = 0.0};
    config.train.steps = 210;
    config.train.batch = kSequences;
    config.train.threads = 2;
    config.train.validation_interval = 0;
    config.train.validation_batches = 1;
    config.optimizer.rate = 1e-2;
    config.optimizer.warmup = 5;
    config.data.paths = {(root_ / "text.txt").string()};
    config.data.sampling = Sampling::kStream;
    config.data.validation_fraction = 0;
    config.checkpoint.interval = 20;
    config.checkpoint.keep = 1;
    config.diagnostics.spike_z = 4;
    config.diagnostics.policy = policy;
    return config;
  }

  // An ordinary run of a few steps, saved at its end.
  RunConfig ordinary() const {
    RunConfig config;
    config.model = {.layers = 2, .heads = 2, .width = 32, .context = 32, .vocabulary = 0, .dropout = 0.1};
    config.train.steps = 24;
    config.train.batch = 8;
    config.train.threads = 2;
    config.train.validation_interval = 0;
    config.train.validation_batches = 1;
    config.optimizer.warmup = 2;
    config.data.stories_bytes = 50000;
    config.checkpoint.interval = 8;
    config.diagnostics.health_interval = 1;
    return config;
  }

  RunResult start(const RunConfig& config, const std::string& name, Listener& listener) {
    return start_run(config, root_ / name, listener, listener.stop);
  }
  RunResult resume(const RunConfig& config, const std::string& name, Listener& listener) {
    return resume_run(config, root_ / name, listener, listener.stop);
  }

  // How a copy of the run "run", named as the policy, ends that goes on with it.
  std::string error_of_copy(RunConfig config, Policy policy, Listener& listener) {
    const std::string name(policy_name(policy));
    fs::copy(root_ / "run", root_ / name, fs::copy_options::recursive);
    config.diagnostics.policy = policy;
    return message_of([&] { resume(config, name, listener); });
  }

  checkpoint::Checkpoint newest(const std::string& name) const {
    return std::move(*checkpoint::find_newest_valid(root_ / name / "checkpoints", [](const std::string&) {}));
  }
  std::string hash_of(const std::string& name) const { return checkpoint::weights_hash(newest(name).model()); }

  // Changes weights of the newest checkpoint: every value of the tensors whose names begin so.
  void change_weights(const std::string& name, const RunConfig& config, std::string_view prefix, float value,
                      size_t most = SIZE_MAX) const {
    const checkpoint::Checkpoint found = newest(name);
    const auto vocabulary = static_cast<uint32_t>(found.model().find("wte.weight")->shape[0]);
    Gpt model(model_config(config, vocabulary), false);
    std::vector<float> m(model.layout().size()), v(model.layout().size());
    const auto weights = tensor_refs(model.layout(), model.weights().values());
    const auto m_refs = tensor_refs(model.layout(), m), v_refs = tensor_refs(model.layout(), v);
    found.load({weights, m_refs, v_refs});
    for (const checkpoint::TensorRef& ref : weights) {
      if (!ref.name.starts_with(prefix)) continue;
      std::fill_n(ref.values.begin(), std::min(most, ref.values.size()), value);
    }
    checkpoint::save(root_ / name / "checkpoints", {weights, m_refs, v_refs}, found.state(), {});
  }

  // Of step 17, before which these weights were changed; it is no incident, and there was no warning before.
  std::string only_warning_with(RunConfig config, std::string_view prefix, float value) {
    Listener well, sick;
    config.train.steps = 16;
    start(config, "run", well);
    EXPECT_TRUE(well.warnings.empty());
    change_weights("run", config, prefix, value);
    config.train.steps = 17;
    EXPECT_TRUE(resume(config, "run", sick).finished);
    EXPECT_TRUE(sick.incidents.empty());
    EXPECT_EQ(sick.warnings.size(), 1u);
    return sick.warnings.empty() ? "none" : sick.warnings[0];
  }

  ::quern::test::TemporaryFolder root_;
  ::quern::test::Watchdog watchdog_{"incident"};
};

TEST_F(IncidentTest, ACorruptedBatchStopsTheRunBeforeItsUpdate) {
  const RunConfig config = corrupted(Policy::kStop);
  Listener listener;
  const std::string error = message_of([&] { start(config, "run", listener); });
  EXPECT_TRUE(has(error, "step 202: the loss is")) << error;
  EXPECT_TRUE(has(error, "sequence 4 of 4")) << error;
  EXPECT_TRUE(has(error, (root_ / "run" / "incidents" / "step-00000202").string())) << error;
  ASSERT_EQ(listener.incidents.size(), 1u);
  EXPECT_EQ(listener.incidents[0].step, kSpike);
  EXPECT_EQ(listener.incidents[0].trouble, Trouble::kSpike);
  EXPECT_EQ(listener.incidents[0].goes_on_after, kSpike - 1);
  EXPECT_EQ(listener.steps.size(), kSpike - 1);
  EXPECT_EQ(newest("run").state().step, kSpike - 1);
  // The same again, and with another policy to the end.
  Listener again;
  EXPECT_EQ(message_of([&] { resume(config, "run", again); }), error);
  Listener on;
  EXPECT_TRUE(resume(corrupted(Policy::kSkip), "run", on).finished);
  Listener whole;
  EXPECT_TRUE(start(corrupted(Policy::kSkip), "whole", whole).finished);
  EXPECT_EQ(hash_of("run"), hash_of("whole"));
}

TEST_F(IncidentTest, ASkippedUpdateLeavesTheWeightsAlone) {
  Listener listener;
  EXPECT_TRUE(start(corrupted(Policy::kSkip), "run", listener).finished);
  ASSERT_EQ(listener.incidents.size(), 1u);
  EXPECT_EQ(listener.incidents[0].action, Policy::kSkip);
  EXPECT_EQ(listener.incidents[0].goes_on_after, kSpike);
  ASSERT_EQ(listener.steps.size(), 210u);
  EXPECT_EQ(listener.steps[kSpike - 1].trouble, Trouble::kSpike);
  EXPECT_LT(listener.steps[kSpike].loss, 0.5 * listener.steps[kSpike - 1].loss);
  EXPECT_EQ(newest("run").state().incidents, 1u);
  EXPECT_EQ(newest("run").state().updates, newest("run").state().step - 1);
  // Without anyone who looks, the update is made.
  RunConfig config = corrupted(Policy::kSkip);
  config.diagnostics.spike_z = 0;
  Listener blind;
  EXPECT_TRUE(start(config, "blind", blind).finished);
  EXPECT_EQ(blind.incidents.size(), 0u);
  EXPECT_NE(hash_of("blind"), hash_of("run"));
  EXPECT_EQ(blind.steps[kSpike - 1].loss, listener.steps[kSpike - 1].loss);
}

TEST_F(IncidentTest, ARollbackGoesOnWithTheDataAfterTheIncident) {
  Listener listener;
  EXPECT_TRUE(start(corrupted(Policy::kRollback), "run", listener).finished);
  ASSERT_EQ(listener.incidents.size(), 1u);
  EXPECT_EQ(listener.incidents[0].goes_on_after, 200u);
  ASSERT_EQ(listener.steps.size(), 211u);  // 201, of which 200 stay, and 10 more
  EXPECT_EQ(listener.steps[201].step, 201u);
  EXPECT_NE(listener.steps[201].loss, listener.steps[200].loss);  // of other text
  const checkpoint::State state = newest("run").state();
  EXPECT_EQ(state.incidents, 1u);
  EXPECT_EQ(state.left_out, 2u);
  EXPECT_EQ(state.data_position, 212 * kSequences);
}

TEST_F(IncidentTest, EveryPolicyGivesTheSameBitsForAnyThreadsAndAfterAnyInterruption) {
  for (const Policy policy : {Policy::kSkip, Policy::kRollback}) {
    SCOPED_TRACE(policy_name(policy));
    const std::string name(policy_name(policy));
    RunConfig config = corrupted(policy);
    Listener listener;
    start(config, name, listener);
    for (const uint64_t threads : {1, 4}) {
      config.train.threads = threads;
      Listener other;
      start(config, name + std::to_string(threads), other);
      EXPECT_EQ(hash_of(name + std::to_string(threads)), hash_of(name)) << threads << " threads";
    }
    for (const uint64_t step : {uint64_t{201}, uint64_t{203}, uint64_t{207}}) {
      const std::string cut = name + "-cut" + std::to_string(step);
      Listener first, second;
      first.stop_after = step;
      EXPECT_FALSE(start(config, cut, first).finished);
      EXPECT_TRUE(resume(config, cut, second).finished);
      EXPECT_EQ(hash_of(cut), hash_of(name)) << "cut after step " << step;
    }
  }
}

TEST_F(IncidentTest, NanInAWeightIsNamedAndNoPolicyGoesOnForever) {
  RunConfig config = ordinary();
  Listener listener;
  config.train.steps = 16;
  start(config, "run", listener);
  config.train.steps = 24;
  change_weights("run", config, "h.1.mlp.c_fc.weight", kNan, 1);
  for (const Policy policy : {Policy::kStop, Policy::kSkip, Policy::kRollback}) {
    SCOPED_TRACE(policy_name(policy));
    config.diagnostics.incident_limit = 2;
    Listener sick;
    const std::string error = error_of_copy(config, policy, sick);
    EXPECT_TRUE(has(error,
                    "the loss is NaN; h.1.mlp.c_fc.weight has NaN before the step; first NaN: h.1.mlp.c_fc, "
                    "sequence 1 of 8, micro-batch 1 of"))
        << error;
    EXPECT_EQ(has(error, "2 incidents before it are the limit"), policy != Policy::kStop) << error;
    EXPECT_EQ(sick.incidents.size(), policy == Policy::kStop ? 1u : 3u);
    EXPECT_EQ(sick.incidents[0].trouble, Trouble::kLoss);
    EXPECT_EQ(sick.steps.size(), policy == Policy::kSkip ? 2u : 0u);
    EXPECT_TRUE(has(sick.warnings.empty() ? "" : sick.warnings[0], "the gradient has NaN"));
    EXPECT_TRUE(fs::exists(root_ / std::string(policy_name(policy)) / "incidents" / "step-00000017" / "incident.json"));
  }
}

TEST_F(IncidentTest, AnExplodingRateIsFoundAndHandled) {
  RunConfig config = ordinary();
  config.diagnostics.spike_z = 6;
  Listener listener;
  start(config, "run", listener);
  config.train.steps = 32;
  config.optimizer.rate = 10;
  for (const Policy policy : {Policy::kStop, Policy::kSkip, Policy::kRollback}) {
    SCOPED_TRACE(policy_name(policy));
    config.diagnostics.incident_limit = 3;
    Listener sick;
    const std::string error = error_of_copy(config, policy, sick);
    EXPECT_TRUE(has(error, "deviations above those before")) << error;
    ASSERT_FALSE(sick.incidents.empty());
    EXPECT_EQ(sick.incidents[0].step, 26u);  // the first update with that rate is that of step 25
    EXPECT_EQ(sick.incidents.size(), policy == Policy::kStop ? 1u : 4u);
  }
}

TEST_F(IncidentTest, AnExplodingGradientIsAWarningAndNoIncident) {
  const RunConfig config = ordinary();
  const std::string warning = only_warning_with(config, "ln_f.weight", 1000.0f);
  EXPECT_TRUE(has(warning, "step 17: the gradient's norm is")) << warning;
  EXPECT_TRUE(has(warning, "(exploding); lower optimizer.rate")) << warning;
}

TEST_F(IncidentTest, ADeadLayerIsAWarningAndNoIncident) {
  RunConfig config = ordinary();
  config.model.dropout = 0;
  const std::string warning = only_warning_with(config, "h.1.mlp.", 0.0f);
  EXPECT_TRUE(has(warning, "h.1.mlp.c_fc.weight and 2 more: the gradient is all zero")) << warning;
}

TEST_F(IncidentTest, ARecordedStepComesOutTheSameToTheBit) {
  Listener spiked, sick;
  message_of([&] { start(corrupted(Policy::kStop), "spike", spiked); });
  for (const Precision precision : {Precision::kFp32, Precision::kBf16, Precision::kFp16}) {
    RunConfig config = ordinary();
    config.train.precision = precision;
    config.train.steps = 8;
    const std::string name(precision_name(precision));
    start(config, name, sick);
    change_weights(name, config, "h.0.attn.c_proj.bias", std::numeric_limits<float>::infinity(), 3);
    config.train.steps = 12;
    message_of([&] { resume(config, name, sick); });
  }
  const std::vector<fs::path> folders = {
      root_ / "spike" / "incidents" / "step-00000202", root_ / "fp32" / "incidents" / "step-00000009",
      root_ / "bf16" / "incidents" / "step-00000009", root_ / "fp16" / "incidents" / "step-00000009" / "incident.json"};
  for (const fs::path& folder : folders) {
    SCOPED_TRACE(folder.string());
    const RecordedIncident recorded = load_incident(folder);
    for (const size_t threads : {1, 4}) {
      const ReplayedStep replayed = replay_step(recorded, threads);
      EXPECT_TRUE(replayed.same) << threads << " threads";
      EXPECT_EQ(replayed.found.gradient_hash, recorded.incident.gradient_hash);
      EXPECT_EQ(replayed.found.findings.pass, recorded.incident.findings.pass);
      EXPECT_EQ(replayed.found.findings.weight, recorded.incident.findings.weight);
      EXPECT_EQ(replayed.losses.front().sequence, recorded.incident.worst_sequence);
      if (recorded.incident.trouble == Trouble::kSpike) {
        EXPECT_EQ(replayed.losses.front().sequence, kBadSequence);
        EXPECT_FALSE(replayed.found.findings.pass.has_value());
        continue;
      }
      EXPECT_EQ(replayed.found.findings.weight->tensor, "h.0.attn.c_proj.bias");
      EXPECT_EQ(replayed.found.findings.pass->tensor, "h.0.attn.c_proj");
      EXPECT_FALSE(replayed.found.findings.pass->nan);
    }
  }
  // It is the tokens and weights that decide.
  RecordedIncident other = load_incident(folders[0]);
  other.tokens.inputs[5] = other.tokens.inputs[5] == 0 ? 1 : 0;
  EXPECT_FALSE(replay_step(other, 1).same);
}

// They are used as numbers of 32 bits: 2^32 of them were none. The file has the size and the digest that its state.json
// says, since anyone can compute them.
TEST_F(IncidentTest, StepsThatDoNotFit32BitsAreRefused) {
  Listener listener;
  message_of([&] { start(corrupted(Policy::kStop), "run", listener); });
  const fs::path folder = root_ / "run" / "incidents" / "step-00000202";
  const std::string field = "\"left_out\": ";
  std::string text = read_file(folder / "incident.json", 1 << 20);
  const size_t at = text.find(field) + field.size();
  text.replace(at, text.find(',', at) - at, "4294967296");
  checkpoint::StateFile state = checkpoint::parse_state(read_file(folder / "state.json", 1 << 20), "state.json");
  Sha256 digest;
  digest.update(std::as_bytes(std::span(text)));
  state.files["incident.json"] = {.bytes = text.size(), .sha256 = digest.finish()};
  write_file(folder / "incident.json", text);
  write_file(folder / "state.json", checkpoint::to_json(state));
  const std::string message = message_of([&] { load_incident(folder); });
  EXPECT_TRUE(has(message, "left_out: expected at most 2147483647, found '4294967296'")) << message;
}

TEST_F(IncidentTest, DamagedFilesAreNamed) {
  Listener listener;
  message_of([&] { start(corrupted(Policy::kStop), "run", listener); });
  const fs::path folder = root_ / "run" / "incidents" / "step-00000202";
  const auto message = [](const fs::path& path) { return message_of([&] { load_incident(path); }); };
  ASSERT_EQ(message(folder), "no error");
  for (const char* name :
       {"incident.json", "batch.safetensors", "run.toml", "model.safetensors", "optimizer.safetensors", "state.json"}) {
    SCOPED_TRACE(name);
    const std::string text = read_file(folder / name, 1 << 30);
    write_file(folder / name, text.substr(0, text.size() / 2));
    EXPECT_TRUE(has(message(folder), name)) << message(folder);
    std::string changed = text;
    changed[text.size() / 2] = static_cast<char>(changed[text.size() / 2] ^ 1);
    write_file(folder / name, changed);
    EXPECT_TRUE(has(message(folder), name)) << message(folder);
    fs::remove(folder / name);
    EXPECT_TRUE(
        has(message(folder), std::string_view(name) == "state.json" ? "expected the folder of an incident" : name))
        << message(folder);
    write_file(folder / name, text);
  }
  EXPECT_EQ(message(folder), "no error");
  EXPECT_TRUE(has(message(root_ / "nowhere"), "expected the folder of an incident"));
  EXPECT_TRUE(
      has(message(root_ / "run" / "checkpoints" / "step-00000201"), "expected an incident, found a checkpoint"));
}

// What an incident says is shown on a terminal, whoever wrote it; and a stamp in state.json is no proof of good will.
TEST_F(IncidentTest, HostileTextIsShownOrRefused) {
  Listener listener;
  message_of([&] { start(corrupted(Policy::kStop), "run", listener); });
  const fs::path folder = root_ / "run" / "incidents" / "step-00000202";
  const std::string text = read_file(folder / "incident.json", 1 << 20);
  const auto with = [&](const std::string& part, const std::string& other) {
    std::string changed = text;
    changed.replace(changed.find(part), part.size(), other);
    write_file(folder / "incident.json", changed);
    checkpoint::StateFile state = checkpoint::read_state(folder);
    Sha256 hash;
    hash.update(std::as_bytes(std::span(changed)));
    state.files["incident.json"] = {.bytes = changed.size(), .sha256 = hash.finish()};
    write_file(folder / "state.json", checkpoint::to_json(state));
  };
  with("\"first_bad\": null", R"("first_bad": {"tensor": "\u001b[2J\u009b31m", "kind": "NaN", "sequence": 3})");
  const RecordedIncident recorded = load_incident(folder);
  EXPECT_EQ(recorded.incident.findings.pass->tensor, "\\x1b[2J\\xc2\\x9b31m");
  EXPECT_FALSE(has(describe(recorded.incident, 4, 4), "\x1b"));
  const std::string deep = std::string(200'000, '[') + std::string(200'000, ']');
  with("\"version\": 1", "\"version\": " + deep);
  const std::string message = message_of([&] { load_incident(folder); });
  EXPECT_TRUE(has(message, "incident.json: expected a JSON object")) << message.substr(0, 200);
}

// Incidents of fp16 runs once had the hash of a gradient that was multiplied by a loss scale.
TEST(GradientHash, OfAScaledGradient) {
  const ParameterLayout layout({.layers = 1, .heads = 2, .width = 16, .context = 8, .vocabulary = 50});
  std::vector<float> values(layout.size()), scaled(layout.size());
  for (size_t i = 0; i < values.size(); ++i) {
    values[i] = std::sin(static_cast<float>(i)) * 1e-4f;
    scaled[i] = values[i] * 65536;
  }
  values[7] = scaled[7] = kNan;
  EXPECT_EQ(gradient_hash(layout, values, 65536), gradient_hash(layout, scaled));
  EXPECT_NE(gradient_hash(layout, values), gradient_hash(layout, scaled));
}

// Forward in its order, by a NaN in each of its weights.
TEST(Examine, NamesTheFirstTensorThatGoesBad) {
  struct Case {
    const char* weight;
    const char* first;
  };
  const RandomTokens tokens(3000, kVocabulary);
  for (const auto& [weight, first] : {Case{"wpe.weight", "embedding"},
                                      {"h.0.ln_1.weight", "h.0.attn.c_attn"},
                                      {"h.1.attn.c_attn.weight", "h.1.attn.c_attn"},
                                      {"h.1.attn.c_proj.weight", "h.1.attn.c_proj"},
                                      {"h.1.ln_2.bias", "h.1.mlp.c_fc"},
                                      {"h.0.mlp.c_fc.bias", "h.0.mlp.c_fc"},
                                      {"h.0.mlp.c_proj.weight", "h.0.mlp.c_proj"},
                                      {"ln_f.weight", "ln_f"}}) {
    for (const Precision precision : {Precision::kFp32, Precision::kBf16}) {
      SCOPED_TRACE(weight);
      RunConfig config;
      config.model = {.layers = 2, .heads = 2, .width = 32, .context = 32, .vocabulary = kVocabulary, .dropout = 0.0};
      config.train.threads = 2;
      config.train.precision = precision;
      const data::TrainingBatches batches = test::batches_of(config, tokens);
      Engine engine(config, batches, kVocabulary);
      for (const TensorInfo& tensor : engine.model.layout().tensors()) {
        if (tensor.name == weight) engine.model.weights().values()[tensor.offset] = kNan;
      }
      engine.model.weights().repack();
      const TrainerState now = engine.trainer.state();
      const Findings found = engine.trainer.examine(engine.trainer.read_step(now), now);
      ASSERT_TRUE(found.weight.has_value() && found.pass.has_value());
      EXPECT_EQ(found.weight->tensor, weight);
      EXPECT_EQ(found.pass->tensor, first);
      EXPECT_TRUE(found.pass->nan);
      EXPECT_EQ(found.pass->sequence, 0u);
    }
  }
}

// The others do not have the token whose embedding is too large to take its mean, and think it has no chance to follow.
TEST(Examine, NamesTheOneSequenceThatGoesBad) {
  constexpr int32_t kBadToken = 60;
  constexpr size_t kBadSequence = 5;
  const RandomTokens tokens(3000, kVocabulary);
  RunConfig config;
  config.model = {.layers = 2, .heads = 2, .width = 32, .context = 32, .vocabulary = kVocabulary, .dropout = 0.0};
  config.train.threads = 2;
  const data::TrainingBatches batches = test::batches_of(config, tokens);
  Engine engine(config, batches, kVocabulary);
  const std::span<float> weights = engine.model.weights().values();
  for (const TensorInfo& tensor : engine.model.layout().tensors()) {
    if (tensor.name == "ln_f.weight") std::fill_n(weights.begin() + tensor.offset, tensor.size, 1e-3f);
    for (const size_t i : {0, 16}) {  // which are added to one another first
      if (tensor.name == "ln_f.bias") weights[tensor.offset + i] = -0.1f;
      if (tensor.name == "wte.weight") weights[tensor.offset + kBadToken * 32 + i] = 3e38f;
    }
  }
  engine.model.weights().repack();
  const TrainerState now = engine.trainer.state();
  StepTokens step = engine.trainer.read_step(now);
  std::replace(step.inputs.begin(), step.inputs.end(), kBadToken, 0);
  std::replace(step.targets.begin(), step.targets.end(), kBadToken, 0);
  EXPECT_FALSE(engine.trainer.examine(step, now).pass.has_value());
  step.inputs[kBadSequence * 32 + 7] = kBadToken;
  const Findings found = engine.trainer.examine(step, now);
  ASSERT_TRUE(found.pass.has_value());
  EXPECT_EQ(found.pass->tensor, "h.0.ln_1");
  EXPECT_EQ(found.pass->sequence, kBadSequence);
  EXPECT_FALSE(found.weight.has_value());
}

// Forward is fine, for what is multiplied by 1e38 is 0; backward is not.
TEST(Examine, NamesAGradientWhenForwardIsFine) {
  const RandomTokens tokens(3000, kVocabulary);
  RunConfig config;
  config.model = {.layers = 2, .heads = 2, .width = 32, .context = 32, .vocabulary = kVocabulary, .dropout = 0.0};
  config.train.threads = 2;
  const data::TrainingBatches batches = test::batches_of(config, tokens);
  Engine engine(config, batches, kVocabulary);
  const TrainerState now = engine.trainer.state();
  const StepTokens step = engine.trainer.read_step(now);
  EXPECT_FALSE(engine.trainer.examine(step, now).pass.has_value());
  for (const TensorInfo& tensor : engine.model.layout().tensors()) {
    const std::span<float> values = engine.model.weights().values().subspan(tensor.offset, tensor.size);
    if (tensor.name == "h.1.ln_2.weight") std::ranges::fill(values, 1e30f);
    if (tensor.name.starts_with("h.1.mlp.c_fc.")) std::ranges::fill(values, 0.0f);
    if (tensor.name == "h.1.mlp.c_proj.weight") std::ranges::fill(values, 1e38f);
  }
  engine.model.weights().repack();
  const Findings found = engine.trainer.examine(step, now);
  EXPECT_FALSE(found.weight.has_value());
  ASSERT_TRUE(found.pass.has_value());
  EXPECT_EQ(found.pass->tensor, "gradient of h.1.mlp.c_fc.weight");
}

// Steps before and after are what they would have been without a look in between.
TEST(Examine, LeavesNoTraceInTheSteps) {
  const RandomTokens tokens(3000, kVocabulary);
  RunConfig config;
  config.model = {.layers = 2, .heads = 2, .width = 32, .context = 32, .vocabulary = kVocabulary, .dropout = 0.1};
  config.train.threads = 3;
  const data::TrainingBatches batches = test::batches_of(config, tokens);
  Engine plain(config, batches, kVocabulary), watched(config, batches, kVocabulary);
  plain.steps(4);
  for (int i = 0; i < 4; ++i) {
    const TrainerState now = watched.trainer.state();
    EXPECT_FALSE(watched.trainer.examine(watched.trainer.read_step(now), now).pass.has_value());
    watched.steps(1);
  }
  EXPECT_TRUE(plain.result() == watched.result());
}

}  // namespace
}  // namespace quern::train
