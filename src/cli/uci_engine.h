// A chess engine that speaks UCI, the Universal Chess Interface: what it does with each line.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "cli/uci_game.h"
#include "cli/uci_output.h"
#include "cli/uci_search.h"
#include "cli/uci_words.h"
#include "learn/saved_network.h"

namespace quern::cli {

class UciEngine {
 public:
  // The network must outlive it, and be one of chess. `nodes` is the default of the option Nodes.
  UciEngine(const learn::SavedNetwork& network, uint64_t nodes);

  // Carries out a line of the interface. False for "quit". What is wrong with a line is told as "info string", and it
  // then changes nothing. Returns at once: searches run in a thread of their own.
  bool handle(std::string_view line);

 private:
  void identify();
  void new_game();
  void set_option(UciWords words);
  void go(std::string_view arguments);
  void show_board();

  const games::Game& rules_;
  const uint64_t default_nodes_;
  const std::string name_;
  uint64_t nodes_;
  uint64_t overhead_;
  bool show_wdl_ = false;
  UciGame game_;
  UciOutput output_;
  UciSearch search_;
};

}  // namespace quern::cli
