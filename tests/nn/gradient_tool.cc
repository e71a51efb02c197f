// Writes the loss and the gradient of a run's model on given tokens, to compare with another program's.
//
//   gradient_tool RUN TOKENS T OUT
//
// TOKENS is a file of int32 ids, sequences of T + 1 each; OUT is a safetensors file with the gradient of the mean loss
// for every parameter, and that loss in its metadata.
#include <fmt/format.h>

#include <cstring>
#include <exception>
#include <string>
#include <vector>

#include "checkpoint/safetensors.h"
#include "checkpoint/tensor_refs.h"
#include "core/files.h"
#include "evaluate/load.h"
#include "nn/gradient.h"

namespace quern {
namespace {

std::vector<int32_t> read_tokens(const std::string& path) {
  const std::string bytes = read_file(path, size_t{1} << 30);
  std::vector<int32_t> tokens(bytes.size() / sizeof(int32_t));
  std::memcpy(tokens.data(), bytes.data(), tokens.size() * sizeof(int32_t));
  return tokens;
}

double gradient_of(const nn::LanguageModel& model, const std::vector<int32_t>& ids, size_t T, nn::Gradient& gradient) {
  const size_t sequences = ids.size() / (T + 1);
  std::vector<int32_t> tokens, targets;
  for (size_t s = 0; s < sequences; ++s) {
    const auto first = ids.begin() + static_cast<ptrdiff_t>(s * (T + 1));
    tokens.insert(tokens.end(), first, first + static_cast<ptrdiff_t>(T));
    targets.insert(targets.end(), first + 1, first + static_cast<ptrdiff_t>(T) + 1);
  }
  nn::Workspace work(model.activations(), {.sequences = sequences, .context = T, .backward = true});
  const double count = static_cast<double>(targets.size());
  const nn::MicroBatch batch{
      .columns = {{kTokensColumn, tokens.data()}, {kTargetsColumn, targets.data()}}, .sequences = sequences, .T = T};
  const double sum =
      model.forward_backward(batch, {.scale = static_cast<float>(1.0 / count), .gradient = gradient}, work);
  gradient.join_all();
  return sum / count;
}

void run(const std::string& folder, const std::string& tokens, size_t T, const std::string& out) {
  const train::TrainedModel trained = train::load_model(folder, [](const std::string&) {});
  nn::Gradient gradient(trained.model->parameters());
  const double loss = gradient_of(*trained.model, read_tokens(tokens), T, gradient);
  std::vector<safetensors::Tensor> tensors;
  for (const checkpoint::TensorRef& ref : checkpoint::tensor_refs(trained.model->parameters(), gradient.values())) {
    tensors.push_back({ref.name, safetensors::Dtype::kF32, ref.shape, std::as_bytes(ref.values)});
  }
  FileWriter file(out, out);
  safetensors::write(file, tensors, {{"format", "pt"}, {"loss", fmt::format("{:.17g}", loss)}});
  file.close();
}

}  // namespace
}  // namespace quern

int main(int argc, char** argv) {
  if (argc != 5) {
    fmt::print(stderr, "usage: gradient_tool RUN TOKENS T OUT\n");
    return 2;
  }
  try {
    quern::run(argv[1], argv[2], std::stoul(argv[3]), argv[4]);
  } catch (const std::exception& error) {
    fmt::print(stderr, "gradient_tool: {}\n", error.what());
    return 1;
  }
  return 0;
}
