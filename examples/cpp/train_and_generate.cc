// Trains a small model, then generates text with it. Usage: train_and_generate RUN_FOLDER [STEPS [SETTING...]]
//
// The weights are bit-identical to those of `quern train --run RUN_FOLDER --steps STEPS --set SETTING ...`, on any
// machine with fused multiply-add and with any number of threads: compare the hashes.
#include <quern/generate.h>
#include <quern/model.h>
#include <quern/train.h>

#include <algorithm>
#include <exception>
#include <iomanip>
#include <iostream>
#include <string>

namespace {

bool show_progress(const quern::Step& step) {
  std::cout << "step " << step.step << " of " << step.steps << ": loss " << std::fixed << std::setprecision(3)
            << step.loss << "\n";
  return true;  // false would save and stop; the same call with .resume = true continues
}

void train_and_generate(const std::string& folder, quern::TrainOptions options) {
  // Without .data the model is trained on generated stories; set it to text files or folders to use your own.
  options.out = folder;
  options.on_step = show_progress;
  const quern::TrainResult result = quern::train_model(options);
  std::cout << "weights_hash " << result.weights_hash << "\n";

  const quern::Model model = quern::Model::load(result.path);
  std::cout << model.parameters() << " parameters, context " << model.context() << "\n";
  std::cout << "Once" << quern::generate(model, "Once", {.tokens = 100, .temperature = 0.8f, .seed = 1}) << "\n";
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 2) {
    std::cerr << "usage: train_and_generate RUN_FOLDER [STEPS [SETTING...]]\n";
    return 2;
  }
  try {
    train_and_generate(
        argv[1], {.settings = {argv + std::min(argc, 3), argv + argc}, .steps = argc > 2 ? std::stoul(argv[2]) : 20});
  } catch (const std::exception& error) {  // quern::Error for bad input: one line that says what to do
    std::cerr << "train_and_generate: " << error.what() << "\n";
    return 1;
  }
}
