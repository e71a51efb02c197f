// Conversations as the data of a run: data.format = chat.
#pragma once

#include <filesystem>

#include "dataset/dataset.h"

namespace quern::train {

// Opens the JSON Lines that config.data.paths names, with the tokenizer in `tokenizer_file` and the chat template of
// the model in the same folder, or the one that data.chat_template names. What valid.jsonl has is held out or, without
// such a file, the last data.validation_fraction of the conversations. Error if nothing would be trained.
Dataset open_chat(const RunConfig& config, const std::filesystem::path& tokenizer_file, const OpenOptions& options);

// The rows of the conversations in `paths` for an evaluation with the model of the run in `folder`.
chat::ConversationRows open_conversations(const RunConfig& config, const std::filesystem::path& folder,
                                          const data::Tokenizer& tokenizer,
                                          const std::vector<std::filesystem::path>& paths);

// With data.epochs and without train.steps: sets train.steps to as many as the epochs take and, unless it was given,
// optimizer.warmup to 3 % of them.
void complete_steps(RunConfig& config, const Dataset& dataset);

}  // namespace quern::train
