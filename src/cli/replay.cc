// quern replay: lists, describes and removes replay buffers in shared memory and in files.
#include <fmt/format.h>

#include <algorithm>
#include <ctime>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "cli/commands.h"
#include "core/byte_size.h"
#include "core/error.h"
#include "core/json.h"
#include "replay/inspect.h"

namespace quern::cli {
namespace {

using Json = nlohmann::ordered_json;
using replay::BufferInfo;
using replay::Storage;

struct Options {
  std::string name;
  bool json = false;
};

constexpr const char* kExamples = R"(Examples:
  quern replay list              the buffers of this user in shared memory
  quern replay info actors       columns, rows and options of the buffer shared="actors"
  quern replay info ./rows.replay   the same of a file
  quern replay remove actors     free its memory, once the last process has ended

A name with a '/' is a file.)";

Storage storage_named(const std::string& name, const char* command) {
  if (name.empty()) {
    throw Error("[replay] {}: expected the name of a buffer, found none; run `quern replay list`", command);
  }
  return name.find('/') == std::string::npos ? Storage::in_shared(name) : Storage::in_file(name);
}

// "3 s", "12 min", "5 h", "2 days"; "-" if not known.
std::string age_of(const BufferInfo& info) {
  if (info.created == 0) return "-";
  const double seconds = std::max(0.0, std::difftime(std::time(nullptr), static_cast<time_t>(info.created)));
  if (seconds < 120) return fmt::format("{:.0f} s", seconds);
  if (seconds < 7200) return fmt::format("{:.0f} min", seconds / 60);
  if (seconds < 172800) return fmt::format("{:.0f} h", seconds / 3600);
  return fmt::format("{:.0f} days", seconds / 86400);
}

std::string columns_of(const BufferInfo& info) {
  std::string text;
  for (const replay::Column& column : info.description->schema.columns()) {
    text += fmt::format("{}{} {}", text.empty() ? "" : ", ", column.name, column.description());
  }
  return text;
}

Json to_json(const BufferInfo& info) {
  Json json = {{"name", info.storage.name}, {"path", info.path}, {"bytes", info.bytes}, {"handles", info.handles}};
  if (!info.description) {
    json["problem"] = info.problem;
    return json;
  }
  const replay::BufferOptions& options = info.description->options;
  json.update({{"rows", info.rows},
               {"capacity", options.capacity},
               {"added", info.added},
               {"sampled", info.sampled},
               {"prioritised", options.prioritised},
               {"created", info.created}});
  if (!options.terminal.empty()) json["terminal"] = options.terminal;
  if (!options.truncated.empty()) json["truncated"] = options.truncated;
  Json columns = Json::array();
  for (const replay::Column& column : info.description->schema.columns()) {
    columns.push_back({{"name", column.name},
                       {"dtype", std::string(name_of(column.dtype))},
                       {"shape", column.shape},
                       {"encoding", std::string(name_of(column.encoding))}});
  }
  json["columns"] = columns;
  return json;
}

int list(const Options& options) {
  const std::vector<BufferInfo> all = replay::list_shared();
  if (options.json) {
    Json array = Json::array();
    for (const BufferInfo& info : all) array.push_back(to_json(info));
    fmt::print("{}\n", array.dump(2));
    return 0;
  }
  if (all.empty()) fmt::print("no replay buffers in shared memory\n");
  size_t width = 4;
  for (const BufferInfo& info : all) width = std::max(width, info.storage.name.size());
  if (!all.empty())
    fmt::print("{:<{}} {:>19} {:>9} {:>7} {:>8}  columns\n", "name", width, "rows", "size", "open", "age");
  for (const BufferInfo& info : all) {
    const std::string rows =
        info.description ? fmt::format("{} of {}", info.rows, info.description->options.capacity) : "-";
    fmt::print("{:<{}} {:>19} {:>9} {:>7} {:>8}  {}\n", info.storage.name, width, rows, rounded_bytes(info.bytes),
               info.handles, age_of(info), info.description ? columns_of(info) : info.problem);
  }
  return 0;
}

void print_text(const BufferInfo& info) {
  fmt::print("{:<14} {}\n{:<14} {}\n", "path", info.path, "size", rounded_bytes(info.bytes));
  fmt::print("{:<14} {} (objects in all processes)\n", "open", info.handles);
  const replay::BufferOptions& options = info.description->options;
  fmt::print("{:<14} {}\n", "age", age_of(info));
  fmt::print("{:<14} {} of {} ({:.1f} %), {} added, {} sampled\n", "rows", info.rows, options.capacity,
             100 * static_cast<double>(info.rows) / static_cast<double>(options.capacity), info.added, info.sampled);
  fmt::print("{:<14} {}\n", "row", rounded_bytes(info.description->schema.stored_bytes()));
  if (options.prioritised) fmt::print("{:<14} alpha {}\n", "prioritised", options.alpha);
  if (options.limit.applies()) {
    fmt::print("{:<14} {} samples per insert, from {} rows on, slack {}\n", "rate limit",
               options.limit.samples_per_insert, options.limit.minimum, options.limit.slack);
  }
  if (!options.terminal.empty()) fmt::print("{:<14} {}\n", "terminal", options.terminal);
  if (!options.truncated.empty()) fmt::print("{:<14} {}\n", "truncated", options.truncated);
  for (const replay::Column& column : info.description->schema.columns()) {
    fmt::print("{:<14} {} {}\n", "column", column.name, column.description());
  }
}

// A damaged buffer is described as far as possible, and the exit code is 1.
int info(const Options& options) {
  const BufferInfo found = replay::inspect(storage_named(options.name, "info"));
  if (options.json) {
    fmt::print("{}\n", to_json(found).dump(2));
    return found.description ? 0 : 1;
  }
  if (!found.description) throw Error("{}", found.problem);
  print_text(found);
  return 0;
}

int remove(const Options& options) {
  const Storage storage = storage_named(options.name, "remove");
  if (!replay::remove_buffer(storage)) {
    throw Error("{}: expected a buffer, found none; run `quern replay list`", storage.text());
  }
  fmt::print("removed {}\n", storage.path());
  return 0;
}

}  // namespace

Command add_replay(Parser root) {
  auto options = std::make_shared<Options>();
  Parser command = root.add_command("replay", "List, describe and remove replay buffers in shared memory and files");
  command.set_footer(kExamples);
  Parser lists = command.add_command("list", "List the buffers of this user in shared memory");
  Parser describes = command.add_command("info", "Describe a buffer");
  Parser removes = command.add_command("remove", "Remove a buffer: its name now, its memory with the last process");
  for (Parser parser : {lists, describes}) parser.add_flag("--json", options->json, "Print JSON");
  for (Parser parser : {describes, removes})
    parser.add_word("NAME", options->name, "Name in shared memory, or path of a file");
  return {command, [=] {
            if (lists.parsed()) return list(*options);
            if (describes.parsed()) return info(*options);
            if (removes.parsed()) return remove(*options);
            throw Error("[replay] expected list, info NAME or remove NAME; run `quern replay --help`");
          }};
}

}  // namespace quern::cli
