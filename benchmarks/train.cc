#include "benchmarks/train.h"

#include <fmt/format.h>
#include <sys/resource.h>

#include <algorithm>
#include <vector>

#include "benchmarks/lock_counter.h"
#include "benchmarks/train_run.h"
#include "core/process_memory.h"
#include "core/team.h"
#include "report/utilisation.h"

namespace quern::bench {
namespace {

using Run = TrainRun;
using train::RunConfig;

struct Bars {
  const char* preset;
  double mfu;
};
constexpr Bars kBars[] = {{"tiny", 0.60}, {"small", 0.80}, {"gpt2", 0.65}, {"llama-tiny", 0.57}, {"llama-small", 0.77}};
constexpr double kUtilisationBar = 0.90;
constexpr double kScalingBar = 0.925;     // of one thread's speed, per thread: 1.85 for two
constexpr double kTeamScalingBar = 0.85;  // with other batches, which may need teams: 1.7 for two
constexpr double kBf16Bar = 0.95;         // of the speed of fp32
constexpr double kSqrtBar = 1 / 1.35;     // of the speed without recomputation

const Bars& bars_of(const std::string& preset) {
  return *std::find_if(std::begin(kBars), std::end(kBars), [&](const Bars& bars) { return bars.preset == preset; });
}

}  // namespace

std::vector<std::string_view> train_presets() {
  std::vector<std::string_view> names;
  for (const Bars& bars : kBars) names.emplace_back(bars.preset);
  return names;
}

namespace {

RunConfig config_of(const TrainWorkload& workload, size_t threads) {
  RunConfig config = train::preset(workload.preset);
  config.model.dropout = 0;
  config.train.threads = threads;
  if (workload.batch != 0) config.train.batch = workload.batch;
  if (workload.context != 0) config.model.context = workload.context;
  for (const std::string& setting : workload.settings) train::apply_setting(config, setting);
  if (!workload.precision.empty()) train::apply_setting(config, "train.precision=" + workload.precision, "--precision");
  if (!workload.recompute.empty()) train::apply_setting(config, "train.recompute=" + workload.recompute, "--recompute");
  train::validate(config);
  return config;
}

double sleeps_so_far() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  return static_cast<double>(usage.ru_nvcsw);
}

// The best round of a run, with the statistics of its workers.
struct Best {
  double seconds = 1e30;
  train::WorkerTimes times;
  double sleeps = 0;
  std::optional<long> locks;

  void round(Run& run, uint64_t steps) {
    const train::WorkerTimes before = run.trainer->times();
    const double slept = sleeps_so_far();
    const std::optional<LockCounts> locked = lock_counts();
    const double taken = run.steps(steps);
    if (taken >= seconds) return;
    seconds = taken;
    sleeps = sleeps_so_far() - slept;
    if (locked) locks = lock_counts()->locks - locked->locks;
    const train::WorkerTimes after = run.trainer->times();
    times = {.total = after.total - before.total, .waits = after.waits - before.waits};
  }
};

std::string name_of(const TrainWorkload& workload, const RunConfig& config) {
  std::string name = "train/" + workload.preset;
  if (!workload.settings.empty()) name += fmt::format("/{} layers x {}", config.model.layers, config.model.width);
  if (!workload.as_preset()) name += fmt::format("/{}x{}", config.train.batch, config.model.context);
  if (!workload.precision.empty()) name += "/" + workload.precision;
  if (!workload.recompute.empty()) name += "/" + workload.recompute;
  return name;
}

// Tokens in a round of this many steps.
double tokens_of(const RunConfig& config, uint64_t steps) {
  return static_cast<double>(steps * config.train.batch * config.train.accumulation * config.model.context);
}

// Compares with fp32 without recomputation, in interleaved rounds.
void compare_with_plain(Context& context, const TrainWorkload& workload, Run& ours, Best& best_ours, uint64_t steps,
                        const data::TokenBuffer& tokens) {
  TrainWorkload plain_workload = workload;
  plain_workload.precision.clear();
  plain_workload.recompute = "none";
  const RunConfig config = config_of(plain_workload, context.threads());
  Run plain(config, vocabulary_of_preset(workload.preset), tokens);
  plain.steps(2);
  Best best_plain;
  for (size_t round = 0; round < (context.quick() ? 1 : workload.rounds); ++round) {
    best_ours.round(ours, steps);
    best_plain.round(plain, steps);
  }
  std::optional<double> bar;
  if (workload.precision == "bf16" && workload.recompute.empty()) bar = kBf16Bar;
  if (workload.recompute == "sqrt" && workload.precision.empty()) bar = kSqrtBar;
  const double work = tokens_of(config, steps);
  context.add(name_of(workload, config), work / best_ours.seconds, "tokens/s", "fp32, none", work / best_plain.seconds,
              bar);
}

// Compares with one thread, and with a barrier of all threads after every operation.
void compare_with_other_threads(Context& context, const TrainWorkload& workload, Run& ours, Best& best_ours,
                                uint64_t steps, const data::TokenBuffer& tokens) {
  const size_t threads = context.threads();
  const RunConfig config = config_of(workload, threads);
  const uint64_t vocabulary = vocabulary_of_preset(workload.preset);
  Run one(config_of(workload, 1), vocabulary, tokens);
  Run meeting(config, vocabulary, tokens, 1);
  one.steps(2);
  meeting.steps(2);
  Best best_one, best_meeting;
  for (size_t round = 0; round < (context.quick() ? 1 : workload.rounds); ++round) {
    best_ours.round(ours, steps);
    best_one.round(one, steps);
    best_meeting.round(meeting, steps);
  }
  const std::string name = name_of(workload, config);
  if (!ours.same_weights(one) || !ours.same_weights(meeting)) {
    context.wrong_answer(name, "the weights depend on the number of threads");
  }
  if (threads == 1) return;
  const double work = tokens_of(config, steps), speed = work / best_ours.seconds;
  context.add(name + "/speed", speed, "tokens/s", "one thread", work / best_one.seconds,
              (workload.as_preset() ? kScalingBar : kTeamScalingBar) * static_cast<double>(threads));
  const bool teams_of_all = ours.trainer->context().plan.cut.teams == 1;  // then both are the same
  context.add(name + "/speed", speed, "tokens/s", "meet each op", work / best_meeting.seconds,
              teams_of_all ? std::nullopt : std::optional(1.0));
}

}  // namespace

TrainFigures bench_train(Context& context, const TrainWorkload& workload) {
  const Bars& bars = bars_of(workload.preset);
  const size_t threads = context.threads();
  const RunConfig config = config_of(workload, threads);
  const uint64_t vocabulary = vocabulary_of_preset(workload.preset);
  const auto tokens = random_tokens(vocabulary);

  forget_peak_resident_bytes();
  Run ours(config, vocabulary, *tokens);
  ours.steps(1);
  const double once = ours.steps(1);
  const uint64_t steps = workload.steps != 0 ? workload.steps
                         : context.quick()   ? 1
                                             : std::max<uint64_t>(1, static_cast<uint64_t>(1.0 / once));
  const uint64_t peak_rss = peak_resident_bytes();

  Best best_ours;
  if (workload.saves_memory()) {
    compare_with_plain(context, workload, ours, best_ours, steps, *tokens);
  } else {
    compare_with_other_threads(context, workload, ours, best_ours, steps, *tokens);
  }
  const std::string name = name_of(workload, config);
  const double work = tokens_of(config, steps);
  const double per_token = ours.model.activations().training_flops(config.model.context);
  const double peak =
      std::max(context.machine().fma_peak_gflops, report::quick_fma_peak_gflops(threads));  // turbo varies
  report::Utilisation utilisation(peak, [threads] { return report::quick_fma_peak_gflops(threads); });
  const double total = best_ours.times.total;
  TrainFigures figures{.preset = workload.preset,
                       .threads = threads,
                       .teams = ours.trainer->context().plan.cut.teams,
                       .tokens_per_s = work / best_ours.seconds,
                       .gflops = work * per_token / best_ours.seconds * 1e-9,
                       .utilisation = best_ours.times.utilisation(),
                       .ticket_wait = best_ours.times.waits.tickets / total,
                       .team_wait = best_ours.times.waits.team / total,
                       .queue_wait = best_ours.times.waits.queue / total,
                       .locks_per_step = {},
                       .sleeps_per_step = best_ours.sleeps / static_cast<double>(steps),
                       .peak_rss_bytes = peak_rss,
                       .planned_bytes = ours.plan.memory.total(),
                       .activation_bytes = ours.plan.memory.worker.activations,
                       .working_bytes = ours.plan.memory.worker.working};
  figures.mfu = utilisation.share(figures.gflops);
  figures.fma_peak_gflops = utilisation.peak_gflops();
  if (best_ours.locks) figures.locks_per_step = static_cast<double>(*best_ours.locks) / static_cast<double>(steps);
  if (best_ours.locks.value_or(0) > 0) context.wrong_answer(name, "a step took a lock or waited at a barrier");
  const bool judged = figures.mfu && workload.as_preset() && !workload.saves_memory();
  context.add(name + "/mfu", figures.gflops, "GFLOPS", "FMA peak", figures.fma_peak_gflops,
              judged ? std::optional(bars.mfu) : std::nullopt);
  context.add(name + "/utilisation", figures.utilisation, "busy", "step time", 1.0, kUtilisationBar);
  return figures;
}

}  // namespace quern::bench
