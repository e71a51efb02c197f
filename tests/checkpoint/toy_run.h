// A few tensors that stand for a model, its moments and its place in a run.
#pragma once

#include <algorithm>
#include <string>
#include <vector>

#include "checkpoint/checkpoint.h"

namespace quern::checkpoint {

// Values are a function of the step, so that a loaded checkpoint shows whether all of it is of one step.
class ToyRun {
 public:
  explicit ToyRun(size_t rows = 5, size_t layers = 3) {
    storage_.reserve(3 * (layers + 1));  // the spans stay
    for (const std::string state : {"", ".m", ".v"}) {
      std::vector<TensorRef>& group = state.empty() ? weights_ : optimizer_;
      add(group, "transformer.wte.weight" + state, {rows, 8});
      for (size_t i = 0; i < layers; ++i) {
        add(group, "transformer.h." + std::to_string(i) + ".ln_1.weight" + state, {rows});
      }
    }
  }

  void set(uint64_t step) {
    float value = static_cast<float>(step);
    for (std::vector<float>& values : storage_) {
      for (float& element : values) element = (value += 0.25f);
    }
  }
  bool is(uint64_t step) const {
    float value = static_cast<float>(step);
    for (const std::vector<float>& values : storage_) {
      for (const float element : values) {
        if (element != (value += 0.25f)) return false;
      }
    }
    return true;
  }

  Tensors tensors() const { return {weights_, optimizer_}; }
  Tensors weights_only() const { return {weights_, {}}; }

 private:
  void add(std::vector<TensorRef>& group, std::string name, std::vector<size_t> shape) {
    size_t size = 1;
    for (const size_t extent : shape) size *= extent;
    storage_.emplace_back(size, 0.0f);
    group.push_back({std::move(name), std::move(shape), storage_.back()});
  }

  std::vector<std::vector<float>> storage_;
  std::vector<TensorRef> weights_, optimizer_;
};

inline RunState state_at(uint64_t step) {
  return {.step = step,
          .updates = step / 2,
          .tokens = step * 2048,
          .data_position = step * 16,
          .stream =
              step % 2 == 0 ? std::optional(data::StreamPosition{{{.piece = 7 * step, .token = step}}}) : std::nullopt,
          .seed = 0xFFFFFFFFFFFFFFFF - step,
          .loss_scale = 65536.0,
          .data = {.tokens = 1'000'000, .hash = 0x0123456789ABCDEF * step},
          .validation_loss = 1.0 / 3.0 + 1.0 / static_cast<double>(step + 1),
          .best_validation_loss = 0.1,
          .best_step = std::min<uint64_t>(step, 3)};
}

inline constexpr std::string_view kToyConfig = "{\"model_type\": \"toy\"}\n";

inline std::filesystem::path save_step(const std::filesystem::path& folder, ToyRun& run, uint64_t step) {
  run.set(step);
  return save(folder, run.tensors(), state_at(step), kToyConfig);
}

}  // namespace quern::checkpoint
