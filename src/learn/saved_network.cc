#include "learn/saved_network.h"

#include <optional>
#include <utility>

#include "config/run_folder.h"
#include "core/error.h"
#include "evaluate/find_checkpoint.h"
#include "learn/settings.h"

namespace quern::learn {

namespace {

[[noreturn]] void refuse(const std::filesystem::path& folder, const train::RunConfig& config, std::string_view game) {
  throw Error("[run] {}: expected a run of `quern selfplay{}{}`, found {}", folder.string(), game.empty() ? "" : " ",
              game, config.is_selfplay() ? "one of " + config.selfplay.game : "one that trains on text");
}

}  // namespace

SavedBoard load_board(const std::filesystem::path& path, const train::Warn& warn, std::string_view wanted) {
  const auto [folder, chosen] = train::find_checkpoint(path, wanted);
  train::RunConfig config = train::read_config(folder);
  if (!config.is_selfplay()) refuse(folder, config, {});
  games::GameSpec spec = recorded_game(config);
  auto found = chosen ? std::optional(checkpoint::Checkpoint(*chosen, checkpoint::Parts::kWeights))
                      : train::newest_checkpoint(folder, warn, checkpoint::Parts::kWeights);
  if (!found) throw Error("[run] {}: expected a checkpoint, found none; train it first", folder.string());
  auto network = std::make_shared<const Network>(board_config(config, spec), found->model(), found->path());
  return {folder, std::move(config), std::move(spec), std::move(network), found->state().step};
}

SavedNetwork load_network(const std::filesystem::path& path, const train::Warn& warn, std::string_view game,
                          std::string_view wanted) {
  const std::filesystem::path folder = train::find_checkpoint(path, wanted).run;
  const train::RunConfig config = train::read_config(folder);
  if (!config.is_selfplay() || (!game.empty() && config.selfplay.game != game)) refuse(folder, config, game);
  std::shared_ptr<const games::Game> rules = games::make_game(config.selfplay.game);
  SavedBoard board = load_board(path, warn, wanted);
  return {std::move(board.folder), std::move(board.config), std::move(rules), std::move(board.network), board.step};
}

}  // namespace quern::learn
