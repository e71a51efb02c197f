// Conversations as tokens, each marked with whether the model learns to say it.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "chat/chat_template.h"
#include "chat/conversation.h"
#include "data/tokenizer.h"

namespace quern::chat {

struct MarkedTokens {
  std::vector<int32_t> ids;
  std::vector<uint8_t> trained;  // 1 for each id that counts for the loss as a target; as many as ids

  // Trained ids that something precedes: the first id of a sequence is never a target.
  uint64_t targets() const;
};

// The sequences of a conversation. None of them continues after its last trained id, and a conversation without
// trained messages gives none.
//
// Messages. What an assistant message i adds is trained: let prompt be the rendered messages before i with a generation
// prompt, and whole the rendered messages up to i; the trained text is what whole has after prompt, without white space
// that follows an added token at its end. So the model learns the content and the token that ends its turn, exactly
// what it must produce at inference, and nothing that the prompt supplies.
//
// If each such text continues the one before it, the conversation is one sequence. Some templates write earlier turns
// in another way than the last (Qwen3 omits their thoughts); then each trained turn is a sequence of its own, rendered
// as it is at inference.
//
// Text is encoded span by span, so trained text begins and ends at token boundaries. Special tokens that it spells are
// encoded as such; the template writes the one that begins a text, if any.
//
// A prompt and its completion are messages if there is a template. Without one they are the prompt as `quern generate`
// encodes it, the completion and the end-of-text token, trained from the completion on. Text has the tokenizer's
// begin-of-text and end-of-text tokens around it, if it has them, and all of it is trained.
//
// `chat_template` may be null except for messages. Error with FILE:LINE of the record if the template refuses the
// messages or does not continue its own generation prompt.
std::vector<MarkedTokens> mark(const Conversation& conversation, const ChatTemplate* chat_template,
                               const data::Tokenizer& tokenizer);

}  // namespace quern::chat
