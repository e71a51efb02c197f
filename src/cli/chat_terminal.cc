#include "cli/chat_terminal.h"

#include <algorithm>
#include <cstdio>
#include <optional>
#include <vector>

#include "cli/terminal_lines.h"
#include "core/error.h"
#include "core/files.h"
#include "core/text.h"
#include "report/output.h"

namespace quern::cli {
namespace {

template <typename... Args>
void say(fmt::format_string<Args...> format, Args&&... args) {
  report::Output(stderr).print("{}\n", printable(fmt::format(format, std::forward<Args>(args)...)));
}

// "/save", but not "/usr/bin", which is part of a question.
bool is_command(std::string_view line) {
  const std::string_view word = line.substr(0, line.find_first_of(" \t"));
  return word.starts_with('/') && std::ranges::all_of(word.substr(1), [](char c) { return c >= 'a' && c <= 'z'; });
}

}  // namespace

struct ChatTerminal::Command {
  const char* name;
  const char* argument;  // what it needs or takes
  const char* help;
  void (ChatTerminal::*run)(const std::string& argument);
};

const ChatTerminal::Command ChatTerminal::kCommands[] = {
    {"/help", "", "show this list", &ChatTerminal::help},
    {"/reset", "", "start a new conversation, with the same system message", &ChatTerminal::reset},
    {"/save", "FILE", "write the conversation to a new file, as a record to fine-tune on", &ChatTerminal::save},
    {"/system", "TEXT", "replace the system message; without a text, remove it", &ChatTerminal::set_system},
    {"/undo", "", "remove the last question and its answer; ask again for another answer", &ChatTerminal::undo},
    {"/quit", "", "end the program, as Ctrl-D does; Ctrl-C stops an answer", &ChatTerminal::quit},
};

void ChatTerminal::run() {
  end_on_interrupt();
  while (!done_) {
    report::Output(stderr).write("> ");
    const std::optional<std::string> line = read_line();
    if (!line) {
      report::Output(stderr).write("\n");
      return;
    }
    const std::string_view text = trimmed(*line);
    try {
      if (is_command(text)) {
        obey(text);
      } else if (!text.empty()) {
        ask(std::string(text));
      }
    } catch (const Error& error) {  // the conversation continues without this line
      say("quern: {}", error.what());
    }
  }
}

void ChatTerminal::obey(std::string_view line) {
  const std::string_view word = line.substr(0, line.find_first_of(" \t"));
  std::vector<std::string_view> names;
  for (const Command& command : kCommands) {
    if (word == command.name) return (this->*command.run)(std::string(trimmed(line.substr(word.size()))));
    names.emplace_back(command.name);
  }
  const std::string_view near = nearest(word, names);
  throw Error("unknown command {}; {}", in_quotes(word),
              near.empty() ? "/help lists the commands" : fmt::format("did you mean {}?", near));
}

void ChatTerminal::ask(const std::string& question) {
  const AnswerInterrupt interrupt;
  const Answer answer = speaker_.answer(history_.asking(question), answers_++);
  if (answer.text.empty() && !answer.finish) return;  // stopped before it began
  history_.add(question, answer.text);
  history_.hide(answer.hidden);
  tell(answer);
}

void ChatTerminal::tell(const Answer& answer) {
  if (answer.finish == Finish::kLength) say("(ended after {} tokens; --tokens N allows more)", answer.tokens);
  if (answer.hidden == 0 || told_hidden_) return;
  told_hidden_ = true;
  say("(the conversation is longer than the model's context: it no longer sees the oldest questions and answers)");
}

void ChatTerminal::help(const std::string&) {
  for (const Command& command : kCommands) {
    report::Output(stderr).print("  {:<14}{}\n", fmt::format("{} {}", command.name, command.argument), command.help);
  }
}

void ChatTerminal::reset(const std::string&) {
  history_.clear();
  answers_ = 0;
  told_hidden_ = false;
  say("(a new conversation)");
}

void ChatTerminal::save(const std::string& file) {
  if (file.empty()) throw Error("/save: expected the name of a new file, as in /save chat.jsonl");
  if (history_.empty()) throw Error("/save: expected a conversation, found no answer yet");
  AtomicFile out(file);
  out.writer().write(history_.record() + "\n");
  out.commit(Existing::kKeep);
  say("(saved to {})", file);
}

void ChatTerminal::set_system(const std::string& text) {
  history_.set_system(text);
  say("{}", text.empty() ? "(no system message)" : "(the system message is set)");
}

void ChatTerminal::undo(const std::string&) {
  if (!history_.undo()) throw Error("/undo: expected a conversation, found no answer yet");
  say("(removed the last question and its answer)");
}

}  // namespace quern::cli
