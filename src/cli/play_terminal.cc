#include "cli/play_terminal.h"

#include <fmt/format.h>

#include <cstdio>
#include <optional>

#include "cli/terminal_lines.h"
#include "core/error.h"
#include "core/text.h"
#include "report/output.h"

namespace quern::cli {
namespace {

template <typename... Args>
void say(fmt::format_string<Args...> format, Args&&... args) {
  fmt::print("{}\n", printable(fmt::format(format, std::forward<Args>(args)...)));
}

}  // namespace

struct PlayTerminal::Command {
  const char* name;
  const char* help;
  void (PlayTerminal::*run)();
};

const PlayTerminal::Command PlayTerminal::kCommands[] = {
    {"/help", "show this list", &PlayTerminal::help},
    {"/hint", "the best moves, and the result that is expected of each", &PlayTerminal::hint},
    {"/board", "show the board again, and the position as text for --position", &PlayTerminal::show_board},
    {"/undo", "take back your last move", &PlayTerminal::undo},
    {"/new", "start a new game", &PlayTerminal::new_game},
    {"/quit", "end the program, as Ctrl-D does", &PlayTerminal::quit},
};

void PlayTerminal::run() {
  start_game();
  read_lines();
}

void PlayTerminal::read_lines() {
  while (!done_) {
    fmt::print("> ");
    std::fflush(stdout);
    const std::optional<std::string> line = read_line();
    if (!line) {
      fmt::print("\n");
      return;
    }
    const std::string_view text = trimmed(*line);
    try {
      if (text.starts_with('/')) {
        obey(text);
      } else if (!text.empty()) {
        play(text);
      }
    } catch (const Error& error) {  // the game continues without this line
      std::fflush(stdout);
      report::Output(stderr).print("quern: {}\n", printable(error.what()));
    }
  }
}

void PlayTerminal::start_game() {
  const bool second = side_ == Side::kSecond || (side_ == Side::kAlternate && games_ % 2 == 1);
  ++games_;
  person_ = second ? 1 : 0;
  position_ = start_->clone();
  moves_.clear();
  say("{} against {}; you are the {} player. Type moves such as {}, or /help.", game_.spec().name, opponent_.name(),
      second ? "second" : "first", [this] {
        std::vector<games::Action> legal;
        start_->legal_actions(legal);
        return game_.action_text(*start_, legal[legal.size() / 2]);
      }());
  if (!is_mine(*position_)) {
    fmt::print("{}", game_.draw(*position_));
    return reply();
  }
  show();
}

void PlayTerminal::obey(std::string_view line) {
  std::vector<std::string_view> names;
  for (const Command& command : kCommands) {
    if (line == command.name) return (this->*command.run)();
    names.emplace_back(command.name);
  }
  const std::string_view near = nearest(line, names);
  throw Error("unknown command {}; {}", in_quotes(line),
              near.empty() ? "/help lists the commands" : fmt::format("did you mean {}?", near));
}

void PlayTerminal::play(std::string_view text) {
  const games::Action action = game_.parse_action(*position_, text);
  position_->play(action);
  moves_.push_back(action);
  if (position_->over()) return show();
  reply();
}

void PlayTerminal::reply() {
  std::fflush(stdout);
  const PlayOpponent::Choice choice = opponent_.choose(*position_);
  const std::string text = game_.action_text(*position_, choice.action);
  position_->play(choice.action);
  moves_.push_back(choice.action);
  say("It plays {}{}{}", text, choice.estimate.empty() ? "" : "; ", choice.estimate);
  show();
}

// The board, and the result if there is one.
void PlayTerminal::show() const {
  fmt::print("{}", game_.draw(*position_));
  if (!position_->over()) return;
  const games::Outcome outcome = position_->outcome();
  const bool mine = (outcome == games::Outcome::kWin) == is_mine(*position_);
  const char* result = outcome == games::Outcome::kDraw ? "A draw" : mine ? "You win" : "You lose";
  say("{} after {} moves. /new starts another game.", result, position_->moves_played());
}

std::unique_ptr<games::Position> PlayTerminal::replayed(size_t moves) const {
  std::unique_ptr<games::Position> position = start_->clone();
  for (size_t i = 0; i < moves; ++i) position->play(moves_[i]);
  return position;
}

void PlayTerminal::help() {
  for (const Command& command : kCommands) fmt::print("  {:10}{}\n", command.name, command.help);
}

void PlayTerminal::hint() {
  if (position_->over()) throw Error("/hint: expected a game, found one that is over; /new starts another one");
  std::fflush(stdout);
  fmt::print("{}", opponent_.hint(*position_));
}

void PlayTerminal::show_board() {
  show();
  say("{}", game_.position_text(*position_));
}

void PlayTerminal::new_game() { start_game(); }

// Back to the last position in which it was the person's turn, before this one.
void PlayTerminal::undo() {
  for (size_t moves = moves_.size(); moves-- > 0;) {
    std::unique_ptr<games::Position> before = replayed(moves);
    if (!is_mine(*before)) continue;
    position_ = std::move(before);
    moves_.resize(moves);
    return show();
  }
  throw Error("/undo: expected a move of yours, found none yet");
}

}  // namespace quern::cli
