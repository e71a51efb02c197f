// A trained model, from the folder of its run.
#pragma once

#include <filesystem>
#include <memory>

#include "checkpoint/state.h"
#include "data/tokenizer.h"
#include "nn/gpt.h"
#include "train/config.h"
#include "train/observer.h"

namespace quern::train {

struct TrainedModel {
  RunConfig config;
  std::unique_ptr<Gpt> model;                  // packed: made to be used
  std::unique_ptr<data::Tokenizer> tokenizer;  // null for a run on token shards
  checkpoint::State state;
};

// The newest checkpoint of the run in `folder` that is whole; those passed over are warnings. Error when there is no
// run or no checkpoint.
TrainedModel load_model(const std::filesystem::path& folder, Observer& observer);

}  // namespace quern::train
