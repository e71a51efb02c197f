#include "train/plan.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "core/byte_size.h"
#include "core/cpu_info.h"
#include "core/error.h"
#include "core/team.h"
#include "data/prefetcher.h"
#include "nn/gradient.h"
#include "nn/models/language_model.h"
#include "nn/weights.h"
#include "optim/muon.h"
#include "optim/optimizer.h"
#include "parallel/workers.h"
#include "train/optimizer_settings.h"
#include "train/rank_exchange.h"

namespace quern::train {
namespace {

// Packing all weights costs about as much as using each of them once, so it pays off from about this many micro-batches
// per step. With one it costs 7 % (gpt2), with eight it gains 3 % (small) to 8 % (tiny).
constexpr size_t kPackFrom = 4;

// Relative step time when products pack the weights themselves, measured on preset small.
constexpr double kUnpackedTime = 1.03;

// With fewer rows of logits at once, there are more passes over the gradient of the token table. Times are for gpt2,
// whose table has 154 MB; with a small vocabulary, fewer rows cost almost nothing but also save almost nothing.
struct LogitRows {
  size_t rows;
  double time;
};
constexpr LogitRows kLogitRows[] = {{kAllLogitRows, 1.0}, {128, 1.01}, {64, 1.07}, {32, 1.20}};

// Relative step time if activations of `interval` layers are in memory at once: forward is repeated for all but the
// topmost group of layers, in each group without the last product.
double recompute_time(const nn::ActivationPlan& model, size_t interval) {
  const size_t again = model.blocks - interval, groups = (again + interval - 1) / interval;
  const double blocks = static_cast<double>(model.blocks), T = static_cast<double>(model.context);
  const double all_blocks = 2 * model.cost.products + 2 * T * model.cost.attention_width;
  const double last_product = 2 * model.cost.last_products / blocks;
  const double extra = static_cast<double>(again) * all_blocks / blocks - static_cast<double>(groups) * last_product;
  return 1 + extra / model.training_flops(model.context);
}

// What an MPI library takes for its messages: Open MPI 4.1 about 7 MiB with 2 to 4 ranks.
constexpr size_t kMessagingBytes = size_t{16} << 20;

size_t batch_bytes(const nn::Declaration& model, const StepCut& cut) {
  size_t numbers = 0;  // per sequence, of 4 bytes each
  for (const ColumnSpec& column : model.columns) numbers += column.width;
  return data::Prefetcher::kAhead * cut.micro_batch_size * numbers * sizeof(int32_t);
}

class Planner {
 public:
  Planner(const RunConfig& config, const nn::Declaration& model, uint64_t program, const RankOf& rank)
      : config_(config), model_(model), share_{config.lanes(), rank.rank, rank.ranks} {
    fixed_.program = program;
    fixed_.weights = model.parameters.size() * sizeof(float) + model.constant_bytes;
    fixed_.gradient_buffers = nn::LaneTree(share_.lanes, share_.own()).buffers();
    fixed_.gradient = nn::Gradient::bytes_of(model.parameters, nn::LaneTree(share_.lanes, share_.own()));
    const OptimizerBytes optimizer =
        optimizer_bytes(model.parameters, optimizer_options(config).kind, thread_count(config));
    fixed_.moments = optimizer.states;
    fixed_.update = optimizer.scratch;
    if (rank.ranks > 1) plan_exchange(optimizer);
  }

  // A rank has the moments of its own segments. Parts differ by at most the largest unit, which for Muon is a matrix.
  void plan_exchange(const OptimizerBytes& optimizer) {
    const size_t largest_segment = model_.parameters.largest_segment();
    size_t largest_unit = largest_segment;
    if (config_.optimizer.kind == OptimizerRule::kMuon) {
      for (const nn::Parameter& parameter : model_.parameters.all()) {
        if (Muon::covers(parameter)) largest_unit = std::max(largest_unit, parameter.size);
      }
    }
    const double part = static_cast<double>(optimizer.states) / static_cast<double>(share_.ranks);
    const size_t states = optimizer.states / (model_.parameters.trainable_size() * sizeof(float)) + 1;
    fixed_.moments = std::min(optimizer.states, static_cast<size_t>(part) + states * largest_unit * sizeof(float));
    fixed_.exchange = ExchangeSlots(share_, largest_segment).bytes() + kMessagingBytes;
  }

  // Sorted by time, then by memory.
  std::vector<Plan> candidates() const {
    std::vector<Plan> plans;
    const size_t threads = thread_count(config_);
    const StepCut whole = cut_step(config_.sequences_per_step(), config_.model.context, threads, share_);
    for (size_t teams = whole.teams; teams > 0; --teams) {
      StepCut cut = whole;
      cut.teams = teams;
      // The full cut is the fastest; fewer teams only serve a memory limit.
      const size_t T = config_.model.context;
      const double ratio = expected_time(cut, T, threads) / expected_time(whole, T, threads);
      add_all(plans, threads, cut, teams == whole.teams ? 1.0 : std::max(1.05, ratio));
    }
    std::stable_sort(plans.begin(), plans.end(), [](const Plan& a, const Plan& b) {
      return a.time != b.time ? a.time < b.time : a.memory.total() < b.memory.total();
    });
    return plans;
  }

 private:
  std::vector<size_t> intervals() const {
    if (config_.train.recompute.kind != Recompute::Kind::kAuto) {
      return {layers_at_once(config_.train.recompute, model_.activations.blocks)};
    }
    std::vector<size_t> all;
    for (size_t interval = model_.activations.blocks; interval > 0; --interval) all.push_back(interval);
    return all;
  }

  // `time` is the relative time of the cut.
  void add_all(std::vector<Plan>& plans, size_t threads, const StepCut& cut, double time) const {
    for (const size_t interval : intervals()) {
      const double again = time * recompute_time(model_.activations, interval);
      for (const auto& [rows, logits] : kLogitRows) {
        for (const auto& [packed, packing] : packings(cut)) {
          plans.push_back({.threads = threads,
                           .cut = cut,
                           .packed = packed,
                           .interval = interval,
                           .logit_rows = rows,
                           .time = again * logits * packing,
                           .memory = {}});
          plans.back().memory = memory_of(plans.back());
        }
      }
    }
  }

  // The choices for packing, each with its relative time.
  std::vector<std::pair<bool, double>> packings(const StepCut& cut) const {
    if (model_.activations.storage != kernels::DType::kF32) return {{true, 1.0}};
    // Next to adapters, two copies of the frozen matrices would replace their values: 1.75 GiB instead of 1.07 for a
    // step of SmolLM2-135M that takes 2 % less time.
    if (cut.micro_batches < kPackFrom || model_.parameters.has_adapters()) return {{false, 1.0}};
    return {{true, 1.0}, {false, kUnpackedTime}};
  }

  MemoryPlan memory_of(const Plan& plan) const {
    MemoryPlan memory = fixed_;
    if (plan.packed) memory.weights -= nn::Weights::releasable_bytes(model_.parameters);
    memory.packed = plan.packed ? nn::Weights::packed_bytes(model_.parameters, model_.activations.storage) : 0;
    memory.batches = batch_bytes(model_, plan.cut);
    memory.worker = nn::Workspace::plan(model_.activations, plan.workspace(0));
    memory.workers = plan.cut.teams;
    for (size_t team = 0; team < plan.cut.teams; ++team) {
      memory.all_workers += nn::Workspace::plan(model_.activations, plan.workspace(team)).total();
    }
    return memory;
  }

  const RunConfig& config_;
  const nn::Declaration& model_;
  LaneShare share_;
  MemoryPlan fixed_;
};

}  // namespace

nn::WorkspaceOptions Plan::workspace(size_t team) const {
  return {.sequences = cut.micro_batch_size,
          .backward = true,
          .members = members_of(team, cut.teams, threads),
          .interval = interval,
          .logit_rows = logit_rows};
}

size_t thread_count(const RunConfig& config) {
  if (config.train.threads != 0) return config.train.threads;
  return std::min(cpu_info().usable_cores, kMaxThreads);
}

Plan make_plan(const RunConfig& config, uint32_t vocabulary, uint64_t program, const RankOf& rank) {
  return make_plan(config, nn::declare(model_config(config, vocabulary)), program, rank);
}

Plan make_plan(const RunConfig& config, const nn::Declaration& model, uint64_t program, const RankOf& rank) {
  const std::vector<Plan> plans = Planner(config, model, program, rank).candidates();
  const uint64_t limit = config.train.memory;
  const auto fits = [&](const Plan& plan) { return limit == 0 || plan.memory.total() <= limit; };
  if (const auto found = std::find_if(plans.begin(), plans.end(), fits); found != plans.end()) return *found;
  const auto smallest = std::min_element(
      plans.begin(), plans.end(), [](const Plan& a, const Plan& b) { return a.memory.total() < b.memory.total(); });
  constexpr size_t kMiB = size_t{1} << 20;
  throw Error("[plan] train.memory: expected at least {}M for this model, precision and train.recompute={}, found {}",
              (smallest->memory.total() + kMiB - 1) / kMiB, to_text(config.train.recompute), exact_bytes(limit));
}

}  // namespace quern::train
