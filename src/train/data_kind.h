// Whether the data of a run is text or tokens.
#pragma once

#include <filesystem>
#include <vector>

#include "data/corpus.h"

namespace quern::train {

// Whether `paths` are token shards: files that end in .bin, and folders with such a file. Error when there are shards
// and text among them, or in one folder: whichever was read, the rest would be left out silently.
bool are_shards(const std::vector<std::filesystem::path>& paths);

// The text of `paths`. Error as Corpus, and for token shards; `why` says what needs text.
data::Corpus text_of(const std::vector<std::filesystem::path>& paths, std::string_view why);

}  // namespace quern::train
