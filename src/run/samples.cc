#include "run/samples.h"

#include <algorithm>

#include "chat/chat_prompt.h"
#include "core/error.h"
#include "core/thread_profile.h"
#include "formats/chat_template_files.h"
#include "generate/decoder.h"
#include "generate/generated_text.h"
#include "generate/utf8_stream.h"

namespace quern::train {
namespace {

const Region kSample("sample");

constexpr size_t kPromptRows = 16;  // of a prompt per pass: its memory is not part of the plan

bool is_added(const data::Tokenizer& tokenizer, int32_t id) {
  const auto added = tokenizer.added_tokens();
  return std::any_of(added.begin(), added.end(), [&](const auto& token) { return token.id == id; });
}

std::string utf8(const std::string& bytes) {
  Utf8Stream stream;
  std::string text = stream.feed(bytes);
  return text + stream.finish();
}

}  // namespace

Samples::Samples(const RunConfig& config, const Dataset& dataset, const std::filesystem::path& folder)
    : config_(config), dataset_(dataset), folder_(folder) {
  if (config.log.sample_interval == 0 || config.log.sample_prompt.empty() || dataset.tokenizer == nullptr) return;
  try {
    dataset.tokenizer->encode(config.log.sample_prompt);
  } catch (const Error& error) {
    throw Error("[config] log.sample_prompt: {}", error.what());
  }
}

bool Samples::is_due(uint64_t step) const {
  const uint64_t interval = config_.log.sample_interval;
  return dataset_.tokenizer != nullptr && interval > 0 && config_.is_due(interval, step);
}

Samples::Question Samples::question() const {
  if (dataset_.chat && config_.log.sample_prompt.empty()) return held_out_question();
  if (dataset_.chat) return asked_question();
  const data::Tokenizer& tokenizer = *dataset_.tokenizer;
  Prompt prompt =
      config_.log.sample_prompt.empty() ? default_prompt(tokenizer) : prompt_of(tokenizer, config_.log.sample_prompt);
  return {std::move(prompt.tokens), {}, std::move(prompt.text)};
}

// What precedes the first trained token of a conversation. It ends like the trained text, if that is a special token.
Samples::Question Samples::held_out_question() const {
  const chat::ConversationRows& rows = dataset_.chat->validation ? *dataset_.chat->validation : dataset_.chat->train;
  std::vector<int32_t> tokens(rows.context()), targets(rows.context()), positions(rows.context());
  rows.fill(0, {tokens.data(), targets.data(), positions.data()});
  const auto first = std::find_if(targets.begin(), targets.end(), [](int32_t target) { return target >= 0; });
  if (first == targets.end()) return {default_prompt(*dataset_.tokenizer).tokens, {}, {}};
  const auto last = std::find_if(first, targets.end(), [](int32_t target) { return target < 0; }) - 1;
  Question question{.tokens = {tokens.begin(), tokens.begin() + (first - targets.begin()) + 1}, .ends = {}, .text = {}};
  if (is_added(*dataset_.tokenizer, *last)) question.ends.push_back(*last);
  question.text = utf8(dataset_.tokenizer->decode(question.tokens));
  return question;
}

Samples::Question Samples::asked_question() const {
  const data::Tokenizer& tokenizer = *dataset_.tokenizer;
  const auto chat_template = formats::choose_chat_template({}, folder_);
  const std::string& asked = config_.log.sample_prompt;
  if (!chat_template) return {prompt_of(tokenizer, asked).tokens, {}, asked};
  const nlohmann::ordered_json messages = {{{"role", "user"}, {"content", asked}}};
  Question question{.tokens = chat::chat_prompt(messages, *chat_template, tokenizer), .ends = {}, .text = asked};
  if (const auto end = chat::answer_form(*chat_template, tokenizer).end_token) question.ends.push_back(*end);
  return question;
}

// The seed and the number of the text make the random numbers, so that each step draws its own.
SampleReport Samples::write(const nn::LanguageModel& model, uint64_t step, size_t threads) const {
  const Timed timed(kSample);
  const Unprofiled inside;  // the operations of the model are those of the workers in a profile
  const Question asked = question();
  GenerateOptions options{.max_tokens = kTokens, .sampling = {.temperature = kTemperature}, .end_tokens = asked.ends};
  options.sampling.seed = config_.train.seed;
  options.sampling.sample = static_cast<uint32_t>(step);
  Decoder decoder(
      model,
      {.capacity = positions_for(model, asked.tokens.size(), kTokens), .threads = threads, .block_rows = kPromptRows});
  GeneratedText text(decoder, *dataset_.tokenizer, asked.tokens, options);
  SampleReport report{.step = step, .prompt = asked.text};
  for (std::string piece = text.next(); !piece.empty(); piece = text.next()) report.text += piece;
  return report;
}

}  // namespace quern::train
