#include "data/corpus.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>

#include "core/error.h"
#include "core/mapped_file.h"

namespace quern::data {
namespace {

namespace fs = std::filesystem;

constexpr std::array<std::string_view, 7> kTextEndings = {".txt", ".text", ".md", ".markdown", ".rst", ".org", ".tex"};
constexpr std::array<std::string_view, 2> kJsonEndings = {".jsonl", ".ndjson"};

template <size_t N>
bool ends_in(const fs::path& path, const std::array<std::string_view, N>& endings) {
  std::string ending = path.extension().string();
  for (char& c : ending) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  return std::find(endings.begin(), endings.end(), ending) != endings.end();
}

bool is_text_name(const fs::path& path) { return ends_in(path, kTextEndings) || ends_in(path, kJsonEndings); }

bool is_hidden(const fs::path& path) { return path.filename().string().starts_with('.'); }

// Regular files below `folder`, sorted by path, so that the order does not depend on the file system.
std::vector<fs::path> files_below(const fs::path& folder) {
  std::vector<fs::path> found;
  std::error_code error;
  for (fs::recursive_directory_iterator it(folder, error), end; !error && it != end; it.increment(error)) {
    std::error_code status;
    if (is_hidden(it->path())) {
      it.disable_recursion_pending();
    } else if (it->is_regular_file(status)) {
      found.push_back(it->path());
    }
  }
  if (error) throw Error("[data] {}: cannot list the folder: {}", folder.string(), error.message());
  std::sort(found.begin(), found.end());
  return found;
}

}  // namespace

Corpus::Corpus(const std::vector<fs::path>& paths) {
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
  files_.push_back({path, ends_in(path, kJsonEndings) ? Kind::kJsonLines : Kind::kText, bytes});
  bytes_ += bytes;
}

void Corpus::add_folder(const fs::path& folder) {
  const size_t before = files_.size();
  for (const fs::path& path : files_below(folder)) {
    if (is_text_name(path)) {
      add_file(path);
    } else {
      ++passed_over_;
    }
  }
  if (files_.size() == before) {
    throw Error("[data] {}: expected files that end in {}, {}, found none in the folder", folder.string(),
                fmt::join(kTextEndings, " "), fmt::join(kJsonEndings, " "));
  }
}

std::optional<fs::path> Corpus::first_text_in(const fs::path& folder) {
  for (fs::path& path : files_below(folder)) {
    if (is_text_name(path)) return std::move(path);
  }
  return std::nullopt;
}

void Corpus::for_each_document(const Visitor& visit) const {
  for (const File& file : files_) {
    const MappedFile mapped(file.path);
    mapped.expect_sequential();
    mapped.read([&] {
      if (file.kind == Kind::kText) {
        if (!mapped.text().empty()) visit(mapped.text(), file.path);
        return;
      }
      for_each_json_line(mapped.text(), file.path.string(), [&](std::string_view text) {
        if (!text.empty()) visit(text, file.path);
      });
    });
  }
}

}  // namespace quern::data
