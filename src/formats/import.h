// Makes a run of a model that another program has trained.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "config/config.h"
#include "nn/models/model_config.h"

namespace quern::formats {

struct ImportOptions {
  std::optional<uint64_t> context = {};  // model.context; otherwise that of the model, but at most kImportedContext
  std::function<void(uint64_t done, uint64_t total)> progress = {};  // bytes of weights written
};

// Long contexts are for generating; training with all of them would need memory that few machines have.
inline constexpr uint64_t kImportedContext = 1024;

struct Imported {
  nn::ModelConfig model;
  uint64_t parameters = 0;  // imported: those of adapters, if it is them
  std::string format;       // "Hugging Face folder", "GGUF", "PEFT adapters"
  std::string type;         // of most values in the file: "BF16"
  std::string tokenizer;    // "bpe, 49152 tokens"; empty if there is none
  bool has_chat_template = false;
  std::string weights_hash;
  std::vector<std::string> remarks;  // warnings for the user
};

// Imports a Hugging Face folder or a GGUF file into a new run: config.toml, tokenizer.json, the files of
// formats/model_files.h and a checkpoint of step 0 with fp32 weights. The run is complete or absent. Error if the model
// is not supported or damaged, or if `run` exists and is not an empty folder. train::import_adapters() imports
// adapters.
Imported import_model(const std::filesystem::path& source, const std::filesystem::path& run,
                      const ImportOptions& options = {});

}  // namespace quern::formats
