#include "dataset/data_kind.h"

#include <optional>
#include <system_error>

#include "core/error.h"
#include "data/token_shards.h"

namespace quern::train {
namespace {

namespace fs = std::filesystem;

std::optional<fs::path> first_shard_in(const fs::path& folder) {
  std::optional<fs::path> first;
  std::error_code error;
  for (fs::directory_iterator it(folder, error), end; !error && it != end; it.increment(error)) {
    if (data::is_shard_name(it->path()) && (!first || it->path() < *first)) first = it->path();
  }
  if (error) throw Error("[data] {}: cannot list the folder: {}", folder.string(), error.message());
  return first;
}

bool is_shards(const fs::path& path) {
  std::error_code error;
  if (!fs::is_directory(path, error)) return data::is_shard_name(path);
  const std::optional<fs::path> shard = first_shard_in(path);
  if (!shard) return false;
  const std::optional<fs::path> text = data::Corpus::first_text_in(path);
  if (!text) return true;
  throw Error("[data] {}: expected text or token shards, found both ({} and {}); name the files instead of the folder",
              path.string(), text->lexically_relative(path).string(), shard->filename().string());
}

}  // namespace

bool are_shards(const std::vector<fs::path>& paths) {
  const fs::path *text = nullptr, *shards = nullptr;
  for (const fs::path& path : paths) (is_shards(path) ? shards : text) = &path;
  if (text != nullptr && shards != nullptr) {
    throw Error("[data] expected text or token shards, found both: {} is text, {} is tokens; name one kind",
                text->string(), shards->string());
  }
  return shards != nullptr;
}

data::Corpus text_of(const std::vector<fs::path>& paths, std::string_view why, const data::TextOptions& options) {
  if (!are_shards(paths)) return data::Corpus(paths, options);
  throw Error("[data] {}: expected text, found token shards; {}", paths.front().string(), why);
}

}  // namespace quern::train
