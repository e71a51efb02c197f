// Ctrl-C in a conversation.
#pragma once

namespace quern::cli {

// From now on, SIGINT ends the program with exit code 130, except while there is an AnswerInterrupt.
void end_on_interrupt();

// Lets SIGINT only request that the answer stops. One at a time, after end_on_interrupt().
class AnswerInterrupt {
 public:
  AnswerInterrupt();
  AnswerInterrupt(const AnswerInterrupt&) = delete;
  AnswerInterrupt& operator=(const AnswerInterrupt&) = delete;
  ~AnswerInterrupt();

  static bool requested();
};

}  // namespace quern::cli
