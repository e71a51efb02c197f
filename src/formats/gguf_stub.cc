#include "core/error.h"
#include "formats/export.h"
#include "formats/model_source.h"
namespace quern::formats {
ModelSource open_gguf_model(const std::filesystem::path&) { throw Error("stub"); }
ExportResult export_gguf(const ExportedModel&, const std::filesystem::path&, GgmlType) { throw Error("stub"); }
}  // namespace quern::formats
