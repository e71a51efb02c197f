// Runs in which something goes wrong, for the tests of incidents.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <fstream>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "checkpoint/folder.h"
#include "checkpoint/tensor_refs.h"
#include "diagnose/incident.h"
#include "nn/models/transformer.h"
#include "optim/adamw.h"
#include "run/run.h"
#include "support/message.h"
#include "support/temporary_folder.h"
#include "support/watchdog.h"

namespace quern::train {

namespace fs = std::filesystem;
using ::quern::test::message_of;

inline bool has(const std::string& text, std::string_view part) { return text.find(part) != std::string::npos; }

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
                      size_t max = SIZE_MAX) const {
    const checkpoint::Checkpoint found = newest(name);
    const std::string table = nn::transformer_spec(model_config(config, 1)).embedding.tokens;
    const auto vocabulary = static_cast<uint32_t>(found.model().find(table)->shape[0]);
    nn::Transformer model(model_config(config, vocabulary), false);
    AdamW optimizer(model.parameters(), {});
    const auto weights = checkpoint::tensor_refs(model.parameters(), model.weights().values());
    const auto states = checkpoint::optimizer_refs(model.parameters(), optimizer);
    found.load({weights, states});
    for (const checkpoint::TensorRef& ref : weights) {
      if (!ref.name.starts_with(prefix)) continue;
      std::fill_n(ref.values.begin(), std::min(max, ref.values.size()), value);
    }
    checkpoint::save(root_ / name / "checkpoints", {weights, states}, found.state(), {});
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
  // PoliciesAreReproducible takes 23 s under tsan alone, and five times as long beside a build.
  ::quern::test::Watchdog watchdog_{"incident", std::chrono::minutes(5)};
};

}  // namespace quern::train
