// The sequences of a data set that a context has room for, and what became of the others.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "chat/marked_tokens.h"

namespace quern::chat {

struct SequenceSummary {
  uint64_t conversations = 0;  // records
  uint64_t sequences = 0;      // kept
  uint64_t tokens = 0;         // of them
  uint64_t targets = 0;        // that count for the loss
  uint64_t cut = 0;            // sequences that were shortened
  uint64_t dropped = 0;        // sequences without a trained token within the context
  uint64_t longest = 0;        // tokens, before cutting

  // "1,000 conversations: 1,200 sequences, 340,000 tokens, 150,000 trained; longest 900; 3 cut, 1 dropped"
  std::string text() const;
};

// A sequence of n ids takes n - 1 positions: ids 0 ... n - 2 are inputs, ids 1 ... n - 1 their targets.
class TrainingSequences {
 public:
  explicit TrainingSequences(uint32_t context);  // positions, at least 1

  // Adds the sequences of one conversation. Those with more than context + 1 ids are cut at the end, and dropped if
  // that leaves nothing trained.
  void add(std::vector<MarkedTokens> conversation);

  uint32_t context() const { return context_; }
  const SequenceSummary& summary() const { return summary_; }
  const std::vector<MarkedTokens>& sequences() const { return sequences_; }
  std::vector<MarkedTokens> take() { return std::move(sequences_); }

 private:
  uint32_t context_;
  std::vector<MarkedTokens> sequences_;
  SequenceSummary summary_;
};

// The sequences of all records of the files, in order. Error if there are none: training on them would change nothing
// while it looks healthy.
TrainingSequences read_training_sequences(const std::vector<std::filesystem::path>& files,
                                          const ChatTemplate* chat_template, const data::Tokenizer& tokenizer,
                                          uint32_t context);

}  // namespace quern::chat
