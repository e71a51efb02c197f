// Documents in JSON Lines: one object per line, with the document in its field `text`.
#pragma once

#include <cstdint>
#include <functional>
#include <string_view>

namespace quern::data {

// Called with one document at a time; the view is valid during the call.
using DocumentVisitor = std::function<void(std::string_view document)>;

// Visits the `text` of every line of `content` in order. Other fields must be valid JSON and are ignored, as are blank
// lines; if a field occurs twice, the last one counts, as in other JSON readers. Holds one document at a time. Error,
// naming `file` and the line, for a line that is not such an object, after visiting the lines before it. `lines_before`
// is the number of lines in the file before `content`.
void for_each_json_line(std::string_view content, std::string_view file, const DocumentVisitor& visit,
                        uint64_t lines_before = 0);

}  // namespace quern::data
