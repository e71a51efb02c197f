#include "kernels/target.h"

#include "core/error.h"
#include "support/support.h"

namespace quern::kernels {
namespace {

TEST(Target, ScalarIsAlwaysAvailableAndLast) {
  const std::vector<Target> targets = available_targets();
  ASSERT_FALSE(targets.empty());
  EXPECT_EQ(targets.back().name, "scalar");
  EXPECT_FALSE(targets.back().fma);
}

TEST(Target, SelectedTargetIsTheCurrentOne) {
  size_t visited = 0;
  test::for_each_target([&](const Target& target) {
    EXPECT_EQ(current_target().name, target.name);
    EXPECT_EQ(current_target().fma, target.fma);
    ++visited;
  });
  EXPECT_GE(visited, 1u);
}

TEST(Target, UnknownNameIsAnErrorThatListsTheKnownOnes) {
  const std::string before = current_target().name;
  try {
    select_target("mmx");
    FAIL() << "expected an Error";
  } catch (const Error& error) {
    EXPECT_NE(std::string(error.what()).find("scalar"), std::string::npos) << error.what();
    EXPECT_NE(std::string(error.what()).find("found 'mmx'"), std::string::npos) << error.what();
  }
  EXPECT_EQ(current_target().name, before);
}

}  // namespace
}  // namespace quern::kernels
