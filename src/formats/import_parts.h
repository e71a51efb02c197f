// What imports of models and of adapters have in common.
#pragma once

#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <vector>

#include "checkpoint/checkpoint.h"
#include "data/tokenizer.h"
#include "formats/import.h"
#include "formats/tensor_source.h"

namespace quern::formats {

// The folder of a new run, without a trailing slash. Error unless it does not exist or is empty.
std::filesystem::path new_run_folder(const std::filesystem::path& run);

// options.context, or `positions`, those of the model, but at most kImportedContext. Error if there are fewer.
uint64_t checked_context(const ImportOptions& options, uint64_t positions);

// The tensors as a checkpoint takes them. All three arguments must outlive the result.
std::vector<checkpoint::TensorRef> tensor_refs(std::span<const TensorSource> tensors, TensorEncoder& encoder,
                                               const ImportOptions& options);

std::string tokenizer_text(const data::Tokenizer* tokenizer);  // "bpe, 49152 tokens"; empty for null
bool has_chat_template(std::span<const checkpoint::ExtraFile> files);

}  // namespace quern::formats
