// Opens a folder of Hugging Face PEFT: adapters of a model that is somewhere else.
#pragma once

#include <filesystem>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "checkpoint/checkpoint.h"
#include "formats/tensor_source.h"
#include "nn/models/model_config.h"

namespace quern::formats {

struct AdapterSource {
  nn::ModelConfig model;              // the base, with these adapters
  std::vector<TensorSource> tensors;  // the adapters' matrices, with PEFT's names, in the model's order
  std::string base;                   // what the folder calls the base model; may be empty
  std::string type;                   // of the values: "BF16"
  // The chat template, if the folder has one: that of a fine-tuned model is often not the base's.
  std::vector<checkpoint::ExtraFile> files;
  std::function<void()> check_intact;  // call after reading: Error if a file was truncated meanwhile
  std::shared_ptr<const void> owner;   // of the files
};

// Whether the folder has adapters and not a model.
bool is_peft_folder(const std::filesystem::path& folder);

// A folder as PEFT's save_pretrained() writes it, for the model `base`, which must have no adapters. The layers for
// which there are tensors decide which have adapters. Validates everything but the values, which are an Error while
// they are read if they are not finite. Error if a setting is not supported (peft_config.h), or if a tensor is missing,
// does not fit the base model or is not known.
AdapterSource open_peft_folder(const std::filesystem::path& folder, const nn::ModelConfig& base);

}  // namespace quern::formats
