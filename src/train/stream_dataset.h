// The text of a run that is tokenised while it is learned from.
#pragma once

#include <filesystem>

#include "train/config.h"
#include "train/dataset.h"

namespace quern::train {

// open_dataset() for data.sampling = stream. The whole text is looked at for the characters of a char tokenizer and for
// the fingerprint; bpe learns from 512 pieces of 64 KiB, evenly spread, or from all where there are fewer. Of the
// tokens only those are made that options.validation_tokens asks for, and those that show that there is a sequence to
// learn from. Error also for token shards, which need no tokenising.
Dataset open_stream(const RunConfig& config, const std::filesystem::path& tokenizer_file, const OpenOptions& options);

}  // namespace quern::train
