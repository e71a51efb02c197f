// The tokenizer keys of GGUF files.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "checkpoint/checkpoint.h"
#include "data/tokenizer.h"
#include "formats/gguf.h"
#include "formats/gguf_writer.h"
#include "formats/hf_config.h"

namespace quern::formats {

// The tokenizer of a file; null if it has none. Error if it is damaged or of a kind that Quern does not know.
std::unique_ptr<data::Tokenizer> read_gguf_tokenizer(const GgufFile& file);

// bos, eos and pad of the file; ids that are not below `vocabulary` are left out.
SpecialTokens read_gguf_special_tokens(const GgufFile& file, size_t vocabulary);

// The files of formats/model_files.h that say the same: tokenizer_config.json, generation_config.json, and
// chat_template.jinja if the file has a template.
std::vector<checkpoint::ExtraFile> model_files_from_gguf(const GgufFile& file, const data::Tokenizer* tokenizer,
                                                         const SpecialTokens& tokens, size_t context);

// Adds the keys of a tokenizer, padded to `vocabulary` tokens. `files` are those of formats/model_files.h. `remarks`
// receives what the user should know.
void add_tokenizer_keys(const data::Tokenizer* tokenizer, size_t vocabulary,
                        std::span<const checkpoint::ExtraFile> files, GgufKeys& keys,
                        std::vector<std::string>& remarks);

}  // namespace quern::formats
