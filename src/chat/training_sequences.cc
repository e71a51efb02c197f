#include "chat/training_sequences.h"

#include <algorithm>

#include "chat/conversation_files.h"
#include "core/error.h"

namespace quern::chat {
namespace {

// 1234567 as 1,234,567.
std::string with_commas(uint64_t number) {
  std::string text = std::to_string(number);
  for (size_t i = text.size(); i > 3;) text.insert(i -= 3, 1, ',');
  return text;
}

std::string counted(uint64_t number, const char* noun) {
  return fmt::format("{} {}{}", with_commas(number), noun, number == 1 ? "" : "s");
}

}  // namespace

std::string SequenceSummary::text() const {
  std::string text =
      fmt::format("{}: {}, {}, {} trained; longest {}", counted(conversations, "conversation"),
                  counted(sequences, "sequence"), counted(tokens, "token"), with_commas(targets), with_commas(longest));
  if (cut + dropped > 0) text += fmt::format("; {} cut, {} dropped", with_commas(cut), with_commas(dropped));
  return text;
}

TrainingSequences::TrainingSequences(uint32_t context) : context_(context) {
  if (context == 0) throw Error("[data] expected a context of at least 1 token, found 0");
}

void TrainingSequences::add(std::vector<MarkedTokens> conversation) {
  ++summary_.conversations;
  for (MarkedTokens& sequence : conversation) {
    summary_.longest = std::max<uint64_t>(summary_.longest, sequence.ids.size());
    const bool too_long = sequence.ids.size() - 1 > context_;
    if (too_long) {
      sequence.ids.resize(size_t{context_} + 1);
      sequence.trained.resize(size_t{context_} + 1);
    }
    const uint64_t targets = sequence.targets();
    summary_.targets += targets;
    if (targets == 0) {
      ++summary_.dropped;
      continue;
    }
    summary_.cut += too_long ? 1 : 0;
    summary_.tokens += sequence.ids.size();
    ++summary_.sequences;
    sequences_.push_back(std::move(sequence));
  }
}

TrainingSequences read_training_sequences(const std::vector<std::filesystem::path>& files,
                                          const ChatTemplate* chat_template, const data::Tokenizer& tokenizer,
                                          uint32_t context) {
  TrainingSequences found(context);
  for (const std::filesystem::path& file : files) {
    for_each_conversation(file, [&](Conversation&& conversation) {
      found.add(mark(conversation, chat_template, tokenizer));
      return true;
    });
  }
  if (found.summary().sequences > 0) return found;
  throw Error("[data] {}: expected tokens to train on within a context of {}, found none in {}",
              files.empty() ? "no files" : files.front().string(), context, found.summary().text());
}

}  // namespace quern::chat
