#include "config/synonyms.h"

#include <gtest/gtest.h>

#include <array>

namespace quern::train {
namespace {

TEST(Synonyms, NamesOfOtherProgramsLeadToSettings) {
  const auto setting = [](std::string_view word) { return advise_setting(word).setting; };
  EXPECT_EQ(setting("lr"), "optimizer.rate");
  EXPECT_EQ(setting("train.learning-rate"), "optimizer.rate");
  EXPECT_EQ(setting("N_LAYER"), "model.layers");
  EXPECT_EQ(setting("gradient_accumulation_steps"), "train.accumulation");
  EXPECT_EQ(setting("model.steps"), "train.steps");
  EXPECT_EQ(setting("gradient_acumulation_steps"), "train.accumulation");  // also misspelled
  EXPECT_EQ(setting("stpes"), "train.steps");
  EXPECT_EQ(setting("tie_word_embeddings"), "model.tied_output");
  EXPECT_EQ(setting("rope"), "model.positions");
  EXPECT_EQ(setting("optim"), "optimizer.kind");
  EXPECT_EQ(setting("frobnicate"), "");
  EXPECT_EQ(setting(""), "");
  EXPECT_EQ(setting("."), "");
}

TEST(Synonyms, ExactMatchesAreNotGuesses) {
  EXPECT_EQ(advise_setting("learning_rate", Match::kExact).setting, "optimizer.rate");
  EXPECT_TRUE(advise_setting("learning_rat", Match::kExact).empty());
}

TEST(Synonyms, HintsSayWhatIsDifferent) {
  EXPECT_EQ(advise_setting("lr").text(), "; did you mean optimizer.rate?");
  EXPECT_EQ(advise_setting("device").text(), "; Quern runs on CPUs; --threads N sets the number of cores");
  EXPECT_EQ(advise_setting("epochs").text().substr(0, 31), "; did you mean train.steps? one");
  EXPECT_EQ(advise_setting("frobnicate").text(), "");
}

TEST(Synonyms, Values) {
  constexpr std::array<std::string_view, 3> kFormats = {"fp32", "bf16", "fp16"};
  EXPECT_EQ(advise_value("float32", kFormats), "fp32");
  EXPECT_EQ(advise_value("FP16", kFormats), "fp16");
  EXPECT_EQ(advise_value("bf61", kFormats), "bf16");
  EXPECT_EQ(advise_value("yes", kFormats), "");  // means something only where true is allowed
  EXPECT_EQ(did_you_mean("half", kFormats), "; did you mean fp16?");
  EXPECT_EQ(did_you_mean("x", kFormats), "");
}

}  // namespace
}  // namespace quern::train
