// Parses templates.
#pragma once

#include <memory>
#include <string_view>

#include "chat/jinja_budget.h"
#include "chat/jinja_statements.h"

namespace quern::chat {

// Parses `text`. Fails, with the line and the construct, if it is not a template or uses what is not supported.
std::unique_ptr<const TemplateBody> parse_template(std::string_view text, Budget& budget);

}  // namespace quern::chat
