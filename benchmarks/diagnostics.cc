#include "benchmarks/diagnostics.h"

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <vector>

#include "benchmarks/train_run.h"
#include "core/clock.h"
#include "core/measuring.h"
#include "core/temporary_folder.h"
#include "diagnose/health.h"
#include "quern/profile.h"
#include "report/limiter.h"
#include "report/run_files.h"
#include "report/trace.h"

namespace quern::bench {
namespace {

constexpr double kBar = 0.98;

// A diagnostic of a run. To add one, write a class and add a line to bench_diagnostics().
class Diagnostic {
 public:
  Diagnostic() = default;
  Diagnostic(const Diagnostic&) = delete;
  Diagnostic& operator=(const Diagnostic&) = delete;
  virtual ~Diagnostic() = default;

  virtual const char* name() const = 0;
  // Called between steps.
  virtual void switch_on(train::Trainer& trainer) = 0;
  virtual void switch_off(train::Trainer& trainer) = 0;
  // While it is on.
  // `health` is null if the step was not measured.
  virtual void after_step(train::StepReport&, const train::Trainer&, const train::HealthReport* /*health*/) {}
};

// --profile and --trace.
class Profiling : public Diagnostic {
 public:
  explicit Profiling(size_t threads)
      : profile_({.threads = threads + 1, .events = report::kTraceCalls / threads}), threads_(threads) {}
  const char* name() const override { return "profile and trace"; }
  void switch_on(train::Trainer& trainer) override {
    trainer.set_profile(&profile_);
    here_.emplace(profile_, threads_);
  }
  void switch_off(train::Trainer& trainer) override {
    here_.reset();
    trainer.set_profile(nullptr);
  }

 private:
  Profile profile_;
  size_t threads_;
  std::optional<ProfiledThread> here_;
};

// The limiter shown in the progress line.
class Limiting : public Diagnostic {
 public:
  explicit Limiting(double flops_per_token) : limiter_(flops_per_token, 100) {}
  const char* name() const override { return "limiter"; }
  void switch_on(train::Trainer&) override {}
  void switch_off(train::Trainer&) override {}
  void after_step(train::StepReport& report, const train::Trainer&, const train::HealthReport*) override {
    limiter_.add(report);
    do_not_optimize(limiter_.name());
  }

 private:
  report::Limiter limiter_;
};

// The health of every tensor's gradient, in every step: 100 times the cost of diagnostics.health_interval = 100.
class GradientHealth : public Diagnostic {
 public:
  const char* name() const override { return "gradient health"; }
  void switch_on(train::Trainer& trainer) override { trainer.measure_every(1); }
  void switch_off(train::Trainer& trainer) override { trainer.measure_every(0); }
};

// metrics.jsonl and TensorBoard's file with memory, and with the health of gradients if measured, in every step: ten
// times the cost of log.interval = 10.
class Logging : public Diagnostic {
 public:
  Logging() { files_.on_start({.steps = UINT64_MAX, .floor = {}}); }
  const char* name() const override { return "metrics, TensorBoard"; }
  void switch_on(train::Trainer&) override {}
  void switch_off(train::Trainer&) override {}
  void after_step(train::StepReport& report, const train::Trainer& trainer,
                  const train::HealthReport* health) override {
    report.memory = trainer.memory();
    if (health != nullptr) files_.on_health(*health);
    files_.on_step(report);
  }

 private:
  static train::RunConfig config() {
    train::RunConfig config;
    config.log.interval = 1;
    config.log.tensorboard = true;
    return config;
  }

  TemporaryFolder folder_;
  report::RunFiles files_{folder_.path(), config()};
};

double seconds_of(TrainRun& run, uint64_t steps, const std::vector<Diagnostic*>& on) {
  train::Health health(run.model.parameters());
  for (Diagnostic* diagnostic : on) diagnostic->switch_on(*run.trainer);
  const double start = seconds_now();
  for (uint64_t i = 0; i < steps; ++i) {
    train::StepReport report = run.trainer->step();
    const train::HealthReport* measured = health.report(run.trainer->context());
    for (Diagnostic* diagnostic : on) diagnostic->after_step(report, *run.trainer, measured);
  }
  const double seconds = seconds_now() - start;
  for (Diagnostic* diagnostic : on) diagnostic->switch_off(*run.trainer);
  return seconds;
}

double median(std::vector<double> values) {
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

const Region kEmpty("empty");

// The cost of an empty region.
void time_regions(Context& context) {
  constexpr int kCount = 100'000;
  const auto regions = [] {
    for (int i = 0; i < kCount; ++i) {
      const Timed timed(kEmpty);
      do_not_optimize(i);
    }
  };
  const auto nothing = [] {
    for (int i = 0; i < kCount; ++i) do_not_optimize(i);
  };
  Profile profile({});
  const auto profiled = [&] {
    const ProfiledThread here(profile, 0);
    regions();
  };
  const std::vector<double> best = best_times(context, {nothing, regions, profiled}, 0.2);
  const auto rate = [&](size_t i) { return kCount / best[i] * 1e-6; };
  context.add("diagnostics/region/off", rate(1), "Mop/s", "empty loop", rate(0));
  context.add("diagnostics/region/on", rate(2), "Mop/s", "off", rate(1));
}

}  // namespace

void bench_diagnostics(Context& context, const DiagnosticsWorkload& workload) {
  time_regions(context);
  train::RunConfig config = train::preset(workload.preset);
  config.train.threads = context.threads();
  config.diagnostics.health_interval = 0;
  const uint64_t vocabulary = vocabulary_of_preset(workload.preset);
  const auto tokens = random_tokens(vocabulary);
  Profiling profiling(context.threads());  // declared before the run, whose workers write to it until they end
  TrainRun run(config, vocabulary, *tokens);
  Limiting limiting(run.model.activations().training_flops(config.model.context));

  GradientHealth health;
  Logging logging;
  const std::vector<Diagnostic*> all = {&profiling, &limiting, &health, &logging};
  std::vector<std::vector<Diagnostic*>> kinds = {{}};
  for (Diagnostic* diagnostic : all) kinds.push_back({diagnostic});
  kinds.push_back(all);

  run.steps(2);
  const double once = run.steps(1);
  // Many short rounds, so that some of each kind are undisturbed by other programs.
  const uint64_t steps = context.quick() ? 1 : std::max<uint64_t>(1, static_cast<uint64_t>(0.05 / once));
  std::vector<std::vector<double>> seconds(kinds.size());
  for (size_t round = 0; round < (context.quick() ? 1 : workload.rounds); ++round) {
    for (size_t i = 0; i < kinds.size(); ++i) {
      const size_t kind = (i + round) % kinds.size();  // rotates, so that no kind always follows the same one
      seconds[kind].push_back(seconds_of(run, steps, kinds[kind]));
    }
  }
  const double work =
      static_cast<double>(steps * config.train.batch * config.train.accumulation * config.model.context);
  // Medians: the best of many rounds occasionally ran at a clock rate that no other kind got.
  const auto speed = [&](size_t kind) { return work / median(seconds[kind]); };
  for (size_t i = 1; i < kinds.size(); ++i) {
    const bool everything = i + 1 == kinds.size();
    context.add(fmt::format("diagnostics/{}/{}", workload.preset, everything ? "everything" : all[i - 1]->name()),
                speed(i), "tokens/s", "all off", speed(0), everything ? std::optional(kBar) : std::nullopt);
  }
}

}  // namespace quern::bench
