// What models and adapters have in common as GGUF files.
#pragma once

#include <string_view>

#include "formats/export.h"
#include "formats/gguf_writer.h"

namespace quern::formats {

// general.type
inline constexpr std::string_view kModelKind = "model", kAdapterKind = "adapter";

// Error if transformers has this model and llama.cpp does not.
void check_for_llama_cpp(const ExportedModel& exported);

// What kind of file it is, its name, the type of its values, and the mark of an export.
void add_general_keys(const ExportedModel& exported, std::string_view kind, GgmlType type, GgufKeys& keys);

}  // namespace quern::formats
