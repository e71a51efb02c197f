// The chat template of a model, or one that was chosen instead.
#pragma once

#include <filesystem>
#include <optional>
#include <string>

#include "chat/chat_template.h"

namespace quern::formats {

// The template that `chosen` names: "chatml" for the built-in one, or a file with a template. If it is empty, that of
// the model in `folder`, if it has one. Special tokens are those of the model in `folder`, which may be empty for none.
// Error for a file that cannot be read or is not a template.
std::optional<chat::ChatTemplate> choose_chat_template(const std::string& chosen, const std::filesystem::path& folder);

}  // namespace quern::formats
