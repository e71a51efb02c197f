#include "config/config.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>

#include "config/config_fields.h"
#include "config/history.h"
#include "config/model_settings.h"
#include "core/error.h"
#include "core/files.h"
#include "support/message.h"
#include "support/mutation.h"
#include "support/temporary_folder.h"

namespace quern::train {
namespace {

using test::message_of;

bool contains(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }

RunConfig parsed(std::string_view text) {
  RunConfig config;
  apply_toml(config, text, "run.toml");
  return config;
}

std::string toml_message(std::string_view text) {
  return message_of([&] { parsed(text); });
}

std::string set_message(std::string_view setting) {
  return message_of([&] {
    RunConfig config;
    apply_setting(config, setting);
  });
}

const Field& seed_field() {
  const auto all = fields();
  return *std::find_if(all.begin(), all.end(), [](const Field& field) { return field.path() == "train.seed"; });
}

#define EXPECT_HAS(part, message) EXPECT_PRED2(contains, message, part)

// Values over the whole range of every field, the ends included.
RunConfig random_config(std::mt19937_64& random) {
  RunConfig config;
  for (const Field& field : fields()) {
    if (const auto* whole = std::get_if<WholeField>(&field.kind)) {
      const uint64_t values = whole->max - whole->min + 1;  // 0: all 2^64
      const uint64_t any = whole->min + (values == 0 ? random() : random() % values);
      whole->of(config) = random() % 4 == 0 ? whole->min : random() % 3 == 0 ? whole->max : any;
    } else if (const auto* real = std::get_if<RealField>(&field.kind)) {
      const double share = static_cast<double>(random() >> 11) * 0x1p-53;
      real->of(config) = random() % 4 == 0 ? real->min : real->min + share * share * (real->max - real->min);
    } else if (const auto* flag = std::get_if<FlagField>(&field.kind)) {
      flag->of(config) = random() % 2 == 0;
    } else if (const auto* choice = std::get_if<ChoiceField>(&field.kind)) {
      choice->set(config, random() % choice->names.size());
    } else if (const auto* list = std::get_if<ListField>(&field.kind)) {
      for (size_t i = random() % 4; i > 0; --i) {
        list->of(config).push_back(
            std::string("a \"b\\\n\t\x7f\x01 '#=\xc3\xa9\xf0\x9f\x98\x80").substr(0, random() % 13));
      }
    }
  }
  return config;
}

TEST(RunConfig, RoundTrips) {
  std::mt19937_64 random(5);
  for (int i = 0; i < 1000; ++i) {
    const RunConfig config = random_config(random);
    RunConfig other = random_config(random);
    apply_toml(other, to_toml(config), "printed");
    ASSERT_EQ(other, config) << to_toml(config);
    ASSERT_EQ(to_toml(other), to_toml(config));
  }
}

TEST(RunConfig, PresetsHaveTheSizesOfTheBenchmarks) {
  EXPECT_EQ(preset("tiny"), RunConfig{});
  const auto sizes = [](std::string_view name) {
    const RunConfig c = preset(name);
    return std::vector<uint64_t>{c.model.layers, c.model.heads, c.model.width, c.model.context, c.train.batch};
  };
  EXPECT_EQ(sizes("tiny"), (std::vector<uint64_t>{4, 4, 128, 128, 16}));
  EXPECT_EQ(sizes("small"), (std::vector<uint64_t>{6, 6, 384, 256, 8}));
  EXPECT_EQ(sizes("gpt2"), (std::vector<uint64_t>{12, 12, 768, 64, 4}));
  EXPECT_EQ(preset("gpt2").model.vocabulary, 50304u);
  EXPECT_HAS("expected tiny, small, gpt2, minute, ten-minutes, llama-tiny or llama-small, found 'huge'",
             message_of([] { preset("huge"); }));
}

TEST(RunConfig, VariantsAreTheSettingsThatDifferFromGpt2) {
  EXPECT_EQ(variants_text(preset("small")), "");
  EXPECT_EQ(variants_text(preset("minute")),
            "norm=rmsnorm, positions=rotary, activation=relu2, qk_norm=true, zero_projections=true, "
            "tied_output=false, logit_cap=15.0");
}

TEST(RunConfig, PresetsAreValidAndRoundTrip) {
  for (const std::string_view name : preset_names()) {
    EXPECT_NO_THROW(validate(preset(name)));
    EXPECT_EQ(parsed(to_toml(preset(name))), preset(name));
  }
}

// Every number of the defaults is within the range that its own field states.
TEST(RunConfig, EveryFieldIsDocumentedAndItsDefaultAllowed) {
  const std::string text = to_toml({}), of_selfplay = to_toml(selfplay_preset("chess"));
  for (const Field& field : fields()) {
    EXPECT_TRUE(field.doc.ends_with('.')) << field.path();
    const std::string& has_it = field.table == "selfplay" ? of_selfplay : text;
    EXPECT_HAS("# " + std::string(field.doc), has_it);
    EXPECT_HAS("\n" + std::string(field.name) + " = ", has_it);
  }
  EXPECT_EQ(parsed(text), RunConfig{});
  for (size_t begin = 0, end; begin < text.size(); begin = end + 1) {
    end = text.find('\n', begin);
    EXPECT_LE(end - begin, 140u) << text.substr(begin, end - begin);
  }
}

TEST(RunConfig, SourcesArePathsWithWeights) {
  RunConfig config = parsed("[data]\nsources = ['my books/ 3', '/code 0.5']\n");
  resolve_paths(config);
  EXPECT_TRUE(config.data.sources[0].ends_with("/my books/ 3"));
  EXPECT_EQ(config.data.sources[1], "/code 0.5");
  EXPECT_EQ(parsed(to_toml(config)), config);
  apply_setting(config, "data.sources=[\"a 1\"]");
  EXPECT_EQ(config.data.sources, std::vector<std::string>{"a 1"});
  for (const char* bad :
       {"books", "books 0", "books -1", "books nan", "books inf", "books 1e9", " 3", "3", "", "a 1x"}) {
    config.data.sources = {bad};
    EXPECT_HAS("data.sources: expected a path, a space and a weight", message_of([&] { validate(config); }));
  }
  config.data.sources = {"a 1"};
  config.data.paths = {"b"};
  EXPECT_HAS("data.sources: expected none together with data.paths", message_of([&] { validate(config); }));
}

TEST(RunConfig, ShuffleNeedsAStream) {
  RunConfig config;
  config.data.shuffle = 100;
  EXPECT_HAS("data.shuffle: expected 0 without data.sampling=stream", message_of([&] { validate(config); }));
  config.data.sampling = Sampling::kStream;
  EXPECT_NO_THROW(validate(config));
}

TEST(RunConfig, FileSetsOnlyTheFieldsItContains) {
  const RunConfig config = parsed(
      "[model]\nwidth = 256\n[optimizer]\nrate = 1\nschedule = 'linear'\n"
      "[data]\npaths = ['a.txt', \"b\"]\n[checkpoint]\nkeep_best = false\n");
  RunConfig expected;
  expected.model.width = 256;
  expected.optimizer.rate = 1.0;
  expected.optimizer.schedule = Schedule::kLinear;
  expected.data.paths = {"a.txt", "b"};
  expected.checkpoint.keep_best = false;
  EXPECT_EQ(config, expected);
}

TEST(RunConfig, ErrorsNamePlaceExpectedAndFound) {
  EXPECT_HAS("run.toml:2:1: expected the name of a setting, found 'train.stpes'; did you mean train.steps?",
             toml_message("[train]\nstpes = 5"));
  EXPECT_HAS("found 'model.steps'; did you mean train.steps?", toml_message("model.steps = 5"));
  EXPECT_HAS("found 'steps'; did you mean train.steps?", toml_message("steps = 5"));
  EXPECT_HAS("found 'optimiser'; did you mean [optimizer]?", toml_message("[optimiser]\nrate = 1.0"));
  EXPECT_HAS(
      "expected a table of model, train, lora, optimizer, data, checkpoint, log, diagnostics, selfplay, dist, init, "
      "found 'model'",
      toml_message("model = 1"));
  // The limits of the settings are those of the model.
  EXPECT_HAS("model.width: expected a whole number from 1 to 65536, found 65537",
             toml_message("[model]\nwidth = 65537"));
  EXPECT_HAS("run.toml:2:10: model.layers: expected a whole number from 1 to 1024, found 0",
             toml_message("[model]\nlayers = 0"));
  EXPECT_HAS("found -3", toml_message("[model]\nlayers = -3"));
  EXPECT_HAS("found 'x'", toml_message("[model]\nlayers = 'x'"));
  EXPECT_HAS("found 4.5", toml_message("[model]\nlayers = 4.5"));
  EXPECT_HAS("model.dropout: expected a number from 0 to 0.95, found nan", toml_message("[model]\ndropout = nan"));
  EXPECT_HAS("found inf", toml_message("[optimizer]\nrate = inf"));
  EXPECT_HAS("optimizer.schedule: expected cosine, linear, constant or wsd, found 'cos'",
             toml_message("[optimizer]\nschedule = 'cos'"));
  EXPECT_HAS("expected true or false, found 1", toml_message("[checkpoint]\nkeep_best = 1"));
  EXPECT_HAS("data.paths: expected a list of texts", toml_message("[data]\npaths = 'a'"));
  EXPECT_HAS("data.paths: expected a list of texts", toml_message("[data]\npaths = ['a', 1]"));
  EXPECT_HAS("found a date or time", toml_message("[model]\nlayers = 2020-01-01"));
  EXPECT_HAS("run.toml:3:", toml_message("[model]\nlayers = 4\nlayers = 5"));
  EXPECT_HAS("run.toml:1:", toml_message("[model"));
  EXPECT_HAS("run.toml:1: expected at most 1000 dots", toml_message("a" + std::string(100'000, '.') + "b = 1"));
}

// TOML's integers end at 2^63 - 1, and seeds do not: drawn from 64 bits, every second one is above.
TEST(RunConfig, EverySeedRoundTrips) {
  constexpr uint64_t kEnd = uint64_t{1} << 63;
  for (const uint64_t seed : {uint64_t{0}, kEnd - 1, kEnd, kEnd + 1, UINT64_MAX}) {
    RunConfig config, set, valued;
    config.train.seed = seed;
    EXPECT_EQ(parsed(to_toml(config)), config);
    apply_setting(set, "train.seed=" + std::to_string(seed));
    EXPECT_EQ(set, config);
    apply_setting(set, "train.seed=" + value_text(seed_field(), config));
    EXPECT_EQ(set, config);
    if (seed < kEnd) continue;
    apply_value(valued, "train.seed", std::to_string(seed), "set");
    EXPECT_EQ(valued, config);
  }
  EXPECT_HAS("put a seed of 2^63 or above in quotation marks", toml_message("[train]\nseed = 18446744073709551615"));
  constexpr const char* kRange = "train.seed: expected a whole number from 0 to 18446744073709551615, found ";
  EXPECT_HAS(kRange + std::string("'18446744073709551616'"), set_message("train.seed=18446744073709551616"));
  EXPECT_HAS(kRange + std::string("-1"), set_message("train.seed=-1"));
  EXPECT_HAS(kRange + std::string("'7'"), toml_message("[train]\nseed = '7'"));
  EXPECT_HAS(kRange + std::string("' 9223372036854775808'"), toml_message("[train]\nseed = ' 9223372036854775808'"));
  EXPECT_HAS("train.batch: expected a whole number from 1 to 1000000, found '9223372036854775808'",
             set_message("train.batch=9223372036854775808"));
}

// toml++ has no double for such an integer; the field took whatever lay in memory.
TEST(RunConfig, RefusesAnIntegerThatIsNotADouble) {
  EXPECT_HAS("optimizer.clip: expected a number from 0 to 1000000000, found 9007199254740993",
             toml_message("[optimizer]\nclip = 9007199254740993"));
  EXPECT_HAS("found 9223372036854775807", set_message("model.dropout=9223372036854775807"));
}

TEST(RunConfig, IsUnchangedAfterAnError) {
  RunConfig config;
  EXPECT_THROW(apply_toml(config, "[model]\nwidth = 256\nheads = 0", "run.toml"), Error);
  EXPECT_EQ(config, RunConfig{});
}

TEST(RunConfig, FileErrorsNameTheFile) {
  const test::TemporaryFolder folder;
  RunConfig config;
  EXPECT_HAS("none.toml: cannot open", message_of([&] { apply_toml_file(config, folder / "none.toml"); }));
  write_file(folder / "big.toml", std::string(2 << 20, '#'));
  EXPECT_HAS("big.toml: expected at most", message_of([&] { apply_toml_file(config, folder / "big.toml"); }));
  write_file(folder / "bad.toml", "[model]\nwidht = 1\n");
  EXPECT_HAS("bad.toml:2:1", message_of([&] { apply_toml_file(config, folder / "bad.toml"); }));
  write_file(folder / "good.toml", to_toml(preset("small")));
  apply_toml_file(config, folder / "good.toml");
  EXPECT_EQ(config, preset("small"));
}

TEST(Config, ATextMayBeginWithAQuotationMark) {
  RunConfig config;
  for (const std::string text : {"\"Yes,\" he said, \"but\"", "'Tis", "\"", "\"a\"\n[train]", "true", "3"}) {
    apply_setting(config, "log.sample_prompt=" + text);
    EXPECT_EQ(text, config.log.sample_prompt);
    EXPECT_EQ(text, parsed(to_toml(config)).log.sample_prompt);
  }
  apply_setting(config, R"(log.sample_prompt="a\tb")");
  EXPECT_EQ("a\tb", config.log.sample_prompt);
}

TEST(Setting, SetsOneField) {
  RunConfig config;
  for (const char* setting : {"train.steps=1_000", "optimizer.rate=3e-4", "optimizer.schedule=linear",
                              "data.tokenizer=\"bpe\"", "data.paths=my text.txt", "checkpoint.keep_best=false"}) {
    apply_setting(config, setting);
  }
  RunConfig expected;
  expected.train.steps = 1000;
  expected.optimizer.rate = 3e-4;
  expected.optimizer.schedule = Schedule::kLinear;
  expected.data.tokenizer = TokenizerKind::kBpe;
  expected.data.paths = {"my text.txt"};
  expected.checkpoint.keep_best = false;
  EXPECT_EQ(config, expected);
  apply_setting(config, "data.paths=[\"a=b\", 'c']");
  EXPECT_EQ(config.data.paths, (std::vector<std::string>{"a=b", "c"}));
  apply_setting(config, "data.paths=[]");
  EXPECT_TRUE(config.data.paths.empty());
}

TEST(Setting, ErrorsNameExpectedAndFound) {
  EXPECT_HAS("expected table.name=value, found no =", set_message("train.steps"));
  EXPECT_HAS("found 'steps'; did you mean train.steps?", set_message("steps=5"));
  EXPECT_HAS("did you mean train.steps?", set_message("train.step=5"));
  EXPECT_HAS("--set 'train.steps=many': train.steps: expected a whole number from 0 to 1000000000, found 'many'",
             set_message("train.steps=many"));
  EXPECT_HAS("optimizer.rate: expected a number from 0 to 10, found ''", set_message("optimizer.rate="));
  EXPECT_HAS("data.paths: expected a list of texts, as [\"a\", \"b\"], found '[a'", set_message("data.paths=[a"));
  EXPECT_HAS("train.steps: expected a whole number from 0 to 1000000000, found -1", set_message("train.steps=-1"));
  EXPECT_HAS("expected cosine, linear, constant or wsd, found 'x'", set_message("optimizer.schedule=x"));
  EXPECT_HAS("expected one value, found more", set_message("train.steps=5\nother=6"));
  RunConfig config;
  EXPECT_HAS("[config] --steps x: train.steps: expected",
             message_of([&] { apply_setting(config, "train.steps=x", "--steps x"); }));
  EXPECT_HAS("--set", set_message("="));
}

TEST(Validate, RefusesInconsistentFields) {
  const auto message_with = [](const std::vector<const char*>& settings) {
    RunConfig config;
    for (const char* setting : settings) apply_setting(config, setting);
    return message_of([&] { validate(config); });
  };
  EXPECT_EQ(message_with({}), "no error");
  EXPECT_HAS("model.width: expected a multiple of model.heads, which is 3, found 128", message_with({"model.heads=3"}));
  EXPECT_HAS("model.width: expected an even number per head for rotary positions, found 12 / 4 heads",
             message_with({"model.positions=rotary", "model.width=12"}));
  EXPECT_HAS("train.lanes: expected at most the sequences of a step, train.batch x train.accumulation = 6, found 8",
             message_with({"train.batch=3", "train.accumulation=2", "train.lanes=8"}));
  EXPECT_EQ(message_with({"train.batch=3", "train.accumulation=2", "train.lanes=6"}), "no error");
  // 1e-39 gave NaN, because its reciprocal is infinite, and 1e-46 no cap at all.
  EXPECT_HAS("model.logit_cap: expected 0 or at least 0.001, found 1e-39", message_with({"model.logit_cap=1e-39"}));
  EXPECT_EQ(message_with({"model.logit_cap=0.001"}), "no error");
  EXPECT_HAS("optimizer.min_rate: expected at most", message_with({"optimizer.rate=1e-5"}));
  EXPECT_EQ(message_with({"optimizer.rate=1e-5", "optimizer.schedule=constant"}), "no error");
  EXPECT_HAS("model.vocabulary: expected 0 or at least data.vocabulary, which is 8192, found 100",
             message_with({"data.tokenizer=bpe", "model.vocabulary=100"}));
  EXPECT_HAS("data.validation_fraction: expected 0 or at least 1e-06, found 1e-10",
             message_with({"data.validation_fraction=1e-10"}));
  EXPECT_HAS("optimizer.rate: expected more than 0 with optimizer.kind=muon",
             message_with({"optimizer.kind=muon", "optimizer.rate=0", "optimizer.min_rate=0"}));
  EXPECT_HAS("optimizer.warmup: expected at most 20 of 100 steps before the cooldown, found 50",
             message_with({"optimizer.schedule=wsd", "optimizer.cooldown=0.8", "train.steps=100"}));
  EXPECT_HAS("expected at most 4294967295 sequences",
             message_with({"train.batch=1000000", "train.accumulation=1000000"}));
  RunConfig config;
  config.data.paths = {"caf\xe9.txt"};
  EXPECT_HAS("expected names in UTF-8", message_of([&] { validate(config); }));
}

// What is accepted is within its ranges, and prints as something that gives the same again.
TEST(RunConfig, SurvivesTwentyThousandDamagedFiles) {
  RunConfig with_paths = preset("small");
  with_paths.data.paths = {"a.txt", "folder/b \"c\""};
  test::Mutator mutator({to_toml(preset("gpt2")), to_toml(with_paths), "model.layers = 3\ntrain = { steps = 5 }\n"},
                        {"[",
                         "]",
                         "[[",
                         "{",
                         "}",
                         "=",
                         "\"\"\"",
                         "'''",
                         "\n",
                         ".",
                         "a.b.c",
                         "-1",
                         "inf",
                         "nan",
                         "1e400",
                         "0x7fffffffffffffff",
                         "9223372036854775808",
                         "[model]\n",
                         "1979-05-27",
                         "\\u0000",
                         "\xff",
                         "\xef\xbb\xbf"},
                        6);
  size_t accepted = 0;
  for (int i = 0; i < 20'000; ++i) {
    const std::string text = mutator.next();
    RunConfig config;
    try {
      apply_toml(config, text, "mutated");
      ++accepted;
    } catch (const Error& error) {
      ASSERT_EQ(std::string_view(error.what()).find('\n'), std::string_view::npos) << error.what();
      ASSERT_EQ(config, RunConfig{});
      continue;
    }
    RunConfig again;
    apply_toml(again, to_toml(config), "printed");
    ASSERT_EQ(again, config) << text;
  }
  EXPECT_GT(accepted, 1000u);
  EXPECT_LT(accepted, 19'000u);
}

TEST(Setting, SurvivesTwentyThousandDamagedOnes) {
  test::Mutator mutator({"train.steps=100", "optimizer.rate=1e-3", "data.paths=[\"a\", \"b\"]",
                         "optimizer.schedule=cosine", "checkpoint.keep_best=true"},
                        {"[", "]", "{", "=", "\"", "'", "\n", ".", "-1", "inf", "nan", "#", "\xff", "train.", "1e400"},
                        7);
  for (int i = 0; i < 20'000; ++i) {
    RunConfig config;
    try {
      apply_setting(config, mutator.next());
    } catch (const Error&) {
      ASSERT_EQ(config, RunConfig{});
    }
  }
}

TEST(RunConfig, ValuesOfOtherLanguages) {
  RunConfig config;
  const auto apply = [&](std::string_view path, const SettingValue& value) { apply_value(config, path, value, "set"); };
  apply("train.steps", int64_t{7});
  apply("optimizer.rate", 0.5);
  apply("optimizer.min_rate", int64_t{0});
  apply("log.tensorboard", true);
  apply("optimizer.schedule", "linear");
  apply("train.memory", "512M");
  apply("data.paths", std::vector<std::string>{"a\"b", "[c]"});
  RunConfig expected;
  expected.train.steps = 7;
  expected.optimizer.rate = 0.5;
  expected.optimizer.min_rate = 0;
  expected.log.tensorboard = true;
  expected.optimizer.schedule = Schedule::kLinear;
  expected.train.memory = uint64_t{512} << 20;
  expected.data.paths = {"a\"b", "[c]"};
  EXPECT_EQ(config, expected);
  apply("data.paths", "[d]");
  EXPECT_EQ(config.data.paths, std::vector<std::string>{"[d]"});
}

TEST(RunConfig, BadValuesOfOtherLanguagesAreNamed) {
  RunConfig config;
  const auto refuses = [&](std::string_view path, const SettingValue& value) {
    std::string message = message_of([&] { apply_value(config, path, value, "set"); });
    EXPECT_EQ(config, RunConfig{});
    return message;
  };
  EXPECT_EQ(refuses("train.batch", int64_t{-1}),
            "[config] set: train.batch: expected a whole number from 1 to 1000000, found -1");
  EXPECT_EQ(refuses("train.batch", 2.5),
            "[config] set: train.batch: expected a whole number from 1 to 1000000, found 2.5");
  EXPECT_EQ(refuses("train.batch", 2.0),
            "[config] set: train.batch: expected a whole number from 1 to 1000000, found 2.0; write 2");
  EXPECT_EQ(refuses("optimizer.lr", 2.0),
            "[config] set: expected the name of a setting, found 'optimizer.lr'; did you mean optimizer.rate?");
  EXPECT_EQ(refuses("train.batch", true),
            "[config] set: train.batch: expected a whole number from 1 to 1000000, found true");
  EXPECT_EQ(refuses("train.stepz", int64_t{1}),
            "[config] set: expected the name of a setting, found 'train.stepz'; did you mean train.steps?");
  EXPECT_EQ(refuses("steps", int64_t{1}),
            "[config] set: expected the name of a setting, found 'steps'; did you mean train.steps?");
}

TEST(RunConfig, ResumesWithOtherStepsButNotAnotherModel) {
  RunConfig started, config;
  config.train.threads = 3;
  config.train.recompute.kind = Recompute::Kind::kEveryLayer;
  config.train.memory = 1 << 30;
  config.diagnostics.policy = Policy::kSkip;
  config.train.steps = 7;
  EXPECT_NO_THROW(check_resumable(started, config, "runs/a"));
  config.model.width = 64;
  EXPECT_EQ(message_of([&] { check_resumable(started, config, "runs/a"); }),
            "[config] model.width: expected 128, as the run was started with, found 64: the weights belong to that "
            "model; start a new run");
  config = started;
  config.train.seed = 7;
  EXPECT_EQ(
      message_of([&] { check_resumable(started, config, "runs/a"); }),
      "[config] train.seed: expected 1, as the run was started with, found 7: it decides the order of the data and "
      "all random numbers; start a new run from its weights: quern train --from runs/a --run NEW");
}

// toml++ takes for granted that a name follows the bracket; without checked_toml.h this ends the program or worse.
TEST(RunConfig, BracketWithoutANameIsRefused) {
  for (const char* text : {"[=", "[ =]", "[[=]]", "[\n]", "[#]", "[.a]"}) EXPECT_THROW(parsed(text), Error) << text;
}

TEST(RunConfig, HostileNestingIsRefused) {
  for (const std::string& text :
       {std::string(500'000, '['), "a = " + std::string(500'000, '['), "a = " + std::string(500'000, '{'),
        "[" + std::string(900, 'a') + "]", "x = [" + std::string(400'000, ',') + "]"}) {
    EXPECT_THROW(parsed(text), Error);
  }
  std::string dotted = "a";
  for (int i = 0; i < 1000; ++i) dotted += ".a";
  EXPECT_THROW(parsed(dotted + " = 1"), Error);
  EXPECT_THROW(parsed("[" + dotted + "]"), Error);
}

}  // namespace
}  // namespace quern::train
