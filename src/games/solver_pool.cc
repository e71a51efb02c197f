#include "games/solver_pool.h"

#include <atomic>

#include "core/thread_pool.h"

namespace quern::games {

SolverPool::SolverPool(std::string_view game, size_t threads) {
  for (size_t i = 0; i < threads; ++i) solvers_.push_back(make_judge(game));
}

void SolverPool::run(size_t count, const std::function<void(Solver& solver, size_t i)>& task,
                     const SolverProgress& progress) {
  std::atomic<size_t> next{0}, done{0};  // the pool makes what tasks wrote visible
  ThreadPool pool(solvers_.size(), [&](const Member& member) {
    for (size_t i; (i = next.fetch_add(1, std::memory_order_relaxed)) < count;) {
      task(*solvers_[member.index], i);
      const size_t total = done.fetch_add(1, std::memory_order_relaxed) + 1;
      if (member.leads() && progress) progress(total, count);
    }
  });
  pool.run(solvers_.size());
}

}  // namespace quern::games
