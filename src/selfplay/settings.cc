#include "selfplay/settings.h"

#include "selfplay/expect_between.h"

namespace quern::selfplay {
namespace {

constexpr uint32_t kMaxSimulations =
    1000000000;  // visits are 32-bit, and those of a subtree that is reused come on top

}  // namespace

void check(const SearchSettings& settings) {
  expect_between("c_puct", settings.c_puct, 0, 1000);
  expect_between("fpu_reduction", settings.fpu_reduction, -2, 2);
}

void check(const PlaySettings& settings) {
  check(settings.search);
  expect_between("simulations", settings.simulations, 1, kMaxSimulations);
  expect_between("cheap_simulations", settings.cheap_simulations, 1, kMaxSimulations);
  expect_between("full_share", settings.full_share, 0, 1);
  expect_between("noise_share", settings.noise_share, 0, 1);
  expect_between("noise_alpha", settings.noise_alpha, 0.001f, 1000);
  expect_between("temperature", settings.temperature, 0.01f, 100);
  expect_between("opening_share", settings.opening_share, 0, 1);
  expect_between("opening_moves", settings.opening_moves, 0, 100000);
  expect_between("winning_share", settings.winning_share, 0, 1 - settings.opening_share);
  expect_between("resign_below", settings.resign_below, -1, 1);
  expect_between("resign_share", settings.resign_share, 0, 1);
  expect_between("root_value_share", settings.root_value_share, 0, 1);
}

}  // namespace quern::selfplay
