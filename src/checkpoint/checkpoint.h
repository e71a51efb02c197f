// A checkpoint: a directory with everything that a run needs to go on as if it had never stopped.
//
//   step-00000500/model.safetensors      weights
//                 optimizer.safetensors  first and second moments, NAME.m and NAME.v
//                 config.json            the model's sizes, for Hugging Face tools
//                 state.json             step, data position, ..., sizes and SHA-256 of the other files
//
// It is written to the side, synced and renamed: complete or absent.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "checkpoint/hf_config.h"
#include "checkpoint/safetensors.h"
#include "checkpoint/state.h"

namespace quern::checkpoint {

// A tensor in the trainer's memory, to be saved from or loaded into.
struct TensorRef {
  std::string name;
  std::vector<size_t> shape;
  std::span<float> values;  // as many as the shape has
};

// m and v have the names of the weights they belong to; both may be empty.
struct Tensors {
  std::span<const TensorRef> weights;
  std::span<const TensorRef> m;
  std::span<const TensorRef> v;
};

// Another file of the directory: tensors, or text where there are none.
struct ExtraFile {
  std::string name;
  std::string text;
  std::vector<safetensors::Tensor> tensors = {};
};

// Writes `folder`/step-NNNNNNNN for state.step, creating `folder` when needed; one of that name is replaced in one
// step, or set aside as NAME.replaced-1 when it has foreign files. Returns its path. The tensors must not change
// meanwhile. On Error (a full disk, say) everything that was there
// before is untouched and nothing new is left behind. Also removes what a killed process has left in `folder`.
std::filesystem::path save(const std::filesystem::path& folder, const Tensors& tensors, const State& state,
                           const HfConfig& config, std::span<const ExtraFile> extras = {});

enum class Parts { kWeights, kAll };

// A checkpoint that was opened and found to be whole: sizes and SHA-256 of its files, their form, and that state.json
// belongs to the directory's name. Costs one pass over the files. Move-only.
class Checkpoint {
 public:
  // Error says which file is wrong, how, expected and found. kWeights leaves the optimizer's file alone.
  explicit Checkpoint(std::filesystem::path path, Parts parts = Parts::kAll);

  const std::filesystem::path& path() const noexcept { return path_; }
  const State& state() const noexcept { return state_; }
  const safetensors::File& model() const noexcept { return model_; }

  // Copies into the caller's memory; m and v only if they are not empty. Error when the names or shapes are not those
  // of the checkpoint, naming the first difference; nothing is written then.
  void load(const Tensors& tensors) const;

 private:
  Checkpoint(std::filesystem::path path, Parts parts, const StateFile& file);

  std::filesystem::path path_;
  State state_;
  safetensors::File model_;
  std::optional<safetensors::File> optimizer_;
};

// Whether a checkpoint's directory holds anything that was not written with it: a note, a file of another program. Such
// a directory is never removed.
bool has_foreign_files(const std::filesystem::path& path);

// Reads and checks state.json alone: quick, and says nothing about the other files.
StateFile read_state(const std::filesystem::path& path);

// A file that `state` of the same directory names; Error when it is missing or not the one that was written.
safetensors::File open_tensors(const std::filesystem::path& path, const StateFile& state, const std::string& name);
std::string read_text(const std::filesystem::path& path, const StateFile& state, const std::string& name);

// SHA-256 over the values of all weights in the order of their names, in hexadecimal: equal for runs with equal
// results.
std::string weights_hash(std::span<const TensorRef> weights);
std::string weights_hash(const safetensors::File& model);

}  // namespace quern::checkpoint
