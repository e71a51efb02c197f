// --chat-template, for commands that read conversations.
#pragma once

#include <string>

#include "cli/parser.h"

namespace quern::cli {

// Adds --chat-template chatml|FILE, as for formats::choose_chat_template().
inline void add_chat_template(Parser command, std::string& value) {
  command.add_text("--chat-template", value, "NAME",
                   "How conversations are written: chatml, or a file with a Jinja template (default: the model's own)");
}

}  // namespace quern::cli
