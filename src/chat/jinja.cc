#include "chat/jinja.h"

#include <utility>

#include "chat/jinja_parser.h"
#include "chat/jinja_rendering.h"

namespace quern::chat {

JinjaTemplate::JinjaTemplate(std::string_view text, std::string name) : name_(std::move(name)) {
  Budget budget(name_);
  body_ = parse_template(text, budget);
}

JinjaTemplate::~JinjaTemplate() = default;
JinjaTemplate::JinjaTemplate(JinjaTemplate&&) noexcept = default;
JinjaTemplate& JinjaTemplate::operator=(JinjaTemplate&&) noexcept = default;

std::string JinjaTemplate::render(const nlohmann::ordered_json& variables) const {
  Rendering rendering(name_, variables, time_);
  run_block(body_->block, rendering);
  return rendering.take_output();
}

}  // namespace quern::chat
