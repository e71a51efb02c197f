#include "selfplay/chosen_moves.h"

#include <algorithm>
#include <atomic>

#include "core/thread_pool.h"
#include "selfplay/evaluation_batch.h"
#include "selfplay/evaluation_cache.h"
#include "selfplay/expect_between.h"
#include "selfplay/move_choice.h"
#include "selfplay/priors.h"
#include "selfplay/search.h"

namespace quern::selfplay {
namespace {

constexpr size_t kCachedPositions = size_t{1}
                                    << 16;  // searches of one position reach others by several orders of moves
constexpr size_t kUsualMoves = 40;

// The next position to take, and how many are done. The thread pool makes what was written visible.
struct Counters {
  std::atomic<size_t> next{0}, done{0};
};

// What a thread owns. It takes the next position whenever one of its searches is done.
class ChoosingThread {
 public:
  ChoosingThread(const games::GameSpec& spec, const Model& model,
                 std::span<const std::unique_ptr<games::Position>> positions, const ChoiceSettings& settings,
                 std::span<ChosenMove> chosen, Counters& counters)
      : positions_(positions),
        settings_(settings),
        chosen_(chosen),
        counters_(counters),
        evaluator_(model.make_evaluator(at_once())),
        batch_(spec, at_once()),
        cache_(kCachedPositions, std::min(spec.actions, kUsualMoves)),
        priors_(spec.actions) {
    searches_.reserve(at_once());  // places stay where they are
    for (size_t i = 0; i < at_once(); ++i) searches_.emplace_back(settings.search);
  }

  // False when there is nothing left to choose.
  bool choose_round() {
    for (Place& place : searches_) advance(place);
    const bool more = !waiting_.empty();
    evaluate();
    return more;
  }

 private:
  struct Place {
    explicit Place(const SearchSettings& settings) : search(settings) {}

    Search search;
    size_t index = 0;  // of its position
    bool searching = false;
  };
  struct Waiting {
    Place* place;
    size_t index;  // in the batch
    uint64_t key;
  };

  size_t at_once() const { return std::min(settings_.positions_at_once, positions_.size()); }

  // Searches until an evaluation is needed that the cache does not have, or until no position is left.
  void advance(Place& place) {
    while (place.searching || start(place)) {
      const games::Position* leaf = place.search.next_leaf();
      if (leaf == nullptr) {
        finish(place);
        continue;
      }
      const uint64_t key = leaf->hash();
      CachedEvaluation found;
      if (!cache_.find(key, place.search.leaf_actions().size(), found)) {
        waiting_.push_back({&place, batch_.add(*leaf, key), key});
        return;
      }
      take(place, found.priors, found.value);
    }
  }

  bool start(Place& place) {
    const size_t index = counters_.next.fetch_add(1, std::memory_order_relaxed);
    if (index >= positions_.size()) return false;
    place.index = index;
    place.search.reset(*positions_[index]);
    place.search.begin(settings_.simulations);
    return place.searching = true;
  }

  void finish(Place& place) {
    const std::span<const Edge> edges = place.search.root_edges();
    chosen_[place.index].searched = edges[most_visited(edges)].action;
    place.searching = false;
    counters_.done.fetch_add(1, std::memory_order_relaxed);
  }

  // The first evaluation is that of the root.
  void take(Place& place, std::span<const float> priors, const Wdl& value) {
    const bool is_root = place.search.nodes() == 0;
    place.search.take(priors, value);
    if (!is_root) return;
    const std::span<const Edge> edges = place.search.root_edges();
    chosen_[place.index].policy = edges[most_probable(edges)].action;
    chosen_[place.index].value = value;
  }

  void evaluate() {
    batch_.evaluate(*evaluator_);
    for (const auto& [place, index, key] : waiting_) {
      const std::span<const games::Action> actions = place->search.leaf_actions();
      const std::span<float> priors(priors_.data(), actions.size());
      write_priors(batch_.logits(index), actions, priors);
      const Wdl value = read_outcome(batch_.outcome(index));
      cache_.put(key, priors, value);
      take(*place, priors, value);
    }
    waiting_.clear();
    batch_.clear();
  }

  std::span<const std::unique_ptr<games::Position>> positions_;
  const ChoiceSettings& settings_;
  std::span<ChosenMove> chosen_;
  Counters& counters_;
  std::vector<Place> searches_;
  std::unique_ptr<Evaluator> evaluator_;
  EvaluationBatch batch_;
  EvaluationCache cache_;
  std::vector<float> priors_;
  std::vector<Waiting> waiting_;
};

}  // namespace

std::vector<ChosenMove> choose_moves(const games::GameSpec& spec, const Model& model,
                                     std::span<const std::unique_ptr<games::Position>> positions,
                                     const ChoiceSettings& settings) {
  check(settings.search);
  expect_between("threads", settings.threads, 1, kMaxThreads);
  expect_between("positions_at_once", settings.positions_at_once, 1, 1 << 16);
  std::vector<ChosenMove> chosen(positions.size());
  if (positions.empty()) return chosen;
  Counters counters;
  ThreadPool pool(settings.threads, [&](const Member& member) {
    ChoosingThread thread(spec, model, positions, settings, chosen, counters);
    while (thread.choose_round()) {
      const size_t done = counters.done.load(std::memory_order_relaxed);
      if (member.leads() && settings.progress) settings.progress(done, positions.size());
    }
  });
  pool.run(settings.threads);
  return chosen;
}

}  // namespace quern::selfplay
