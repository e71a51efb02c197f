// Runs that go wrong: what is wrong is found, named, saved and dealt with, and the step can be repeated to the bit.
#include <limits>
#include <string>
#include <vector>

#include "core/error.h"
#include "core/files.h"
#include "diagnose/incidents.h"
#include "diagnose/rerun_step.h"
#include "support/modern.h"

namespace quern::train {
namespace {

constexpr float kNan = std::numeric_limits<float>::quiet_NaN();

TEST_F(IncidentTest, SpikeStopsTheRunBeforeTheUpdate) {
  const RunConfig config = corrupted(Policy::kStop);
  Listener listener;
  const std::string error = message_of([&] { start(config, "run", listener); });
  EXPECT_TRUE(has(error, "step 202: the loss is")) << error;
  EXPECT_TRUE(has(error, "sequence 4 of 4")) << error;
  EXPECT_TRUE(has(error, (root_ / "run" / "incidents" / "step-00000202").string())) << error;
  ASSERT_EQ(listener.incidents.size(), 1u);
  EXPECT_EQ(listener.incidents[0].step, kSpike);
  EXPECT_EQ(listener.incidents[0].trouble, Trouble::kSpike);
  EXPECT_EQ(listener.incidents[0].resumed_after, kSpike - 1);
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

TEST_F(IncidentTest, SkipLeavesTheWeightsUnchanged) {
  Listener listener;
  EXPECT_TRUE(start(corrupted(Policy::kSkip), "run", listener).finished);
  ASSERT_EQ(listener.incidents.size(), 1u);
  EXPECT_EQ(listener.incidents[0].action, Policy::kSkip);
  EXPECT_EQ(listener.incidents[0].resumed_after, kSpike);
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

TEST_F(IncidentTest, RollbackContinuesWithTheDataAfterTheIncident) {
  Listener listener;
  EXPECT_TRUE(start(corrupted(Policy::kRollback), "run", listener).finished);
  ASSERT_EQ(listener.incidents.size(), 1u);
  EXPECT_EQ(listener.incidents[0].resumed_after, 200u);
  ASSERT_EQ(listener.steps.size(), 211u);  // 201, of which 200 stay, and 10 more
  EXPECT_EQ(listener.steps[201].step, 201u);
  EXPECT_NE(listener.steps[201].loss, listener.steps[200].loss);  // of other text
  const RunState state = newest("run").state();
  EXPECT_EQ(state.incidents, 1u);
  EXPECT_EQ(state.skipped_steps, 2u);
  EXPECT_EQ(state.data_position, 212 * kSequences);
}

TEST_F(IncidentTest, PoliciesAreReproducible) {
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

TEST_F(IncidentTest, NanInAWeightIsNamedAndIncidentsAreLimited) {
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
                    "the loss is NaN; h.1.mlp.c_fc.weight contains NaN before the step; first NaN: h.1.mlp.c_fc, "
                    "sequence 1 of 8, micro-batch 1 of"))
        << error;
    EXPECT_EQ(has(error, "2 incidents have reached the limit"), policy != Policy::kStop) << error;
    EXPECT_EQ(sick.incidents.size(), policy == Policy::kStop ? 1u : 3u);
    EXPECT_EQ(sick.incidents[0].trouble, Trouble::kLoss);
    EXPECT_EQ(sick.steps.size(), policy == Policy::kSkip ? 2u : 0u);
    EXPECT_TRUE(has(sick.warnings.empty() ? "" : sick.warnings[0], "the gradient contains NaN"));
    EXPECT_TRUE(fs::exists(root_ / std::string(policy_name(policy)) / "incidents" / "step-00000017" / "incident.json"));
  }
}

TEST_F(IncidentTest, ExplodingRateIsDetected) {
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
    EXPECT_TRUE(has(error, "deviations above the previous ones")) << error;
    ASSERT_FALSE(sick.incidents.empty());
    EXPECT_EQ(sick.incidents[0].step, 26u);  // the first update with that rate is that of step 25
    EXPECT_EQ(sick.incidents.size(), policy == Policy::kStop ? 1u : 4u);
  }
}

TEST_F(IncidentTest, ExplodingGradientIsAWarning) {
  const RunConfig config = ordinary();
  const std::string warning = only_warning_with(config, "ln_f.weight", 1000.0f);
  EXPECT_TRUE(has(warning, "step 17: the gradient's norm is")) << warning;
  EXPECT_TRUE(has(warning, "(exploding); lower optimizer.rate")) << warning;
}

TEST_F(IncidentTest, DeadLayerIsAWarning) {
  RunConfig config = ordinary();
  config.model.dropout = 0;
  const std::string warning = only_warning_with(config, "h.1.mlp.", 0.0f);
  EXPECT_TRUE(has(warning, "h.1.mlp.c_fc.weight and 2 more: the gradient is all zero")) << warning;
}

TEST_F(IncidentTest, RerunIsBitIdentical) {
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
    const RunState& state = recorded.checkpoint.state();
    EXPECT_EQ(state.data_position, (state.step + state.skipped_steps) * recorded.config.sequences_per_step());
    EXPECT_EQ(state.tokens, state.step * recorded.config.sequences_per_step() * recorded.config.model.context);
    for (const size_t threads : {1, 4}) {
      const RerunStep replayed = rerun_step(recorded, threads);
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
  // The table of tokens has another name in another family.
  RunConfig llama = ordinary();
  llama.model = ::quern::test::llama(llama.model);
  llama.train.steps = 8;
  start(llama, "llama", sick);
  change_weights("llama", llama, "model.layers.0.self_attn.k_proj.weight", std::numeric_limits<float>::quiet_NaN(), 3);
  llama.train.steps = 12;
  message_of([&] { resume(llama, "llama", sick); });
  const RerunStep replayed = rerun_step(load_incident(root_ / "llama" / "incidents" / "step-00000009"), 2);
  EXPECT_TRUE(replayed.same);
  EXPECT_EQ(replayed.found.findings.pass->tensor, "model.layers.0.self_attn.{q,k,v}_proj");
  // It is the tokens and weights that decide.
  RecordedIncident other = load_incident(folders[0]);
  other.tokens.inputs[5] = other.tokens.inputs[5] == 0 ? 1 : 0;
  EXPECT_FALSE(rerun_step(other, 1).same);
}

}  // namespace
}  // namespace quern::train
