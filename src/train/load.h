// A trained model, from the folder of its run.
#pragma once

#include <filesystem>
#include <memory>
#include <optional>

#include "checkpoint/checkpoint.h"
#include "data/tokenizer.h"
#include "nn/gpt.h"
#include "train/config.h"
#include "train/observer.h"

namespace quern::train {

struct TrainedModel {
  std::filesystem::path folder;
  RunConfig config;
  std::unique_ptr<Gpt> model;                  // packed: made to be used
  std::unique_ptr<data::Tokenizer> tokenizer;  // null for a run on token shards
  checkpoint::State state;

  // Error when there is none.
  const data::Tokenizer& needed_tokenizer() const;
};

// The newest checkpoint of the run in `folder` that is whole; those passed over are warnings. None when nothing was
// saved yet. Error, and no warning, when there are checkpoints and none is whole.
std::optional<checkpoint::Checkpoint> newest_checkpoint(const std::filesystem::path& folder, Observer& observer,
                                                        checkpoint::Parts parts);

// The model of the newest whole checkpoint of the run in `folder`. Error when there is no run or no checkpoint.
TrainedModel load_model(const std::filesystem::path& folder, Observer& observer);

}  // namespace quern::train
