#include "report/output.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <memory>

namespace quern::report {
namespace {

using File = std::unique_ptr<std::FILE, int (*)(std::FILE*)>;

// However the stream is buffered, a write that fails is remembered, is no exception, and is not tried again at the end.
TEST(Output, FailureIsRecordedWithoutOtherEffects) {
  for (const int mode : {_IOFBF, _IOLBF, _IONBF}) {
    const File file(std::fopen("/dev/full", "w"), std::fclose);
    ASSERT_NE(file, nullptr);
    std::setvbuf(file.get(), nullptr, mode, 4096);
    Output out(file.get());
    EXPECT_EQ(out.error(), 0);
    out.print("a line with {}\n", 1);
    out.flush();
    out.print("{}\n", std::string(10'000, 'x'));
    EXPECT_EQ(out.error(), ENOSPC) << mode;
    EXPECT_EQ(std::ferror(file.get()), 0) << mode;
    EXPECT_EQ(std::fflush(file.get()), 0) << mode;
  }
}

TEST(Output, WritesAgainOnceThatIsPossible) {
  std::signal(SIGPIPE, SIG_IGN);
  int ends[2];
  ASSERT_EQ(pipe(ends), 0);
  const File file(fdopen(ends[1], "w"), std::fclose);
  Output out(file.get());
  close(ends[0]);
  out.print("lost\n");
  out.flush();
  EXPECT_EQ(out.error(), EPIPE);
  ASSERT_EQ(pipe(ends), 0);
  ASSERT_GE(dup2(ends[1], fileno(file.get())), 0);
  out.print("found\n");
  out.flush();
  char text[16] = {};
  EXPECT_EQ(read(ends[0], text, sizeof text), 6);
  EXPECT_STREQ(text, "found\n");
  EXPECT_EQ(out.error(), EPIPE) << "the first failure";
  close(ends[0]);
  close(ends[1]);
  std::signal(SIGPIPE, SIG_DFL);
}

}  // namespace
}  // namespace quern::report
