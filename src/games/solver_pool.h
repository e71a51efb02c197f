// Solvers of one game (make_judge() of solver.h), a thread for each.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string_view>
#include <vector>

#include "games/solver.h"

namespace quern::games {

// Called now and then by the thread that started the work.
using SolverProgress = std::function<void(uint64_t done, uint64_t total)>;

// What a solver has computed stays for the next task. One caller at a time.
class SolverPool {
 public:
  // `threads` is at least 1. Error for a game without one.
  SolverPool(std::string_view game, size_t threads);

  // Calls task(solver, i) once for each i below `count`; tasks with different i run at the same time. Rethrows what a
  // task throws.
  void run(size_t count, const std::function<void(Solver& solver, size_t i)>& task, const SolverProgress& progress);

 private:
  std::vector<std::unique_ptr<Solver>> solvers_;
};

}  // namespace quern::games
