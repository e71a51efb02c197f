// Documents in JSON Lines: one object a line, the document in its field `text`.
#pragma once

#include <cstdint>
#include <functional>
#include <string_view>

namespace quern::data {

// Called with one document at a time; the view is valid during the call.
using DocumentVisitor = std::function<void(std::string_view document)>;

// Visits the `text` of every line of `content` in order. Other fields are checked as JSON and passed over, blank lines
// too; of a field that occurs twice the last one counts, as JSON readers do. Holds one document at a time. A line that
// is not such an object is an Error that names `file` and the line, thrown after the lines before it were visited.
// `lines_before`: how many there are in the file before `content`.
void for_each_json_line(std::string_view content, std::string_view file, const DocumentVisitor& visit,
                        uint64_t lines_before = 0);

}  // namespace quern::data
