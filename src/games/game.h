// The rules of a board game for two players who take turns, with nothing hidden and no chance: what search, training,
// and the terminal know of a game.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace quern::games {

// A move, as a number below GameSpec::actions. The same number means the same kind of move in every position, seen by
// the player who makes it.
using Action = uint16_t;

// The result of a finished game for one of the players.
enum class Outcome : uint8_t { kLoss, kDraw, kWin };

// The same result for the other player.
constexpr Outcome flipped(Outcome outcome) { return static_cast<Outcome>(2 - static_cast<int>(outcome)); }

struct GameSpec {
  std::string name;      // as on the command line
  size_t rows, columns;  // of the board
  size_t planes;         // numbers that describe a square, for the network
  size_t actions;        // at most kMaxActions
  size_t max_moves;      // no game is longer

  size_t squares() const { return rows * columns; }
};

inline constexpr size_t kMaxActions = 8192;
inline constexpr size_t kMaxSquares = 4096, kMaxPlanes = 4096, kLongestGame = 1 << 20;

// A position, with what the rules remember of the moves that led to it. Copies are independent; a position belongs to
// one thread at a time.
class Position {
 public:
  virtual ~Position() = default;
  virtual std::unique_ptr<Position> clone() const = 0;

  virtual int player() const = 0;  // whose turn it is: 0 for the player who began, or 1
  virtual size_t moves_played() const = 0;

  // The legal moves in ascending order; empty if and only if the game is over. Overwrites `out`.
  virtual void legal_actions(std::vector<Action>& out) const = 0;
  // Makes a move, which must be legal.
  virtual void play(Action action) = 0;

  // The result for the player who makes this legal move, if it ends the game. The default makes it on a copy.
  virtual std::optional<Outcome> result_after(Action action) const;

  virtual bool over() const = 0;
  // The result of a game that is over, for the player whose turn it would be.
  virtual Outcome outcome() const = 0;

  // Writes (planes, rows, columns): the position as the player to move sees it.
  virtual void write_planes(std::span<float> out) const = 0;
  // Equal for positions with equal planes and equal legal moves; for others different, but for chance.
  virtual uint64_t hash() const = 0;
};

// A symmetry of the board: what becomes of a square and of an action. Both are permutations.
struct Symmetry {
  std::vector<uint16_t> squares;  // the square (row * columns + column) to which a square goes
  std::vector<Action> actions;
};

// What training needs to know of a game: its positions, but not its rules. Immutable.
class GameShape {
 public:
  explicit GameShape(GameSpec spec, std::vector<Symmetry> symmetries = {})
      : spec_(std::move(spec)), symmetries_(std::move(symmetries)) {}

  const GameSpec& spec() const { return spec_; }
  // Symmetries under which the rules do not change, for any position, without the identity.
  std::span<const Symmetry> symmetries() const { return symmetries_; }

 private:
  GameSpec spec_;
  std::vector<Symmetry> symmetries_;
};

// Immutable; all members may be called by several threads at once.
class Game : public GameShape {
 public:
  virtual ~Game() = default;

  virtual std::unique_ptr<Position> start() const = 0;

  // Text for people. A position's text is what parse_position() reads: FEN for chess. parse_*() throw an Error that
  // says what was expected and found.
  virtual std::string draw(const Position& position) const = 0;
  virtual std::string position_text(const Position& position) const = 0;
  virtual std::unique_ptr<Position> parse_position(std::string_view text) const = 0;
  virtual std::string action_text(const Position& position, Action action) const = 0;
  virtual Action parse_action(const Position& position, std::string_view text) const = 0;

 protected:
  using GameShape::GameShape;
};

// Error unless the sizes are ones that search and a network can have, and every symmetry consists of two permutations
// of these sizes. The message begins with `where`.
void check(const GameShape& shape, std::string_view where);

// The game of a name: tictactoe, connect4 or chess. Error for another name.
std::unique_ptr<Game> make_game(std::string_view name);

}  // namespace quern::games
