// generation_config.json of Hugging Face `transformers`: how a model is meant to generate text.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <string>
#include <vector>

namespace quern::formats {

// The ids in `eos_token_id`, one or a list, which end a text besides the tokenizer's end of text: a chat model also
// ends at the end of its turn. Empty if the file does not exist or has none. Ids that are not below `vocabulary` are
// left out, with a warning: no text contains them. All other fields are ignored. The file is untrusted: Error if it is
// larger than 1 MiB, not a JSON object, or has anything but up to 256 whole numbers as ids.
// `warn` is called with each warning.
std::vector<int32_t> read_end_tokens(const std::filesystem::path& file, size_t vocabulary,
                                     const std::function<void(const std::string& text)>& warn);

}  // namespace quern::formats
