// quern chat: a conversation with a trained model.
#include <unistd.h>

#include <memory>
#include <optional>
#include <string>

#include "chat/chat_history.h"
#include "cli/chat_speaker.h"
#include "cli/chat_template_option.h"
#include "cli/chat_terminal.h"
#include "cli/commands.h"
#include "cli/generation_options.h"
#include "cli/prompt_input.h"
#include "cli/run_argument.h"
#include "cli/warnings.h"
#include "core/error.h"
#include "evaluate/load.h"
#include "formats/chat_template_files.h"

namespace quern::cli {
namespace {

struct Options {
  RunArgument run;
  PromptInput prompt;
  ChatOptions chat;
  std::string system;
  std::string chat_template;
};

constexpr const char* kExamples = R"(Examples:
  quern chat runs/tuned                                      a conversation; Ctrl-D ends it
  quern chat runs/tuned --system "You answer in one sentence."
  quern chat runs/tuned --temperature 0.7 --top-p 0.9 --tokens 500
  quern chat runs/tuned --prompt "What is the tide?"         one answer
  echo "What is the tide?" | quern chat runs/tuned           the same
  quern chat runs/book --chat-template chatml                a model without a chat template

In a conversation, /help lists the commands: /reset, /save FILE, /system TEXT, /undo and /quit. Ctrl-C stops an answer
or, at the prompt, ends the program. /save writes one JSON Lines record that `quern finetune` can train on.

Conversations are written as the model's own chat template says: chat_template.jinja or tokenizer_config.json in the
run. An answer ends where the template ends a turn, at the end of a text, or after --tokens tokens. When a conversation
outgrows the model's context, the model no longer sees the oldest questions and answers, but always the system message.

The same run, questions and seed give the same answers, with any number of threads.)";

// The one question that is not asked in a conversation; nullopt if there is a terminal to have one in.
std::optional<std::string> only_question(const PromptInput& given) {
  if (!given.text && isatty(STDIN_FILENO) != 0) return std::nullopt;
  const std::optional<std::string> question = read_prompt(given.text ? given : PromptInput{.text = "-", .file = {}});
  if (question && !question->empty()) return question;
  throw Error("chat: expected a message in --prompt or on standard input, found an empty one");
}

chat::ChatTemplate template_for(const std::string& chosen, const train::TrainedModel& trained) {
  std::optional<chat::ChatTemplate> found = formats::choose_chat_template(chosen, trained.folder);
  if (found) return std::move(*found);
  throw Error(
      "[chat] {}: expected a chat template, found none; choose one with --chat-template chatml or --chat-template FILE",
      trained.folder.string());
}

int run_chat(const Options& options) {
  const std::string run = run_of(options.run, "chat");
  check(options.chat.generate.sampling);
  const std::optional<std::string> question = only_question(options.prompt);
  const train::TrainedModel trained = train::load_model(run, warn);
  const data::Tokenizer& tokenizer = trained.needed_tokenizer();
  const chat::ChatTemplate chat_template = template_for(options.chat_template, trained);
  ChatOptions chat = options.chat;
  chat.generate.end_tokens = trained.end_tokens;
  chat::ChatHistory history;
  history.set_system(options.system);
  if (question) {
    ChatSpeaker(*trained.model, tokenizer, chat_template, chat).answer(history.asking(*question));
    return 0;
  }
  ChatSpeaker speaker(*trained.model, tokenizer, chat_template, chat, ChatTerminal::interrupted);
  ChatTerminal(speaker, std::move(history)).run();
  return 0;
}

}  // namespace

Command add_chat(Parser root) {
  const auto options = std::make_shared<Options>();
  Parser command = root.add_command("chat", "Talk with a trained model");
  add_run(command, options->run, "Directory of the run, or of one of its checkpoints");
  command.add_text("--prompt", options->prompt.text, "TEXT", "Answer this, and exit; - reads standard input");
  command.add_text("--system", options->system, "TEXT", "System message: how the model should answer");
  add_chat_template(command, options->chat_template);
  add_generation_options(command, options->chat.generate, "Maximum number of tokens of an answer");
  command.add_threads(options->chat.threads);
  command.set_footer(kExamples);
  return {command, [options] { return run_chat(*options); }};
}

}  // namespace quern::cli
