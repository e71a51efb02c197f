#include "data/corpus.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>

#include "core/error.h"

namespace quern::data {
namespace {

namespace fs = std::filesystem;

constexpr std::array<std::string_view, 7> kTextEndings = {".txt", ".text", ".md", ".markdown", ".rst", ".org", ".tex"};
constexpr std::array<std::string_view, 2> kJsonEndings = {".jsonl", ".ndjson"};

std::string lower_ending(const fs::path& path) {
  std::string ending = path.extension().string();
  for (char& c : ending) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  return ending;
}

// The ending that says what the contents are: .txt of a.txt and of a.txt.gz.
std::string content_ending(const fs::path& path) {
  return lower_ending(compression_of(path) == Compression::kNone ? path : path.stem());
}

// In lists of endings: .txt, .txt.gz, or the whole name if it has none.
std::string shown_ending(const fs::path& path) {
  const std::string whole = compression_of(path) == Compression::kNone ? "" : lower_ending(path);
  const std::string ending = content_ending(path) + whole;
  return ending.empty() ? path.filename().string() : ending;
}

template <size_t N>
bool is_among(const std::string& ending, const std::array<std::string_view, N>& endings) {
  return std::find(endings.begin(), endings.end(), ending) != endings.end();
}

bool is_text_name(const fs::path& path) {
  const std::string ending = content_ending(path);
  return is_among(ending, kTextEndings) || is_among(ending, kJsonEndings);
}

bool is_hidden(const fs::path& path) { return path.filename().string().starts_with('.'); }

// Regular files below folder.path, sorted by path, so that the order does not depend on the file system.
std::vector<fs::path> files_below(Corpus::Folder& folder) {
  std::vector<fs::path> found;
  std::error_code error;
  for (fs::recursive_directory_iterator it(folder.path, error), end; !error && it != end; it.increment(error)) {
    std::error_code status;
    if (is_hidden(it->path())) {
      ++folder.hidden;
      it.disable_recursion_pending();
    } else if (it->is_regular_file(status)) {
      found.push_back(it->path());
    } else if (it->is_symlink(status)) {
      ++folder.links;
    }
  }
  if (error) throw Error("[data] {}: cannot list the folder: {}", folder.path.string(), error.message());
  std::sort(found.begin(), found.end());
  return found;
}

// ".png (2), .pdf (1)", the most frequent first; the rest as a number.
std::string counts_text(const std::map<std::string, uint64_t>& counts) {
  constexpr size_t kMaxShown = 8;
  std::vector<std::pair<std::string, uint64_t>> sorted(counts.begin(), counts.end());
  std::stable_sort(sorted.begin(), sorted.end(), [](const auto& a, const auto& b) { return a.second > b.second; });
  std::vector<std::string> items;
  uint64_t rest = 0;
  for (const auto& [ending, count] : sorted) {
    if (items.size() < kMaxShown) {
      items.push_back(fmt::format("{} ({})", ending, count));
    } else {
      rest += count;
    }
  }
  if (rest > 0) items.push_back(fmt::format("others ({})", rest));
  return fmt::format("{}", fmt::join(items, ", "));
}

uint64_t total(const std::map<std::string, uint64_t>& counts) {
  uint64_t sum = 0;
  for (const auto& [ending, count] : counts) sum += count;
  return sum;
}

std::string files_text(uint64_t count) { return fmt::format("{} file{}", count, count == 1 ? "" : "s"); }

}  // namespace

std::string Corpus::Folder::read_text() const {
  return fmt::format("{}: read {}: {}", path.string(), files_text(total(read)), counts_text(read));
}

std::string Corpus::Folder::skipped_text() const {
  std::vector<std::string> kinds;
  if (!not_text.empty()) kinds.push_back(fmt::format("{}: not text by name", counts_text(not_text)));
  if (hidden > 0) kinds.push_back(fmt::format("hidden ({})", hidden));
  if (empty > 0) kinds.push_back(fmt::format("empty ({})", empty));
  if (links > 0) kinds.push_back(fmt::format("links to folders or to nothing ({})", links));
  if (kinds.empty()) return {};
  return fmt::format("{}: skipped {}: {}", path.string(), files_text(total(not_text) + hidden + empty + links),
                     fmt::join(kinds, "; "));
}

Corpus::Corpus(const std::vector<fs::path>& paths, TextOptions options) : options_(std::move(options)) {
  for (const fs::path& path : paths) {
    std::error_code error;
    const fs::file_status status = fs::status(path, error);
    if (!fs::exists(status)) throw Error("[data] {}: expected a file or folder, found nothing", path.string());
    if (fs::is_directory(status)) {
      add_folder(path);
    } else {
      add_file(path);
    }
  }
  if (paths.empty()) throw Error("[data] expected a file or folder with text, found none");
  if (bytes_ == 0) throw Error("[data] {}: expected text, found only empty files", paths.front().string());
}

void Corpus::add_file(const fs::path& path) {
  std::error_code error;
  const uint64_t bytes = fs::file_size(path, error);
  if (error) throw Error("[data] {}: cannot read: {}", path.string(), error.message());
  const bool lines = is_among(content_ending(path), kJsonEndings);
  files_.push_back({path, lines ? Kind::kJsonLines : Kind::kText, bytes, compression_of(path)});
  bytes_ += bytes;
}

void Corpus::add_folder(const fs::path& path) {
  Folder folder{.path = path, .read = {}, .not_text = {}};
  for (const fs::path& file : files_below(folder)) {
    if (!is_text_name(file)) {
      ++folder.not_text[shown_ending(file)];
      continue;
    }
    add_file(file);
    if (files_.back().bytes == 0) {
      ++folder.empty;
    } else {
      ++folder.read[shown_ending(file)];
    }
  }
  if (folder.read.empty() && folder.empty == 0) {
    throw Error(
        "[data] {}: expected files that end in {}, {}, or one of these and .gz or .zst, found none in the folder{}",
        path.string(), fmt::join(kTextEndings, " "), fmt::join(kJsonEndings, " "),
        folder.not_text.empty() ? "" : fmt::format(", only {}", counts_text(folder.not_text)));
  }
  folders_.push_back(std::move(folder));
}

std::optional<fs::path> Corpus::first_text_in(const fs::path& path) {
  Folder folder{.path = path, .read = {}, .not_text = {}};
  for (fs::path& file : files_below(folder)) {
    if (is_text_name(file)) return std::move(file);
  }
  return std::nullopt;
}

}  // namespace quern::data
