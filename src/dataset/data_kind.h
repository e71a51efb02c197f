// Whether the data of a run is text or tokens.
#pragma once

#include <filesystem>
#include <vector>

#include "data/corpus.h"

namespace quern::train {

// Whether `paths` are token shards: files that end in .bin, and directories with such a file. Error if they mix shards
// and text, also within one directory: one of the two would be ignored silently.
bool are_shards(const std::vector<std::filesystem::path>& paths);

// The text in `paths`. Throws the errors of Corpus, and Error for token shards; `why` explains what needs text.
data::Corpus text_of(const std::vector<std::filesystem::path>& paths, std::string_view why,
                     const data::TextOptions& options);

}  // namespace quern::train
