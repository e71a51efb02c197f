#include "selfplay/game_player.h"

#include "selfplay/move_choice.h"
#include "selfplay/random_opening.h"
#include "selfplay/random_words.h"

namespace quern::selfplay {
namespace {

// The blocks of a move's stream.
constexpr uint32_t kSearchBlock = 0;  // full or cheap; of the first move of a game, also whether players may resign
constexpr uint32_t kChoiceBlock = 1;
constexpr uint32_t kNoiseBlock = 2;  // and all that follow

}  // namespace

GamePlayer::GamePlayer(const games::Game& game, const PlaySettings& settings)
    : game_(game), settings_(settings), search_(settings.search) {
  check(settings);
}

RandomStream GamePlayer::stream(size_t move) const noexcept {
  return move_stream(Purpose::kSelfPlay, seed_, record_.number, static_cast<uint32_t>(move));
}

void GamePlayer::start(uint64_t seed, uint64_t number, uint64_t version) {
  seed_ = seed;
  record_.clear();
  record_.number = number;
  record_.version = version;
  movers_.clear();
  over_ = false;
  RandomWords words(stream(0), kSearchBlock);
  words.uniform();
  may_resign_ = words.uniform() < static_cast<double>(settings_.resign_share);
  search_.reset(*open());
  begin_move();
}

// The position where search takes over.
std::unique_ptr<games::Position> GamePlayer::open() {
  RandomOpening opening(game_, record_.moves);
  winning_ = false;
  if (settings_.opening_share + settings_.winning_share > 0) {
    RandomWords words(move_stream(Purpose::kOpening, seed_, record_.number, 0));
    const double drawn = words.uniform(), random = static_cast<double>(settings_.opening_share);
    if (drawn < random) {
      opening.play(words.below(settings_.opening_moves + 1), words);
    } else if (drawn < random + static_cast<double>(settings_.winning_share)) {
      winning_ = opening.play_to_win(settings_.opening_moves, words);
    }
  }
  record_.opening = record_.moves.size();
  return opening.take();
}

void GamePlayer::begin_move() {
  const RandomStream random = stream(record_.moves.size());
  RandomWords words(random, kSearchBlock);
  full_ = words.uniform() < static_cast<double>(settings_.full_share) || winning_;
  const uint32_t simulations = full_ ? settings_.simulations : settings_.cheap_simulations;
  record_.simulations += simulations;
  search_.begin(simulations, {full_ ? settings_.noise_share : 0, settings_.noise_alpha, random, kNoiseBlock});
}

const games::Position* GamePlayer::next_leaf() {
  while (!over_) {
    if (const games::Position* leaf = search_.next_leaf()) return leaf;
    finish_move();
  }
  return nullptr;
}

void GamePlayer::finish_move() {
  if (full_) record_position();
  const int player = search_.position().player();
  if (search_.root_proof() != Proof::kNone) return finish_game(outcome_of(search_.root_proof()), player);
  if (resigns()) {
    record_.resigned = true;
    return finish_game(games::Outcome::kLoss, player);
  }
  const games::Action action = choose();
  record_.moves.push_back(action);
  search_.advance(action);
  const games::Position& position = search_.position();
  if (position.over()) return finish_game(position.outcome(), position.player());
  begin_move();
}

void GamePlayer::record_position() {
  const games::GameSpec& spec = game_.spec();
  const size_t size = spec.planes * spec.squares();
  record_.planes.resize((record_.rows + 1) * size);
  search_.position().write_planes({record_.planes.data() + record_.rows * size, size});

  record_.policies.resize((record_.rows + 1) * spec.actions, -1.0f);
  float* const policy = record_.policies.data() + record_.rows * spec.actions;
  const std::span<const Edge> edges = search_.root_edges();
  shares_.resize(edges.size());
  write_shares(edges, shares_);
  for (size_t i = 0; i < edges.size(); ++i) policy[edges[i].action] = shares_[i];

  const Wdl value = search_.root_value();  // mixed with the result at the end
  record_.outcomes.insert(record_.outcomes.end(), {value.win, value.draw, value.loss});
  movers_.push_back(static_cast<uint8_t>(search_.position().player()));
  ++record_.rows;
}

games::Action GamePlayer::choose() const {
  const std::span<const Edge> edges = search_.root_edges();
  const size_t move = record_.moves.size();
  if (move >= settings_.temperature_moves) return edges[most_visited(edges)].action;
  RandomWords words(stream(move), kChoiceBlock);
  return edges[draw_by_visits(edges, settings_.temperature, words)].action;
}

bool GamePlayer::resigns() const { return may_resign_ && search_.root_value().score() < settings_.resign_below; }

// `outcome` is for `player`.
void GamePlayer::finish_game(games::Outcome outcome, int player) {
  over_ = true;
  record_.outcome = player == 0 ? outcome : flipped(outcome);
  const float share = settings_.root_value_share;
  for (size_t row = 0; row < record_.rows; ++row) {
    const Wdl result = Wdl::of(movers_[row] == player ? outcome : flipped(outcome));
    float* const target = record_.outcomes.data() + 3 * row;
    target[0] = (1 - share) * result.win + share * target[0];
    target[1] = (1 - share) * result.draw + share * target[1];
    target[2] = (1 - share) * result.loss + share * target[2];
  }
}

}  // namespace quern::selfplay
