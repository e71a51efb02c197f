// Chat templates: the part of the Jinja language that they use, with the settings of Hugging Face transformers.
#pragma once

#include <ctime>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>

namespace quern::chat {

struct TemplateBody;

// A parsed template. Immutable, so any number of threads may render it at once.
//
// The text that it renders is that of Jinja2's ImmutableSandboxedEnvironment with trim_blocks and lstrip_blocks, loop
// controls, the functions raise_exception() and strftime_now(), `tojson` without HTML escapes, and
// {% generation %}, which renders its contents. A construct outside of the subset is an Error that names it.
//
// Templates come from downloaded files and are not trusted: the size of a template, its nesting, the work, the memory
// and the output of a rendering are limited (jinja_budget.h), and exceeding a limit is an Error.
class JinjaTemplate {
 public:
  // Parses `text`. `name` is used in messages. Error ("[template] NAME:LINE: ...") if the text is not a template.
  JinjaTemplate(std::string_view text, std::string name);
  ~JinjaTemplate();
  JinjaTemplate(JinjaTemplate&&) noexcept;
  JinjaTemplate& operator=(JinjaTemplate&&) noexcept;

  // Renders with these variables, an object whose order of keys `tojson` and loops preserve. Error with NAME:LINE for
  // raise_exception(), for operations on undefined values and for operands of the wrong type.
  std::string render(const nlohmann::ordered_json& variables) const;

  // strftime_now() gives this time, in UTC, instead of the current local time.
  void fix_time(std::time_t time) { time_ = time; }

 private:
  std::string name_;
  std::optional<std::time_t> time_;
  std::unique_ptr<const TemplateBody> body_;
};

}  // namespace quern::chat
