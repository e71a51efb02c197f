// Documents in JSON Lines: one object per line, with the document in one of its fields.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>

namespace quern::data {

// Called with one document at a time; the view is valid during the call.
using DocumentVisitor = std::function<void(std::string_view document)>;

// A part of a file.
struct JsonLines {
  std::string_view content;   // complete lines
  std::string_view file;      // for messages
  uint64_t lines_before = 0;  // number of lines in the file before `content`
  // The field with the document. A dot stands for a field of a field: meta.body is {"meta": {"body": ...}}, or a field
  // with this name.
  std::string_view field = "text";
};

// Visits the documents of all lines in order. Other fields must be valid JSON and are ignored, as are blank lines; if a
// field occurs twice, the last one counts, as in other JSON readers. Holds one document at a time. Error, naming file
// and line, for a line that is not such an object, after visiting the lines before it; if the field is missing, it
// lists those that are there.
void for_each_json_line(const JsonLines& lines, const DocumentVisitor& visit);

}  // namespace quern::data
