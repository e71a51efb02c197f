// Where an export is written: something that exists is kept, unless it is an export too.
#pragma once

#include <filesystem>

#include "formats/export.h"

namespace quern::formats {

// Error unless nothing has the name `out`, or it is an empty folder and the format a folder, or options.force is set
// and it is an earlier export of the same format. A folder or a file of another program is not replaced: it may be the
// only copy of a model.
void check_free(const std::filesystem::path& out, const ExportOptions& options);

}  // namespace quern::formats
