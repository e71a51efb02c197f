#include <gtest/gtest.h>

#include <cstdio>
#include <exception>

#include "kernels/target.h"

int main(int argc, char** argv) {
  ::testing::InitGoogleTest(&argc, argv);
  try {
    quern::kernels::select_target_from_environment();
  } catch (const std::exception& error) {
    std::fprintf(stderr, "%s\n", error.what());
    return 2;
  }
  return RUN_ALL_TESTS();
}
