#include "checkpoint/folder.h"

#include <gtest/gtest.h>

#include "core/error.h"
#include "core/files.h"
#include "support/temporary_folder.h"
#include "toy_run.h"

namespace quern::checkpoint {
namespace {

namespace fs = std::filesystem;
using Steps = std::vector<uint64_t>;

void save_with_loss(const fs::path& folder, uint64_t step, std::optional<double> loss) {
  ToyRun run;
  run.set(step);
  RunState state = state_at(step);
  state.validation_loss = loss;
  save(folder, run.tensors(), state, kToyConfig);
}

TEST(Folder, NamesAndSteps) {
  EXPECT_EQ(directory_name(500), "step-00000500");
  EXPECT_EQ(directory_name(1'234'567'890), "step-1234567890");
  EXPECT_EQ(step_of("x/step-00000500"), 500u);
  EXPECT_EQ(step_of("step-1234567890"), 1'234'567'890u);
  for (const char* wrong : {"step-", "step-500", "step-00000500x", "step-0000000500", "step--0000001",
                            ".tmp-step-00000500-1-0", "step-99999999999999999999999", "other"}) {
    EXPECT_EQ(step_of(wrong), std::nullopt) << wrong;
  }
}

TEST(Folder, ListsStepsOnly) {
  const test::TemporaryFolder folder;
  EXPECT_EQ(list_steps(folder / "none"), Steps{});
  for (const char* name : {"step-00000020", "step-100000003", "step-00000001", "notes", ".tmp-step-00000005-1-1"}) {
    fs::create_directory(folder / name);
  }
  EXPECT_EQ(list_steps(folder.path()), (Steps{1, 20, 100'000'003}));
}

TEST(Folder, NothingValidIsNone) {
  const test::TemporaryFolder folder;
  EXPECT_FALSE(find_newest_valid(folder / "none", nullptr).has_value());
  fs::create_directory(folder / "step-00000020");
  size_t passed_over = 0;
  EXPECT_FALSE(find_newest_valid(folder.path(), [&](const std::string&) { ++passed_over; }).has_value());
  EXPECT_EQ(passed_over, 1u);
}

TEST(Retention, KeepsTheLastAndTheBest) {
  const test::TemporaryFolder folder;
  const double losses[] = {5, 2, 4, 3, 6};
  for (uint64_t i = 0; i < 5; ++i) save_with_loss(folder.path(), 10 * (i + 1), losses[i]);
  EXPECT_EQ(remove_old(folder.path(), 50, {.keep = 2}), (Steps{10, 30}));
  EXPECT_EQ(list_steps(folder.path()), (Steps{20, 40, 50}));
  EXPECT_EQ(remove_old(folder.path(), 50, {.keep = 2, .keep_best = false}), Steps{20});
  EXPECT_EQ(remove_old(folder.path(), 50, {.keep = 0, .keep_best = false}), Steps{40});
  EXPECT_EQ(remove_old(folder.path(), 50, {.keep = 0, .keep_best = false}), Steps{});
  EXPECT_EQ(test::names_in(folder.path()), std::set<std::string>{"step-00000050"});
}

TEST(Retention, MissingLossesAreNotTheBest) {
  const test::TemporaryFolder folder;
  save_with_loss(folder.path(), 1, std::nullopt);
  save_with_loss(folder.path(), 2, 3.0);
  save_with_loss(folder.path(), 3, std::nullopt);
  save_with_loss(folder.path(), 4, 3.0);
  save_with_loss(folder.path(), 5, std::nullopt);
  EXPECT_EQ(remove_old(folder.path(), 5, {.keep = 1}), (Steps{1, 3, 4}));
}

// A damaged step 30 made the run go on from 10. Counted as the last one, it would cost the whole checkpoint 20.
TEST(Retention, StepsAboveTheNewestAreNotCounted) {
  const test::TemporaryFolder folder;
  for (const uint64_t step : {10, 20, 30}) save_with_loss(folder.path(), step, 1.0 + static_cast<double>(step));
  fs::resize_file(folder / "step-00000030/model.safetensors", 5);
  EXPECT_EQ(remove_old(folder.path(), 20, {.keep = 1, .keep_best = false}), Steps{10});
  EXPECT_EQ(find_newest_valid(folder.path(), nullptr)->state().step, 20u);
}

// A user's notes lay in an old checkpoint, and were removed with it.
TEST(Retention, ADirectoryWithFilesOfOthersStays) {
  const test::TemporaryFolder folder;
  for (const uint64_t step : {10, 20, 30, 40}) save_with_loss(folder.path(), step, std::nullopt);
  write_file(folder / "step-00000020/notes.md", "the one for the paper");
  fs::resize_file(folder / "step-00000030/state.json", 5);
  fs::create_directory(folder / "step-00000005");
  fs::create_directory(folder / "step-00000005/thesis");
  write_file(folder / "step-00000006", "a file");
  EXPECT_EQ(remove_old(folder.path(), 40, {.keep = 1, .keep_best = false}), (Steps{10, 30}));
  EXPECT_EQ(test::names_in(folder.path()),
            (std::set<std::string>{"step-00000005", "step-00000006", "step-00000020", "step-00000040"}));
  EXPECT_EQ(read_file(folder / "step-00000020/notes.md", 100), "the one for the paper");
}

// So they were when a run that passed over a damaged checkpoint came to its step again.
TEST(Save, ADirectoryWithFilesOfOthersIsSetAside) {
  const test::TemporaryFolder folder;
  for (int round = 0; round < 3; ++round) {
    save_with_loss(folder.path(), 10, std::nullopt);
    write_file(folder / "step-00000010/notes.md", std::to_string(round));
  }
  save_with_loss(folder.path(), 10, std::nullopt);
  save_with_loss(folder.path(), 10, std::nullopt);
  EXPECT_EQ(test::names_in(folder.path()),
            (std::set<std::string>{"step-00000010", "step-00000010.replaced-1", "step-00000010.replaced-2",
                                   "step-00000010.replaced-3"}));
  EXPECT_EQ(read_file(folder / "step-00000010.replaced-2/notes.md", 100), "1");
  EXPECT_FALSE(fs::exists(folder / "step-00000010/notes.md"));
  EXPECT_EQ(find_newest_valid(folder.path(), nullptr)->state().step, 10u);
}

// For every count and every place of the best one, over a whole run.
TEST(Retention, NeverRemovesTheNewestOrTheBest) {
  for (size_t keep = 0; keep <= 3; ++keep) {
    for (uint64_t best = 1; best <= 6; ++best) {
      const test::TemporaryFolder folder;
      for (uint64_t step = 1; step <= 6; ++step) {
        save_with_loss(folder.path(), step, step == best ? 0.5 : 1.0 + static_cast<double>(step));
        remove_old(folder.path(), step, {.keep = keep});
        const Steps left = list_steps(folder.path());
        ASSERT_EQ(left.back(), step);
        ASSERT_TRUE(step < best || std::find(left.begin(), left.end(), best) != left.end());
        ASSERT_LE(left.size(), std::max<size_t>(keep, 1) + 1);
      }
    }
  }
}

}  // namespace
}  // namespace quern::checkpoint
