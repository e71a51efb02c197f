// The rows of a replay buffer that hold positions of self-play.
#pragma once

#include <span>

#include "replay/buffer.h"
#include "selfplay/game_record.h"

namespace quern::selfplay {

// clang-format off
//   column     type     shape                    contents
//   planes     float32  (planes, rows, columns)  Position::write_planes()
//   policy     float32  (actions)                share of the visits of each legal move, with sum 1; -1: not legal
//   outcome    float32  (3)                      win, draw, loss for the player to move, with sum 1
// clang-format on
replay::Schema row_schema(const games::GameSpec& spec);

// Error unless the buffer has this schema, in any encoding: names the column, with expected and found. A buffer with
// these columns has no episodes; it may have priorities, and new rows get the highest so far.
void expect_rows_of(const games::GameSpec& spec, const replay::ReplayBuffer& buffer);

// Adds the rows of a game in one call, directly from the record; nothing if it has none. `wait` as in
// ReplayBuffer::add().
void add_rows(replay::ReplayBuffer& buffer, const GameRecord& record, const replay::Wait& wait = {});

}  // namespace quern::selfplay
