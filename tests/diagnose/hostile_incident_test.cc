// Files of incidents that are damaged, or written by someone who means harm.
#include <fmt/format.h>

#include <fstream>
#include <span>
#include <string>

#include "checkpoint/state.h"
#include "core/error.h"
#include "core/files.h"
#include "core/sha256.h"
#include "diagnose/incidents.h"
#include "support/mutation.h"

namespace quern::train {
namespace {

class HostileIncident : public IncidentTest {
 protected:
  // An incident that was recorded by a run.
  fs::path recorded() {
    Listener listener;
    message_of([&] { start(corrupted(Policy::kStop), "run", listener); });
    return root_ / "run" / "incidents" / "step-00000202";
  }

  // Replaces a file, with the size and the digest that state.json says: anyone can compute them. Without a sync.
  static void replace(const fs::path& folder, checkpoint::StateFile state, const char* name, const std::string& text) {
    Sha256 hash;
    hash.update(std::as_bytes(std::span(text)));
    state.files[name] = {.bytes = text.size(), .sha256 = hash.finish()};
    std::ofstream(folder / name, std::ios::binary | std::ios::trunc) << text;
    std::ofstream(folder / "state.json", std::ios::binary | std::ios::trunc) << checkpoint::to_json(state);
  }
};

// They are used as numbers of 32 bits: 2^32 of them were none. The file has the size and the digest that its state.json
// says, since anyone can compute them.
TEST_F(HostileIncident, StepsThatDoNotFit32BitsAreRefused) {
  Listener listener;
  message_of([&] { start(corrupted(Policy::kStop), "run", listener); });
  const fs::path folder = root_ / "run" / "incidents" / "step-00000202";
  const std::string field = "\"left_out\": ";
  std::string text = read_file(folder / "incident.json", 1 << 20);
  const size_t at = text.find(field) + field.size();
  text.replace(at, text.find(',', at) - at, "4294967296");
  checkpoint::StateFile state = checkpoint::parse_state(read_file(folder / "state.json", 1 << 20), "state.json");
  Sha256 digest;
  digest.update(std::as_bytes(std::span(text)));
  state.files["incident.json"] = {.bytes = text.size(), .sha256 = digest.finish()};
  write_file(folder / "incident.json", text);
  write_file(folder / "state.json", checkpoint::to_json(state));
  const std::string message = message_of([&] { load_incident(folder); });
  EXPECT_TRUE(has(message, "left_out: expected at most 2147483647, found '4294967296'")) << message;
}

TEST_F(HostileIncident, DamagedFilesAreNamed) {
  Listener listener;
  message_of([&] { start(corrupted(Policy::kStop), "run", listener); });
  const fs::path folder = root_ / "run" / "incidents" / "step-00000202";
  const auto message = [](const fs::path& path) { return message_of([&] { load_incident(path); }); };
  ASSERT_EQ(message(folder), "no error");
  for (const char* name :
       {"incident.json", "batch.safetensors", "run.toml", "model.safetensors", "optimizer.safetensors", "state.json"}) {
    SCOPED_TRACE(name);
    const std::string text = read_file(folder / name, 1 << 30);
    write_file(folder / name, text.substr(0, text.size() / 2));
    EXPECT_TRUE(has(message(folder), name)) << message(folder);
    std::string changed = text;
    changed[text.size() / 2] = static_cast<char>(changed[text.size() / 2] ^ 1);
    write_file(folder / name, changed);
    EXPECT_TRUE(has(message(folder), name)) << message(folder);
    fs::remove(folder / name);
    EXPECT_TRUE(
        has(message(folder), std::string_view(name) == "state.json" ? "expected the folder of an incident" : name))
        << message(folder);
    write_file(folder / name, text);
  }
  EXPECT_EQ(message(folder), "no error");
  EXPECT_TRUE(has(message(root_ / "nowhere"), "expected the folder of an incident"));
  EXPECT_TRUE(
      has(message(root_ / "run" / "checkpoints" / "step-00000201"), "expected an incident, found a checkpoint"));
}

// What an incident says is shown on a terminal, whoever wrote it; and a stamp in state.json is no proof of good will.
TEST_F(HostileIncident, HostileTextIsShownOrRefused) {
  Listener listener;
  message_of([&] { start(corrupted(Policy::kStop), "run", listener); });
  const fs::path folder = root_ / "run" / "incidents" / "step-00000202";
  const std::string text = read_file(folder / "incident.json", 1 << 20);
  const auto with = [&](const std::string& part, const std::string& other) {
    std::string changed = text;
    changed.replace(changed.find(part), part.size(), other);
    write_file(folder / "incident.json", changed);
    checkpoint::StateFile state = checkpoint::read_state(folder);
    Sha256 hash;
    hash.update(std::as_bytes(std::span(changed)));
    state.files["incident.json"] = {.bytes = changed.size(), .sha256 = hash.finish()};
    write_file(folder / "state.json", checkpoint::to_json(state));
  };
  with("\"first_bad\": null", R"("first_bad": {"tensor": "\u001b[2J\u009b31m", "kind": "NaN", "sequence": 3})");
  const RecordedIncident recorded = load_incident(folder);
  EXPECT_EQ(recorded.incident.findings.pass->tensor, "\\x1b[2J\\xc2\\x9b31m");
  EXPECT_FALSE(has(describe(recorded.incident, {.sequences = 4, .micro_batch_size = 4}), "\x1b"));
  const std::string deep = std::string(200'000, '[') + std::string(200'000, ']');
  with("\"version\": 1", "\"version\": " + deep);
  const std::string message = message_of([&] { load_incident(folder); });
  EXPECT_TRUE(has(message, "incident.json: expected a JSON object")) << message.substr(0, 200);
}

TEST_F(HostileIncident, SequencesOutsideOfTheStepAreRefused) {
  const fs::path folder = recorded();
  const checkpoint::StateFile state = checkpoint::read_state(folder);
  const std::string text = read_file(folder / "incident.json", 1 << 20);
  const auto message_with = [&](const std::string& part, const std::string& other) {
    std::string changed = text;
    changed.replace(changed.find(part), part.size(), other);
    replace(folder, state, "incident.json", changed);
    return message_of([&] { load_incident(folder); });
  };
  const std::string worst = fmt::format("\"worst_sequence\": {}", kBadSequence);
  EXPECT_EQ(message_with(worst, "\"worst_sequence\": 0"), "no error");
  EXPECT_TRUE(
      has(message_with(worst, "\"worst_sequence\": 4"), "worst_sequence: expected a sequence below 4, found 4"));
  EXPECT_TRUE(has(message_with(worst, "\"worst_sequence\": 18446744073709551615"), "worst_sequence: expected"));
  EXPECT_TRUE(has(message_with("\"first_bad\": null",
                               R"("first_bad": {"tensor": "x", "kind": "NaN", "sequence": 18446744073709551615})"),
                  "first_bad.sequence: expected a sequence below 4"));
}

// Whatever is accepted can be shown, in a line of bounded length.
TEST_F(HostileIncident, SurvivesTenThousandDamagedFiles) {
  const fs::path folder = recorded();
  const checkpoint::StateFile state = checkpoint::read_state(folder);
  size_t accepted = 0, refused = 0;
  for (const char* name : {"incident.json", "run.toml"}) {
    const std::string text = read_file(folder / name, 1 << 20);
    ::quern::test::Mutator mutator({text},
                                   {"0",
                                    "9",
                                    "-1",
                                    "1e308",
                                    "nan",
                                    "inf",
                                    "null",
                                    "true",
                                    "\"",
                                    "[",
                                    "]",
                                    "{",
                                    "}",
                                    "=",
                                    ".",
                                    "\n",
                                    "18446744073709551615",
                                    "\xff",
                                    "\x1b[2J",
                                    "\\u0000",
                                    "\\ud800"},
                                   11);
    for (int i = 0; i < 5'000; ++i) {
      replace(folder, state, name, mutator.next());
      try {
        const RecordedIncident found = load_incident(folder);
        const uint64_t sequences = found.config.train.batch * found.config.train.accumulation;
        const std::string shown = describe(found.incident, {.sequences = sequences, .micro_batch_size = sequences});
        ASSERT_LT(shown.size(), 1000u) << shown;
        ASSERT_EQ(shown.find_first_of("\n\x1b"), std::string::npos) << shown;
        ++accepted;
      } catch (const Error& error) {
        ASSERT_EQ(std::string_view(error.what()).find('\n'), std::string_view::npos) << error.what();
        ++refused;
      }
    }
    replace(folder, state, name, text);
  }
  EXPECT_GT(accepted, 500u);
  EXPECT_GT(refused, 500u);
}

}  // namespace
}  // namespace quern::train
