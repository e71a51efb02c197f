// Trained models: loading, logits and evaluation. <quern/generate.h> generates text, <quern/train.h> trains models.
//
//   const quern::Model model = quern::Model::load("runs/first");
//   const std::vector<int32_t> tokens = model.tokenizer().encode("Once upon a time");
//   std::printf("%.3f nats per token\n", model.loss(tokens, tokens.size()));
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include <quern/error.h>
#include <quern/tokenizer.h>

namespace quern {

// The result of Model::evaluate().
struct Evaluation {
  double loss = 0;                      // nats per token
  double perplexity = 0;                // exp(loss)
  std::optional<double> bits_per_byte;  // comparable between tokenizers; nullopt for a run without a tokenizer
  uint64_t tokens = 0;                  // number of tokens predicted
};

// Immutable. A copy refers to the same weights; any number of threads may use it concurrently. Functions use `threads`
// threads, every core for 0, and their results are bit-identical for any number of threads.
class Model {
 public:
  // Loads the newest complete checkpoint of the run in this folder. Damaged checkpoints that it skips are reported to
  // `on_warning`. Error when the folder has no run or no complete checkpoint.
  static Model load(const std::filesystem::path& run,
                    const std::function<void(const std::string& text)>& on_warning = {});

  std::filesystem::path path() const;  // the folder as passed to load()
  std::string config() const;          // every setting of the run, as TOML
  uint64_t step() const;               // optimizer steps it was trained for
  size_t parameters() const;           // number of weights
  size_t context() const;              // tokens per sequence in training and evaluation
  size_t max_context() const;          // max tokens in a sequence; the same, or more for an imported model
  size_t vocabulary() const;           // rows of the token table, V below; at least the number of the tokenizer's ids
  std::string weights_hash() const;    // SHA-256 of all weights, as hex digits

  // Error for a run that was trained on token shards without a tokenizer.
  Tokenizer tokenizer() const;

  // `tokens` are sequences of `length` tokens each, one after another. Returns the logits of every position, (tokens,
  // V): those of position t predict token t + 1. Error unless length is 1 to max_context() and divides the number of
  // tokens.
  std::vector<float> logits(std::span<const int32_t> tokens, size_t length, size_t threads = 0) const;

  // Mean loss in nats of predicting each token except the first of its sequence. Error unless length is 2 to
  // max_context() + 1 and divides the number of tokens.
  double loss(std::span<const int32_t> tokens, size_t length, size_t threads = 0) const;

  // Evaluates on the text held out from training, or on these files and folders: text or token shards. Error when the
  // text is too short, when the run's data has changed since training, or when shards have another tokenizer.
  Evaluation evaluate(const std::vector<std::filesystem::path>& paths = {}, size_t threads = 0) const;

  class Impl;  // internal
  const std::shared_ptr<const Impl>& impl() const { return impl_; }

 private:
  explicit Model(std::shared_ptr<const Impl> impl);
  std::shared_ptr<const Impl> impl_;
};

}  // namespace quern
