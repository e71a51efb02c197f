// A game in the terminal.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "cli/play_opponent.h"
#include "games/game.h"

namespace quern::cli {

enum class Side : uint8_t { kFirst, kSecond, kAlternate };  // kAlternate: first, and then in turns

// Reads lines from standard input: moves, and commands such as /hint. The game goes to standard output, messages about
// what was typed to standard error.
class PlayTerminal {
 public:
  // `start` is where each game starts; the game must not be over there.
  PlayTerminal(const games::Game& game, PlayOpponent& opponent, Side side, std::unique_ptr<games::Position> start)
      : game_(game), opponent_(opponent), side_(side), start_(std::move(start)) {}

  // Until /quit or the end of the input.
  void run();

 private:
  struct Command;
  static const Command kCommands[];

  void start_game();
  void read_lines();
  void obey(std::string_view line);
  void play(std::string_view text);
  void reply();
  void show() const;
  bool is_mine(const games::Position& position) const { return position.player() == person_; }
  std::unique_ptr<games::Position> replayed(size_t moves) const;

  void help();
  void hint();
  void show_board();
  void new_game();
  void undo();
  void quit() { done_ = true; }

  const games::Game& game_;
  PlayOpponent& opponent_;
  Side side_;
  std::unique_ptr<games::Position> start_, position_;
  std::vector<games::Action> moves_;  // of this game, from the start
  int person_ = 0;                    // the person's number as a player
  uint64_t games_ = 0;
  bool done_ = false;
};

}  // namespace quern::cli
