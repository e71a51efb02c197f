// Settings of search and of self-play games.
#pragma once

#include <cstddef>
#include <cstdint>

namespace quern::selfplay {

struct SearchSettings {
  // How far the network's priors are trusted against the values found: a move's bonus is
  // c_puct * prior * sqrt(visits of the position) / (1 + visits of the move).
  float c_puct = 1.5f;
  // A move that was never visited is taken to be this much worse than the position's mean score, times the square root
  // of the prior of the moves that were visited. In units of the score, from -1 to 1.
  float fpu_reduction = 0.2f;
  // Whether what a search found about the move that was made is kept for the next search.
  bool reuse_tree = true;
};

struct PlaySettings {
  SearchSettings search = {};

  // Playout-cap randomisation: a move gets a full search with this probability, else a cheap one. Only full searches
  // have noise and are recorded for training, so a game costs less for each result it adds.
  uint32_t simulations = 100;
  uint32_t cheap_simulations = 20;
  float full_share = 0.25f;

  // Dirichlet noise mixed into the priors of the root of a full search. `noise_alpha` of about 10 / (usual number of
  // legal moves): 1.4 for Connect Four, 0.3 for chess.
  float noise_share = 0.25f;
  float noise_alpha = 1.0f;

  // The first moves of a game are drawn in proportion to visits ^ (1 / temperature); later ones are the most visited.
  float temperature = 1.0f;
  uint32_t temperature_moves = 10;

  // This share of the games begins with random legal moves that do not end it: a number of them drawn from 0 to
  // `opening_moves`. So a network also learns positions that good play does not lead to.
  float opening_share = 0.0f;
  uint32_t opening_moves = 0;

  // This share begins with random legal moves, too, but they go on until a move wins at once, after at least the number
  // that was drawn. Search proves the win, so such a game costs one evaluation and adds one row: what a win looks like.
  // The shares must not exceed 1 together.
  float winning_share = 0.0f;

  // A player resigns when the root's score is below this after a search; -1 for never. Only in this share of the games,
  // so that the others show how often it would have been wrong.
  float resign_below = -1.0f;
  float resign_share = 0.9f;

  // The share of the search's root value, instead of the game's result, in the outcome that is trained.
  float root_value_share = 0.0f;
};

// Error that names the first setting that is out of its range, with expected and found.
void check(const SearchSettings& settings);
void check(const PlaySettings& settings);

}  // namespace quern::selfplay
