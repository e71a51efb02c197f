#include "chat/conversation_files.h"

#include <algorithm>
#include <string>
#include <system_error>

#include "core/error.h"
#include "data/text_parts.h"

namespace quern::chat {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kBlanks = " \t\r";

// train of train.jsonl and train.jsonl.gz; empty for files that are not JSON Lines.
std::string stem_of(const fs::path& file) {
  const fs::path plain = data::compression_of(file) == data::Compression::kNone ? file.filename() : file.stem();
  return plain.extension() == ".jsonl" ? plain.stem().string() : std::string();
}

std::vector<fs::path> json_lines_in(const fs::path& folder) {
  std::vector<fs::path> files;
  std::error_code error;
  for (fs::directory_iterator it(folder, error), end; !error && it != end; it.increment(error)) {
    std::error_code ignored;  // what cannot be looked at is no file to read
    const bool hidden = it->path().filename().string().starts_with('.');
    if (!hidden && it->is_regular_file(ignored) && !stem_of(it->path()).empty()) files.push_back(it->path());
  }
  if (error) throw Error("[data] {}: cannot list the folder: {}", folder.string(), error.message());
  std::sort(files.begin(), files.end());
  return files;
}

void expect_one(const std::vector<fs::path>& files, std::string_view purpose, const fs::path& folder) {
  if (files.size() <= 1) return;
  throw Error("[data] {}: expected one file {}, found {} and {}", folder.string(), purpose,
              files[0].filename().string(), files[1].filename().string());
}

void add_folder(const fs::path& folder, ConversationFiles& found) {
  std::vector<fs::path> train, validation, others;
  for (const fs::path& file : json_lines_in(folder)) {
    const std::string stem = stem_of(file);
    const bool held_out = stem == "valid" || stem == "validation";
    (stem == "train" ? train : held_out ? validation : others).push_back(file);
  }
  expect_one(train, "to train on", folder);
  expect_one(validation, "to validate with", folder);
  const std::vector<fs::path>& used = train.empty() ? others : train;
  if (used.empty()) throw Error("[data] {}: expected train.jsonl or other .jsonl files, found none", folder.string());
  found.train.insert(found.train.end(), used.begin(), used.end());
  found.validation.insert(found.validation.end(), validation.begin(), validation.end());
}

// Calls visit(line, number) for the lines that are not blank; returns whether all calls returned true.
template <typename Visit>
bool visit_lines(const data::TextLines& lines, const Visit& visit) {
  uint64_t number = lines.lines_before;
  for (std::string_view rest = lines.content; !rest.empty();) {
    const size_t length = std::min(rest.find('\n'), rest.size());
    const std::string_view line = rest.substr(0, length);
    rest.remove_prefix(std::min(length + 1, rest.size()));
    ++number;
    if (line.find_first_not_of(kBlanks) != std::string_view::npos && !visit(line, number)) return false;
  }
  return true;
}

void check_length(std::string_view line, uint64_t number, const std::string& file) {
  if (line.size() <= data::kMaxLineBytes) return;
  throw Error("[data] {}:{}: expected a line of at most {} bytes, found {}", file, number, data::kMaxLineBytes,
              line.size());
}

}  // namespace

ConversationFiles find_conversation_files(const std::vector<fs::path>& paths) {
  if (paths.empty()) throw Error("[data] expected a file or folder of conversations, found none");
  ConversationFiles found;
  for (const fs::path& path : paths) {
    std::error_code ignored;  // of a path that cannot be looked at, which is then reported as missing
    const fs::file_status status = fs::status(path, ignored);
    if (!fs::exists(status)) throw Error("[data] {}: expected a file or folder, found nothing", path.string());
    if (fs::is_directory(status)) {
      add_folder(path, found);
    } else {
      found.train.push_back(path);
    }
  }
  return found;
}

void for_each_conversation(const fs::path& file, const ConversationVisitor& visit) {
  const data::TextSource source(
      {.path = file, .kind = data::Corpus::Kind::kJsonLines, .bytes = 0, .compression = data::compression_of(file)},
      {});
  ConversationParser parser(file.string());
  data::for_each_lines(source, [&](const data::TextLines& lines) {
    return visit_lines(lines, [&](std::string_view line, uint64_t number) {
      check_length(line, number, file.string());
      return visit(parser.parse(line, number));
    });
  });
  if (!parser.kind()) throw Error("[data] {}: expected one JSON object per line, found no lines", file.string());
}

std::vector<Conversation> read_conversations(const fs::path& file) {
  std::vector<Conversation> all;
  for_each_conversation(file, [&](Conversation&& conversation) {
    all.push_back(std::move(conversation));
    return true;
  });
  return all;
}

}  // namespace quern::chat
