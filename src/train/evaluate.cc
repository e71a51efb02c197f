#include "train/evaluate.h"

#include <algorithm>
#include <atomic>
#include <cmath>
#include <deque>
#include <memory>
#include <numbers>
#include <vector>

#include "train/workers.h"

namespace quern::train {
namespace {

uint64_t bytes_of(const data::Tokenizer& tokenizer, std::span<const int32_t> tokens) {
  uint64_t bytes = 0;
  for (const int32_t token : tokens) {
    if (token >= tokenizer.vocabulary_size()) continue;  // a row that only fills the table up
    if (tokenizer.end_of_text() == token) continue;      // stands between documents, is no text
    bytes += tokenizer.bytes_of(token).size();
  }
  return bytes;
}

// One evaluation: windows in micro-batches, micro-batches to teams.
class LossPass {
 public:
  LossPass(const Gpt& model, const data::ValidationBatches& windows, size_t threads, const data::Tokenizer* tokenizer)
      : model_(model),
        windows_(windows),
        tokenizer_(tokenizer),
        T_(model.config().context),
        at_once_(std::min<uint64_t>(sequences_per_micro_batch(T_), windows.windows())),
        tasks_((windows.windows() + at_once_ - 1) / at_once_),
        results_(tasks_),
        remaining_(tasks_) {
    const size_t teams = teams_for(threads, tasks_);
    for (size_t team = 0; team < teams; ++team) {
      places_.emplace_back(model.config(), at_once_, members_of(team, teams, threads));
    }
    workers_ = std::make_unique<Workers>(
        WorkersOptions{.threads = threads, .teams = teams},
        [this](const Task& task, size_t team, const Member& member) { run_task(task.index, places_[team], member); },
        [this](const Task&, size_t) {
          if (remaining_.fetch_sub(1, std::memory_order_acq_rel) == 1) finished_.add(1);
        },
        [this] { finished_.add(1); });
  }

  Evaluation run() {
    for (size_t i = 0; i < tasks_; ++i) {
      workers_->submit({.kind = TaskKind::kLoss, .index = static_cast<uint32_t>(i)});
    }
    finished_.await_change(0);
    workers_->rethrow();
    double loss = 0;
    uint64_t bytes = 0;
    for (const Result& result : results_) {
      loss += result.loss;
      bytes += result.bytes;
    }
    const uint64_t tokens = windows_.windows() * T_;
    Evaluation evaluation{.loss = loss / static_cast<double>(tokens), .tokens = tokens, .bytes_per_token = {}};
    if (bytes > 0) evaluation.bytes_per_token = static_cast<double>(bytes) / static_cast<double>(tokens);
    return evaluation;
  }

 private:
  struct Result {
    double loss = 0;
    uint64_t bytes = 0;
  };
  // A team's.
  struct Place {
    Place(const ModelConfig& config, size_t sequences, size_t members)
        : work(config, sequences, false, members), inputs(sequences * config.context), targets(inputs.size()) {}
    Workspace work;
    std::vector<int32_t> inputs, targets;
  };

  void run_task(uint32_t index, Place& place, const Member& member) {
    const uint64_t first = index * at_once_;
    const size_t n = std::min<uint64_t>(at_once_, windows_.windows() - first);
    if (member.leads()) windows_.fill(first, static_cast<uint32_t>(n), place.inputs.data(), place.targets.data());
    member.meet();
    const double loss = model_.loss(
        {.tokens = place.inputs.data(), .targets = place.targets.data(), .sequences = n, .T = T_}, place.work, member);
    if (!member.leads()) return;
    results_[index].loss = loss;
    if (tokenizer_ != nullptr) results_[index].bytes = bytes_of(*tokenizer_, std::span(place.targets).first(n * T_));
  }

  const Gpt& model_;
  const data::ValidationBatches& windows_;
  const data::Tokenizer* tokenizer_;
  size_t T_, at_once_, tasks_;
  std::vector<Result> results_;
  std::deque<Place> places_;
  std::atomic<size_t> remaining_;
  Signal finished_;                   // 0 while there is something to do
  std::unique_ptr<Workers> workers_;  // last: its threads use all of the above
};

}  // namespace

double Evaluation::perplexity() const { return std::exp(loss); }

std::optional<double> Evaluation::bits_per_byte() const {
  if (!bytes_per_token) return std::nullopt;
  return loss / std::numbers::ln2 / *bytes_per_token;
}

Evaluation evaluate(const Gpt& model, const data::ValidationBatches& windows, size_t threads,
                    const data::Tokenizer* tokenizer) {
  LossPass pass(model, windows, threads, tokenizer);
  return pass.run();
}

}  // namespace quern::train
