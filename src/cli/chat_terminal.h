// A conversation in the terminal.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "chat/chat_history.h"
#include "cli/answer_interrupt.h"
#include "cli/chat_speaker.h"

namespace quern::cli {

// Reads lines from standard input: questions, and commands such as /help. Answers go to standard output, everything
// else to standard error, so that `quern chat RUN > answers.txt` has the answers alone.
class ChatTerminal {
 public:
  // `speaker` must stop an answer when interrupted() says so.
  ChatTerminal(ChatSpeaker& speaker, chat::ChatHistory history) : speaker_(speaker), history_(std::move(history)) {}

  // Until /quit or the end of the input, with a blank prompt line for the latter. Ctrl-C ends an answer or, at the
  // prompt, the program.
  void run();

  static bool interrupted() { return AnswerInterrupt::requested(); }

 private:
  struct Command;
  static const Command kCommands[];

  void obey(std::string_view line);
  void ask(const std::string& question);
  void tell(const Answer& answer);

  void help(const std::string&);
  void reset(const std::string&);
  void save(const std::string& file);
  void set_system(const std::string& text);
  void undo(const std::string&);
  void quit(const std::string&) { done_ = true; }

  ChatSpeaker& speaker_;
  chat::ChatHistory history_;
  uint32_t answers_ = 0;  // so far: each has its own random numbers, also one to a question that was asked again
  bool told_hidden_ = false;
  bool done_ = false;
};

}  // namespace quern::cli
