#include "core/steady_file.h"

#include <gtest/gtest.h>

#include <chrono>
#include <fstream>

#include "support/message.h"
#include "support/temporary_folder.h"

namespace quern {
namespace {

namespace fs = std::filesystem;

class SteadyFileTest : public ::testing::Test {
 protected:
  SteadyFileTest() { write("0123456789"); }
  void write(const char* text) { std::ofstream(path_, std::ios::binary) << text; }
  std::string reading(const SteadyFile& file) {
    std::string out;
    return test::message_of([&] { file.read(0, file.size(), out); });
  }

  test::TemporaryFolder folder_;
  fs::path path_ = folder_ / "text";
};

TEST_F(SteadyFileTest, ReadsAnyPart) {
  const SteadyFile file(path_);
  EXPECT_EQ(file.size(), 10u);
  std::string out = "something that is longer";
  file.read(0, 10, out);
  EXPECT_EQ(out, "0123456789");
  file.read(3, 7, out);
  EXPECT_EQ(out, "3456");
  file.read(10, 10, out);
  EXPECT_EQ(out, "");
}

TEST_F(SteadyFileTest, ChangedFileIsAnError) {
  const SteadyFile file(path_);
  fs::resize_file(path_, 4);
  EXPECT_EQ(reading(file), "[files] " + path_.string() + ": changed while it was in use: expected 10 bytes, found 4");
  write("0123456789ab");
  EXPECT_NE(reading(file).find("expected 10 bytes, found 12"), std::string::npos);
  write("9876543210");  // as long as before
  fs::last_write_time(path_, fs::last_write_time(path_) + std::chrono::seconds(5));
  EXPECT_NE(reading(file).find("expected no modification"), std::string::npos);
  fs::remove(path_);
  EXPECT_NE(reading(file).find("cannot open"), std::string::npos);
}

TEST_F(SteadyFileTest, IrregularFileIsAnError) {
  EXPECT_NE(test::message_of([&] { SteadyFile(folder_ / "none"); }).find("cannot open"), std::string::npos);
  EXPECT_NE(test::message_of([&] { SteadyFile(folder_.path()); }).find("found a folder"), std::string::npos);
}

}  // namespace
}  // namespace quern
