// A model in the files of another program, ready to be imported.
#pragma once

#include <filesystem>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "checkpoint/checkpoint.h"
#include "data/tokenizer.h"
#include "formats/hf_config.h"
#include "formats/tensor_source.h"

namespace quern::formats {

struct ModelSource {
  HfConfig config;                             // its context is the maximum number of positions
  std::vector<TensorSource> tensors;           // every parameter of the model, with its name and shape, in its order
  std::unique_ptr<data::Tokenizer> tokenizer;  // null if there is none
  std::vector<checkpoint::ExtraFile> files;    // formats/model_files.h
  std::string format;                          // "Hugging Face folder", "GGUF"
  std::string type;                            // of most values: "BF16"
  std::vector<std::string> remarks;            // what the user should know
  std::function<void()> check_intact;          // call after reading: Error if a file was truncated meanwhile
  std::shared_ptr<const void> owner;           // of the files
};

// A folder as transformers' save_pretrained() writes it, or downloaded from the Hugging Face Hub. Validates everything
// but the values. Error if the model is not supported, or if a tensor is missing, has another shape or is not known.
ModelSource open_hf_folder(const std::filesystem::path& folder);

// The same for a GGUF file.
ModelSource open_gguf_model(const std::filesystem::path& file);

}  // namespace quern::formats
