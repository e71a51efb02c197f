#include "games/chess_actions.h"

#include <cassert>

namespace quern::games::chess {
namespace {

struct Step {
  int right, forwards;
  Piece promotion;
};

constexpr size_t kUnderpromotions = 64;

constexpr std::array<Step, kMovePlanes> make_steps() {
  std::array<Step, kMovePlanes> steps{};
  size_t plane = 0;
  for (const auto& [right, forwards] : detail::kKingSteps) {
    for (int distance = 1; distance <= 7; ++distance) {
      steps[plane++] = {right * distance, forwards * distance, kNoPiece};
    }
  }
  for (const auto& [right, forwards] : detail::kKnightSteps) steps[plane++] = {right, forwards, kNoPiece};
  for (const Piece piece : {kKnight, kBishop, kRook}) {
    for (const int right : {-1, 0, 1}) steps[plane++] = {right, 1, piece};
  }
  return steps;
}

constexpr std::array<Step, kMovePlanes> kSteps = make_steps();

// The plane of a step, by 15 * (forwards + 7) + right + 7.
constexpr std::array<uint8_t, 15 * 15> make_planes() {
  std::array<uint8_t, 15 * 15> planes{};
  for (size_t plane = 0; plane < kUnderpromotions; ++plane) {
    planes[static_cast<size_t>(15 * (kSteps[plane].forwards + 7) + kSteps[plane].right + 7)] =
        static_cast<uint8_t>(plane);
  }
  return planes;
}

constexpr std::array<uint8_t, 15 * 15> kPlanes = make_planes();

}  // namespace

Action action_of(Move move, Color mover) {
  const int from = viewed(move.from, mover), to = viewed(move.to, mover);
  const int right = file_of(to) - file_of(from), forwards = rank_of(from) - rank_of(to);  // row 0 is the far side
  size_t plane = kPlanes[static_cast<size_t>(15 * (forwards + 7) + right + 7)];
  if (move.promotion != kNoPiece && move.promotion != kQueen) {
    plane = kUnderpromotions + 3 * static_cast<size_t>(move.promotion - kKnight) + static_cast<size_t>(right + 1);
  }
  return static_cast<Action>(static_cast<size_t>(from) * kMovePlanes + plane);
}

Move move_of(Action action, const Board& board) {
  assert(action < kActions);
  const int from = static_cast<int>(action / kMovePlanes);
  const Step& step = kSteps[action % kMovePlanes];
  const int to = from - 8 * step.forwards + step.right;
  Move move{static_cast<uint8_t>(viewed(from, board.turn)), static_cast<uint8_t>(viewed(to, board.turn)),
            step.promotion};
  const bool is_pawn = board.placement.pieces[kPawn] & bit(move.from);
  if (is_pawn && rank_of(to) == 0 && move.promotion == kNoPiece) move.promotion = kQueen;
  return move;
}

}  // namespace quern::games::chess
