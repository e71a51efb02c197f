#include "checkpoint/checkpoint.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <fstream>
#include <nlohmann/json.hpp>

#include "checkpoint/folder.h"
#include "core/error.h"
#include "core/files.h"
#include "support/message.h"
#include "support/mutation.h"
#include "support/temporary_folder.h"
#include "toy_run.h"

namespace quern::checkpoint {
namespace {

namespace fs = std::filesystem;
using Names = std::set<std::string>;

bool contains(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }

using test::message_of;

// In place, as a failing disk does; write_file() would replace the file.
void overwrite(const fs::path& path, const std::string& text) {
  std::ofstream(path, std::ios::binary | std::ios::trunc) << text;
}

TEST(Checkpoint, RoundTrip) {
  const test::TemporaryFolder folder;
  ToyRun run;
  const fs::path path = save_step(folder / "checkpoints", run, 500);
  EXPECT_EQ(path, folder / "checkpoints/step-00000500");
  EXPECT_EQ(test::names_in(path), (Names{"model.safetensors", "optimizer.safetensors", "config.json", "state.json"}));
  EXPECT_EQ(test::names_in(folder / "checkpoints"), Names{"step-00000500"});

  ToyRun other;
  const Checkpoint checkpoint(path);
  EXPECT_EQ(checkpoint.state(), state_at(500));
  checkpoint.load(other.tensors());
  EXPECT_TRUE(other.is(500));
  EXPECT_EQ(weights_hash(checkpoint.model()), weights_hash(run.tensors().weights));
}

TEST(Checkpoint, LossesMayBeMissingOrNotFinite) {
  const test::TemporaryFolder folder;
  const ToyRun run;
  RunState state = state_at(1);
  state.validation_loss = std::nan("");
  state.best_validation_loss = std::nullopt;
  const Checkpoint checkpoint(save(folder.path(), run.tensors(), state, kToyConfig));
  EXPECT_EQ(checkpoint.state().validation_loss, std::nullopt);
  EXPECT_EQ(checkpoint.state().best_validation_loss, std::nullopt);
}

TEST(Checkpoint, SavingAStepAgainReplacesIt) {
  const test::TemporaryFolder folder;
  ToyRun run;
  save_step(folder.path(), run, 7);
  run.set(8);
  const Checkpoint checkpoint(save(folder.path(), run.tensors(), state_at(7), kToyConfig));
  ToyRun other;
  checkpoint.load(other.tensors());
  EXPECT_TRUE(other.is(8));
  EXPECT_EQ(test::names_in(folder.path()), Names{"step-00000007"});
}

TEST(Checkpoint, ConfigIsTheGivenText) {
  const test::TemporaryFolder folder;
  ToyRun run;
  EXPECT_EQ(read_file(save_step(folder.path(), run, 1) / "config.json", 1000), kToyConfig);
}

TEST(Checkpoint, WeightsAloneNeedNoOptimizer) {
  const test::TemporaryFolder folder;
  ToyRun run;
  const fs::path path = save_step(folder.path(), run, 9);
  fs::remove(path / "optimizer.safetensors");
  ToyRun other;
  Checkpoint(path, Parts::kWeights).load(other.weights_only());
  EXPECT_EQ(weights_hash(other.tensors().weights), weights_hash(run.tensors().weights));
  EXPECT_THROW(Checkpoint{path}, Error);
}

// The digest was right when it was opened; truncated since, it ended the process with SIGBUS or gave zeros.
TEST(Checkpoint, AFileThatIsTruncatedAfterItWasOpenedIsAnError) {
  const test::TemporaryFolder folder;
  ToyRun run(5000), other(5000);
  for (const char* name : {"model.safetensors", "optimizer.safetensors"}) {
    for (const size_t bytes : {size_t{0}, size_t{4096}, size_t{60'001}}) {
      const fs::path path = save_step(folder.path(), run, 9);
      const Checkpoint checkpoint(path);
      fs::resize_file(path / name, bytes);
      const std::string message = message_of([&] { checkpoint.load(other.tensors()); });
      EXPECT_TRUE(contains(message, std::string(name) + ": was truncated while in use")) << message;
      EXPECT_TRUE(contains(message, fmt::format("found {}", bytes))) << message;
    }
  }
  const Checkpoint checkpoint(save_step(folder.path(), run, 9));
  fs::resize_file(folder / "step-00000009/model.safetensors", 4096);
  EXPECT_TRUE(contains(message_of([&] { weights_hash(checkpoint.model()); }), "was truncated while in use"));
}

TEST(Checkpoint, AnotherModelIsNamedAndNothingIsWritten) {
  const test::TemporaryFolder folder;
  ToyRun run(5, 3);
  const Checkpoint checkpoint(save_step(folder.path(), run, 1));
  ToyRun wider(6, 3);
  ToyRun deeper(5, 4);
  ToyRun shallower(5, 2);
  for (ToyRun* other : {&wider, &deeper, &shallower}) other->set(77);
  const auto message = [&](const ToyRun& other) { return message_of([&] { checkpoint.load(other.tensors()); }); };
  EXPECT_TRUE(contains(message(wider), "'transformer.wte.weight': expected F32 (6, 8), found F32 (5, 8)"));
  EXPECT_TRUE(contains(message(deeper), "expected tensor 'transformer.h.3.ln_1.weight' of shape (5), found none"));
  EXPECT_TRUE(contains(message(shallower), "expected 3 tensors, found 4, among them 'transformer.h.2.ln_1.weight'"));
  for (ToyRun* other : {&wider, &deeper, &shallower}) EXPECT_TRUE(other->is(77));
}

// A difference in the moments only must not leave the weights half loaded.
TEST(Checkpoint, MomentsAreCheckedBeforeWeightsAreWritten) {
  const test::TemporaryFolder folder;
  ToyRun run;
  run.set(1);
  Tensors without_v = run.tensors();
  without_v.optimizer = without_v.optimizer.first(without_v.optimizer.size() / 2);
  const Checkpoint checkpoint(save(folder.path(), without_v, state_at(1), kToyConfig));
  ToyRun other;
  other.set(2);
  const std::string message = message_of([&] { checkpoint.load(other.tensors()); });
  EXPECT_TRUE(contains(message,
                       "optimizer.safetensors: contains a different optimizer: expected tensor "
                       "'transformer.wte.weight.v' of shape (5, 8), found none of that name"))
      << message;
  EXPECT_TRUE(other.is(2));
}

TEST(Checkpoint, AnUnknownOptimizerStateIsNamed) {
  const test::TemporaryFolder folder;
  ToyRun run;
  std::vector<TensorRef> states(run.tensors().optimizer.begin(), run.tensors().optimizer.end());
  states.back().name = "transformer.h.2.ln_1.weight.momentum";
  const Checkpoint checkpoint(save(folder.path(), {run.tensors().weights, states}, state_at(1), kToyConfig));
  ToyRun other;
  other.set(2);
  Tensors wanted = other.tensors();
  wanted.optimizer = wanted.optimizer.first(wanted.optimizer.size() - 1);
  const std::string message = message_of([&] { checkpoint.load(wanted); });
  EXPECT_TRUE(contains(message, "among them 'transformer.h.2.ln_1.weight.momentum'")) << message;
  EXPECT_TRUE(other.is(2));
}

// Every file missing, cut at many places, longer, or with a bit flipped at many places: named, passed over, and the one
// before is used.
TEST(Checkpoint, DamageIsNamedAndPassedOver) {
  const test::TemporaryFolder folder;
  ToyRun run;
  save_step(folder.path(), run, 1);
  const fs::path newest = save_step(folder.path(), run, 2);
  size_t damages = 0;
  const auto expect_passed_over = [&](const std::string& file) {
    std::vector<std::string> reasons;
    const auto found = find_newest_valid(folder.path(), [&](const std::string& reason) { reasons.push_back(reason); });
    ASSERT_TRUE(found.has_value());
    ASSERT_EQ(found->state().step, 1u) << file;
    ASSERT_EQ(reasons.size(), 1u);
    ASSERT_TRUE(contains(reasons[0], "step-00000002/" + file)) << reasons[0];
    ++damages;
  };
  for (const std::string file : {"model.safetensors", "optimizer.safetensors", "state.json"}) {
    const std::string good = read_file(newest / file, 1 << 20);
    fs::remove(newest / file);
    expect_passed_over(file);
    overwrite(newest / file, good + " x");
    expect_passed_over(file);
    const size_t stride = std::max<size_t>(1, good.size() / 50);
    for (size_t at = 0; at + 1 < good.size(); at += stride) {
      overwrite(newest / file, good.substr(0, at));
      expect_passed_over(file);
      std::string flipped = good;
      flipped[at] = static_cast<char>(flipped[at] ^ 0x10);
      overwrite(newest / file, flipped);
      if (file != "state.json") expect_passed_over(file);
    }
    overwrite(newest / file, good);
  }
  EXPECT_GT(damages, 250u);
  EXPECT_EQ(find_newest_valid(folder.path(), nullptr)->state().step, 2u);
}

TEST(Checkpoint, DirectoryOfAnotherStepIsInvalid) {
  const test::TemporaryFolder folder;
  ToyRun run;
  fs::rename(save_step(folder.path(), run, 2), folder / "step-00000003");
  const std::string message = message_of([&] { Checkpoint{folder / "step-00000003"}; });
  EXPECT_TRUE(contains(message, "step: expected 3 from the directory name, found 2")) << message;
}

// Every bit of every byte: either the file is refused, or it still says the same (spaces between fields).
TEST(State, DetectsEveryFlippedBit) {
  const StateFile file{state_at(12), {{"model.safetensors", {12345, {1, 2, 3}}}}};
  const std::string good = to_json(file);
  EXPECT_EQ(parse_state(good, "state.json").state, file.state);
  EXPECT_EQ(parse_state(good, "state.json").files, file.files);
  for (size_t bit = 0; bit < 8 * good.size(); ++bit) {
    std::string damaged = good;
    damaged[bit / 8] = static_cast<char>(damaged[bit / 8] ^ (1 << bit % 8));
    try {
      const StateFile found = parse_state(damaged, "state.json");
      ASSERT_EQ(found.state, file.state);
      ASSERT_EQ(found.files, file.files);
    } catch (const Error& error) {
      ASSERT_EQ(std::string_view(error.what()).find('\n'), std::string_view::npos);
    }
  }
}

// The same object with a checksum that is right for it.
std::string resealed(nlohmann::json json) {
  json.erase("checksum");
  const std::string text = json.dump();
  json["checksum"] = sha256_hex(std::as_bytes(std::span(text)));
  return json.dump();
}

// Files of older versions lack all of "diagnostics"; a part of it would be taken for zeros, and data would be read
// again.
TEST(State, AGroupIsCompleteOrAbsent) {
  const auto message_without = [](const char* group, const char* field) {
    auto json = nlohmann::json::parse(to_json(StateFile{state_at(12), {{"model.safetensors", {1, {}}}}}));
    json[nlohmann::json::json_pointer(group)].erase(field);
    return message_of([&] { parse_state(resealed(json), "state.json"); });
  };
  EXPECT_EQ(message_without("", "diagnostics"), "no error");
  for (const char* field : {"incidents", "left_out", "losses"}) {
    EXPECT_TRUE(contains(message_without("/diagnostics", field), "expected this field, found none")) << field;
  }
  for (const char* field : {"count", "mean", "variance"}) {
    EXPECT_TRUE(contains(message_without("/diagnostics/losses", field),
                         fmt::format("diagnostics.losses.{}: expected this field, found none", field)));
  }
}

// Fields are checked even when the checksum is right: it can be computed by anyone.
TEST(State, FieldsAreChecked) {
  const auto message_with = [](const char* pointer, const nlohmann::json& value) {
    auto json = nlohmann::json::parse(to_json(StateFile{state_at(12), {{"model.safetensors", {1, {}}}}}));
    json[nlohmann::json::json_pointer(pointer)] = value;
    return message_of([&] { parse_state(resealed(json), "state.json"); });
  };
  EXPECT_EQ(message_with("/tokens", 5), "no error");
  EXPECT_TRUE(contains(message_with("/version", 2), "expected version 1, found 2"));
  EXPECT_TRUE(contains(message_with("/step", -1), "step: expected a whole number from 0, found '-1'"));
  // Used as numbers of 32 bits: 2^32 + 12 was step 12.
  EXPECT_TRUE(contains(message_with("/step", (uint64_t{1} << 32) + 12), "step: expected at most 2147483647, found"));
  EXPECT_TRUE(contains(message_with("/diagnostics/left_out", uint64_t{1} << 32),
                       "diagnostics.left_out: expected at most 2147483647, found '4294967296'"));
  EXPECT_EQ(message_with("/random/seed", UINT64_MAX), "no error");
  EXPECT_TRUE(contains(message_with("/random/seed", 0x1p64), "random.seed: expected a whole number from 0"));
  EXPECT_TRUE(contains(message_with("/loss_scale", "x"), "loss_scale: expected a number"));
  EXPECT_TRUE(contains(message_with("/random", 1), "random: expected an object"));
  EXPECT_TRUE(contains(message_with("/random/generator", "mt"), "expected philox4x32-10"));
  EXPECT_TRUE(contains(message_with("/files", 1), "files: expected an object"));
  EXPECT_TRUE(contains(message_with("/files/model.safetensors/sha256", "xyz"), "expected 64 hexadecimal digits"));
  EXPECT_TRUE(contains(message_with("/data/tokens", 1.5), "data.tokens: expected a whole number from 0, found '1.5'"));
  EXPECT_EQ(message_with("/updates", 12), "no error");
  EXPECT_TRUE(contains(message_with("/updates", 13), "updates: expected at most 12, found '13'"));
  EXPECT_TRUE(contains(message_with("/updates", nullptr), "updates: expected a whole number from 0"));
  EXPECT_EQ(message_with("/stream", nullptr), "no error");
  EXPECT_TRUE(contains(message_with("/stream", 3), "stream: expected an object"));
  EXPECT_TRUE(contains(message_with("/stream/token", -3), "stream.token: expected a whole number from 0"));
  for (const char* hash :
       {"", "0123", "0123456789abcdeg", "-123456789abcdef", "0x23456789abcdef", "00123456789abcdef"}) {
    EXPECT_TRUE(contains(message_with("/data/hash", hash), "data.hash: expected 16 hexadecimal digits")) << hash;
  }
}

// Each of these was accepted: a variance of -1 made every spike test NaN, so that no spike was ever found.
TEST(State, RefusesValuesOutOfRange) {
  const auto message_with = [](const char* pointer, const nlohmann::json& value) {
    auto json = nlohmann::json::parse(to_json(StateFile{state_at(12), {{"model.safetensors", {1, {}}}}}));
    json[nlohmann::json::json_pointer(pointer)] = value;
    return message_of([&] { parse_state(resealed(json), "state.json"); });
  };
  struct Case {
    const char* pointer;
    nlohmann::json value;
    const char* message;
  };
  const Case cases[] = {
      {"/diagnostics/losses/variance", -1, "diagnostics.losses.variance: expected a number from 0 to"},
      {"/diagnostics/losses/variance", 1e300, "diagnostics.losses.variance: expected a number from 0 to"},
      {"/diagnostics/losses/mean", -1e308, "diagnostics.losses.mean: expected a number from"},
      {"/diagnostics/losses/count", 13, "diagnostics.losses.count: expected at most 12, found '13'"},
      {"/diagnostics/incidents", UINT64_MAX, "diagnostics.incidents: expected at most 2147483647"},
      {"/tokens", UINT64_MAX, "tokens: expected at most 9223372036854775807"},
      {"/loss", -1, "loss: expected a number from"},
      {"/loss", "high", "loss: expected"},
      {"/data_position", UINT64_MAX, "data_position: expected at most 9223372036854775807"},
      {"/data/tokens", UINT64_MAX, "data.tokens: expected at most 9223372036854775807"},
      {"/stream/piece", UINT64_MAX, "stream.piece: expected at most 9223372036854775807"},
      {"/stream/token", UINT64_MAX, "stream.token: expected at most 9223372036854775807"},
      {"/best_step", 13, "best_step: expected at most 12, found '13'"},
      {"/random/step", 11, "random.step: expected 12, the step, found '11'"},
      {"/precision", "fp8", "precision: expected fp32, bf16, fp16, found"},
      {"/loss_scale", 0, "loss_scale: expected a number from"},
      {"/loss_scale", -1, "loss_scale: expected a number from"},
      {"/loss_scale", 1e300, "loss_scale: expected a number from"},
      {"/validation_loss", -1e308, "validation_loss: expected a number from"},
      {"/best_validation_loss", 1e308, "best_validation_loss: expected a number from"},
      {"/files/model.safetensors/bytes", UINT64_MAX, "files.model.safetensors.bytes: expected at most"},
      {"/files/..~1..~1thesis.txt", {{"bytes", 1}}, "files: expected file names without a folder, found"},
      {"/files/..", {{"bytes", 1}}, "files: expected file names without a folder"},
      {"/files/~1etc~1passwd", {{"bytes", 1}}, "files: expected file names without a folder"},
      {"/files/", {{"bytes", 1}}, "files: expected file names without a folder"},
  };
  for (const Case& c : cases) {
    const std::string message = message_with(c.pointer, c.value);
    EXPECT_TRUE(contains(message, c.message)) << c.pointer << " = " << c.value << ": " << message;
  }
  EXPECT_EQ(message_with("/diagnostics/losses/count", 12), "no error");
  EXPECT_EQ(message_with("/validation_loss", -1e-9), "no error");  // rounding
}

// A file as versions before the table of fields wrote it: read completely, and written again with one more field.
TEST(State, FormatIsUnchanged) {
  const std::string text = R"({
  "best_step": 10,
  "best_validation_loss": 1.25,
  "checksum": "e58674f455f5dd0d8df9c44e367e41b3f04af5d95bc5c5523171a7ca8a5b838b",
  "clean_steps": 0,
  "data": {
    "hash": "09864fc38202a5c5",
    "tokens": 220156
  },
  "data_position": 368,
  "diagnostics": {
    "incidents": 2,
    "left_out": 3,
    "losses": {
      "count": 20,
      "mean": 1.7961112226614202,
      "variance": 0.1963481235704225
    }
  },
  "files": {
    "model.safetensors": {
      "bytes": 3250496,
      "sha256": "68bc4a06c0e5b1e6587ad257d8941d302e8a6acb0f8552fc79292c8b42cb1754"
    }
  },
  "loss_scale": 1.0,
  "precision": "fp32",
  "random": {
    "generator": "philox4x32-10",
    "seed": 1,
    "step": 20
  },
  "step": 20,
  "stream": {
    "piece": 0,
    "token": 40960
  },
  "tokens": 40960,
  "updates": 18,
  "validation_loss": 1.2550525717676906,
  "version": 1
}
)";
  const StateFile file = parse_state(text, "state.json");
  const RunState expected{.step = 20,
                          .updates = 18,
                          .tokens = 40960,
                          .data_position = 368,
                          .stream = data::StreamPosition{{{.piece = 0, .token = 40960}}},
                          .losses = {.count = 20, .mean = 1.7961112226614202, .variance = 0.1963481235704225},
                          .seed = 1,
                          .data = {.tokens = 220156, .hash = 0x09864fc38202a5c5},
                          .incidents = 2,
                          .skipped_steps = 3,
                          .validation_loss = 1.2550525717676906,
                          .best_validation_loss = 1.25,
                          .best_step = 10};
  EXPECT_EQ(file.state, expected);
  auto json = nlohmann::json::parse(to_json(file));
  EXPECT_EQ(json["loss"], nullptr);
  json.erase("loss");
  EXPECT_EQ(nlohmann::json::parse(resealed(json)), nlohmann::json::parse(text));
}

TEST(State, OlderFilesHaveNoLoss) {
  StateFile file{state_at(12), {}};
  file.state.loss = 2.5;
  auto json = nlohmann::json::parse(to_json(file));
  EXPECT_EQ(parse_state(resealed(json), "state.json").state.loss, 2.5);
  json.erase("loss");
  EXPECT_EQ(parse_state(resealed(json), "state.json").state.loss, std::nullopt);
}

TEST(State, KeepsThePositionsOfAllSources) {
  RunState state = state_at(12);
  state.stream = data::StreamPosition{{{.file = 3, .piece = 7, .token = 1, .drawn = 99}, {.piece = 2, .token = 5}}};
  EXPECT_EQ(parse_state(to_json(StateFile{state, {}}), "state.json").state, state);
  state.stream->sources.resize(1);
  EXPECT_EQ(parse_state(to_json(StateFile{state, {}}), "state.json").state, state);
  auto json = nlohmann::json::parse(to_json(StateFile{state, {}}));
  json["stream"]["piece"] = -1;
  EXPECT_THROW(parse_state(resealed(json), "state.json"), Error);
}

// They counted every step as an update, and continue from there.
TEST(State, OlderFilesCountEveryStepAsAnUpdate) {
  auto json = nlohmann::json::parse(to_json(StateFile{state_at(12), {}}));
  EXPECT_EQ(parse_state(resealed(json), "state.json").state.updates, 6u);
  json.erase("updates");
  json["clean_steps"] = 700;
  EXPECT_EQ(parse_state(resealed(json), "state.json").state.updates, 12u);
}

// What older versions look for.
TEST(State, KeepsTheFieldsThatOlderVersionsExpect) {
  const auto json = nlohmann::json::parse(to_json(StateFile{}));
  EXPECT_EQ(json["loss_scale"], 1);
  EXPECT_EQ(json["clean_steps"], 0);
}

// To show what was found instead overflowed the stack of a parser that did not look.
TEST(State, NestingIsLimited) {
  const std::string deep = std::string(200'000, '[') + std::string(200'000, ']');
  EXPECT_TRUE(contains(message_of([&] { parse_state("{\"version\":" + deep + "}", "state.json"); }), "expected JSON"));
}

TEST(State, SurvivesTwentyThousandDamagedFiles) {
  test::Mutator mutator(
      {to_json(StateFile{state_at(12), {{"model.safetensors", {12345, {1, 2, 3}}}}})},
      {"{", "}", "[", "]", "null", "-1", "1e999", "\"checksum\"", "\"step\"", "18446744073709551616", "\xff"}, 2);
  for (int i = 0; i < 20'000; ++i) {
    try {
      ASSERT_EQ(parse_state(mutator.next(), "mutated").state, state_at(12));
    } catch (const Error&) {
    }
  }
  EXPECT_THROW(parse_state(std::string(1'000'000, '['), "deep"), Error);
  EXPECT_THROW(parse_state(std::string(1'000'000, '[') + std::string(1'000'000, ']'), "deep"), Error);
}

// The checksum turns nearly every damage away before a field is read; here the damaged object gets one that is right.
// What is accepted prints as something that reads the same again.
TEST(State, SurvivesTenThousandDamagedFilesWithTheRightChecksum) {
  test::Mutator mutator(
      {nlohmann::json::parse(to_json(StateFile{state_at(12), {{"model.safetensors", {12345, {1, 2, 3}}}}})).dump()},
      {"0", "9", "null", "-1", "1e308", "1.5", "\"x\"", "[]", "{}", "true", "\"step\":", "18446744073709551615"}, 5);
  size_t accepted = 0, refused = 0;
  for (int i = 0; i < 400'000 && accepted + refused < 10'000; ++i) {
    const auto json = nlohmann::json::parse(mutator.next(), nullptr, /*allow_exceptions=*/false);
    if (!json.is_object()) continue;
    try {
      const StateFile file = parse_state(resealed(json), "mutated");
      ++accepted;
      const StateFile again = parse_state(to_json(file), "printed");
      ASSERT_EQ(again.state, file.state);
      ASSERT_EQ(again.files, file.files);
    } catch (const Error& error) {
      ++refused;
      ASSERT_EQ(std::string_view(error.what()).find('\n'), std::string_view::npos) << error.what();
    }
  }
  EXPECT_EQ(accepted + refused, 10'000u);
  EXPECT_GT(accepted, 1000u);
  EXPECT_GT(refused, 1000u);
}

TEST(WeightsHash, DependsOnNamesOrderNotOnTheCallers) {
  std::vector<float> one = {1.0f, 2.0f};
  std::vector<float> two = {3.0f};
  const std::vector<TensorRef> ab = {{"a", {2}, one}, {"b", {1}, two}};
  const std::vector<TensorRef> ba = {{"b", {1}, two}, {"a", {2}, one}};
  const std::vector<TensorRef> swapped = {{"b", {2}, one}, {"a", {1}, two}};
  EXPECT_EQ(weights_hash(ab), weights_hash(ba));
  EXPECT_NE(weights_hash(ab), weights_hash(swapped));
}

}  // namespace
}  // namespace quern::checkpoint
