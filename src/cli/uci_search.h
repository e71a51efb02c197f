// Searches for UCI: a thread that thinks until its budget is used up or it is stopped, and says what it finds.
#pragma once

#include <atomic>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "cli/uci_game.h"
#include "cli/uci_go.h"
#include "cli/uci_output.h"
#include "learn/saved_network.h"
#include "selfplay/thinker.h"

namespace quern::cli {

// Public functions are called by one thread, which they keep waiting for an evaluation of the network at most.
class UciSearch {
 public:
  // The network and the output must outlive it.
  UciSearch(const learn::SavedNetwork& network, UciOutput& output);
  ~UciSearch() { stop(); }
  UciSearch(const UciSearch&) = delete;
  UciSearch& operator=(const UciSearch&) = delete;

  // Starts a search, after stopping the one before. Ends by saying "bestmove".
  void start(const UciGame& game, const UciBudget& budget, std::vector<std::string> searchmoves, bool show_wdl);
  // Ends the search, if there is one: it says its best move.
  void stop();
  // Forgets what was found. Not during a search.
  void forget() noexcept { rooted_ = false; }

 private:
  struct Task {
    std::unique_ptr<games::Position> position;
    UciBudget budget;
    std::vector<std::string> searchmoves;
    bool show_wdl;
    double begun;
  };

  void set_root(const UciGame& game, const games::Position& position);
  void run() noexcept;
  void think();
  void answer() noexcept;
  bool expired() const;
  uint64_t nodes() const;
  void report_now_and_then();
  void report();
  std::string best_move() const;
  std::vector<games::Action> best_line() const;
  std::string texts(const std::vector<games::Action>& line) const;

  const games::Game& game_;
  UciOutput& output_;
  selfplay::Thinker thinker_;
  bool rooted_ = false;  // whether the tree is that of a position of this game
  uint32_t kept_ = 0;    // simulations of the tree from earlier searches
  Task task_;
  double reported_ = 0;
  std::atomic<bool> stopping_{false};
  std::thread thread_;
};

}  // namespace quern::cli
