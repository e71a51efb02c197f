// The data of a run whose text is tokenised during training.
#pragma once

#include <filesystem>

#include "config/config.h"
#include "dataset/dataset.h"

namespace quern::train {

// open_dataset() for data.sampling = stream. Reads the whole text for the fingerprint and for the characters of a char
// tokenizer; bpe learns from 512 evenly spaced pieces of 64 KiB, or from all if there are fewer. Tokenises only
// options.validation_tokens tokens, and enough of the training text to verify that it has a sequence. Error also for
// token shards, which need no tokenising.
Dataset open_stream(const RunConfig& config, const std::filesystem::path& tokenizer_file, const OpenOptions& options);

}  // namespace quern::train
