// A checkpoint: a directory with everything that a run needs to resume as if it had never been interrupted.
//
//   step-00000500/model.safetensors      weights; adapter_model.safetensors if they are those of adapters alone
//                 optimizer.safetensors  the optimizer's states, PARAMETER.STATE ("ln_f.bias.m")
//                 config.json            the model's dimensions, for Hugging Face tools
//                 state.json             step, data position, ..., sizes and SHA-256 of the other files
//
// It is written under a temporary name, synced and renamed: complete or absent.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "checkpoint/safetensors.h"
#include "checkpoint/state.h"

namespace quern::checkpoint {

// A tensor in the trainer's memory, to save from or load into.
struct TensorRef {
  std::string name;
  std::vector<size_t> shape;
  std::span<float> values;                                         // as many as the shape requires
  std::function<std::span<const std::byte>(size_t at)> read = {};  // to save what is elsewhere, see safetensors::Tensor
};

struct Tensors {
  std::span<const TensorRef> weights;
  std::span<const TensorRef> optimizer;  // its states
  bool adapters = false;                 // whether the weights are those of adapters alone
};

// Another file in the directory: what `write` writes to the path that it gets, else tensors, else text.
struct ExtraFile {
  std::string name;
  std::string text;
  std::vector<safetensors::Tensor> tensors = {};
  std::function<void(const std::filesystem::path& path)> write = {};
};

// Writes `folder`/step-NNNNNNNN for state.step, creating `folder` if needed. An existing checkpoint of that name is
// replaced atomically, or renamed to NAME.replaced-1 if it contains foreign files. Returns the path. The tensors must
// not change in the meantime. On Error (such as a full disk) everything that existed before is untouched and nothing
// new is left behind. Also removes the leftovers of killed processes in `folder`.
//
// `config` is the text of config.json.
std::filesystem::path save(const std::filesystem::path& folder, const Tensors& tensors, const RunState& state,
                           std::string_view config, std::span<const ExtraFile> extras = {});

// kAll: weights and the state of the optimizer. kEveryFile verifies the other files as well.
enum class Parts { kWeights, kAll, kEveryFile };

// A checkpoint that was opened and verified: sizes, SHA-256 and format of its files, and that state.json matches the
// directory's name. Costs one pass over the files. Move-only.
class Checkpoint {
 public:
  // Throws Error with the file, the problem, and the expected and actual values. kWeights skips the optimizer's file.
  explicit Checkpoint(const std::filesystem::path& path, Parts parts = Parts::kAll);

  const std::filesystem::path& path() const noexcept { return path_; }
  const RunState& state() const noexcept { return state_; }
  const safetensors::File& model() const noexcept { return model_; }
  // Whether its weights are those of adapters, without the model that they adapt.
  bool has_adapters() const noexcept { return adapters_; }
  // Whether the optimizer's states were opened and are not empty. Those of an imported model are.
  bool has_optimizer() const noexcept { return optimizer_ && !optimizer_->tensors().empty(); }

  // A weight by its name. Error if there is none, or if it is not fp32 of this shape.
  const safetensors::Tensor& at(const std::string& name, const std::vector<size_t>& shape) const;

  // Copies into the caller's memory; the optimizer's states only if there are any. Throws Error with the first
  // difference if the names or shapes do not match the checkpoint; nothing is written in that case.
  void load(const Tensors& tensors) const;

 private:
  Checkpoint(std::filesystem::path path, Parts parts, const StateFile& file);

  std::filesystem::path weights_path() const;

  std::filesystem::path path_;
  RunState state_;
  bool adapters_;
  safetensors::File model_;
  std::optional<safetensors::File> optimizer_;
};

// Whether a checkpoint's directory contains files that were not written with it, such as a note or another program's
// file. Such a directory is never removed.
bool has_foreign_files(const std::filesystem::path& path);

// Reads and verifies state.json only: fast, but does not check the other files.
StateFile read_state(const std::filesystem::path& path);

// Opens a file listed in `state` of the same directory; throws Error if it is missing or not the one that was written.
safetensors::File open_tensors(const std::filesystem::path& path, const StateFile& state, const std::string& name);
std::string read_text(const std::filesystem::path& path, const StateFile& state, const std::string& name);
// The path of such a file, once it was verified in the same way.
std::filesystem::path verified_file(const std::filesystem::path& path, const StateFile& state, const std::string& name);

// SHA-256 of the values of all weights, ordered by name, in hexadecimal: equal for runs with equal results.
std::string weights_hash(std::span<const TensorRef> weights);
std::string weights_hash(const safetensors::File& model);

}  // namespace quern::checkpoint
