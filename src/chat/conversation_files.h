// Files of conversations: which ones to train on and which ones are held out, and reading them.
#pragma once

#include <filesystem>
#include <functional>
#include <vector>

#include "chat/conversation.h"

namespace quern::chat {

struct ConversationFiles {
  std::vector<std::filesystem::path> train;
  std::vector<std::filesystem::path> validation;
};

// Files are trained on. In a directory, train.jsonl is trained on and valid.jsonl or validation.jsonl is held out;
// without a train.jsonl, all other *.jsonl are trained on, in the order of their names. A further .gz or .zst is
// decompressed. Error if a path does not exist, a directory has nothing to train on, or two files for one purpose.
ConversationFiles find_conversation_files(const std::vector<std::filesystem::path>& paths);

// Called with each record; returns whether to continue.
using ConversationVisitor = std::function<bool(Conversation&& conversation)>;

// Visits the records of a file in order, and skips blank lines. Holds a few megabytes of text or one line at a time.
// Error, with file and line or byte, for a file that is damaged, has no records, is not UTF-8 (or UTF-16 with a byte
// order mark), or has a line of more than 64 MiB or that ConversationParser refuses.
void for_each_conversation(const std::filesystem::path& file, const ConversationVisitor& visit);

std::vector<Conversation> read_conversations(const std::filesystem::path& file);

}  // namespace quern::chat
