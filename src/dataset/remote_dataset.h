// The data of a run whose text is on another machine: all of it but the training text, whose batches arrive there.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "dataset/dataset.h"

namespace quern::train {

// What remote_dataset() needs, with at most `validation_tokens` held-out tokens of each source.
std::string describe_dataset(const Dataset& dataset, uint64_t validation_tokens);

// The dataset of a description, without a tokenizer: training_batches() of it have columns, but cannot be read. The
// held-out text is in memory. Error if the description is damaged.
Dataset remote_dataset(std::string_view description);

}  // namespace quern::train
