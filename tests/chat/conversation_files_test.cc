#include "chat/conversation_files.h"

#include <gtest/gtest.h>

#include "tests/data/compression.h"
#include "tests/data/files.h"

namespace quern::chat {
namespace {

namespace fs = std::filesystem;
using ::quern::test::contains;
using ::quern::test::error_of;
using ::quern::test::Folder;

constexpr const char* kLine = "{\"text\": \"one\"}\n";

std::vector<std::string> names(const std::vector<fs::path>& files) {
  std::vector<std::string> found;
  for (const fs::path& file : files) found.push_back(file.filename().string());
  return found;
}

std::vector<std::string> texts(const fs::path& file) {
  std::vector<std::string> found;
  for (const Conversation& record : read_conversations(file)) found.push_back(record.text);
  return found;
}

using Names = std::vector<std::string>;

TEST(ConversationFiles, ADirectoryHasTrainAndValid) {
  for (const char* held_out : {"valid.jsonl", "validation.jsonl", "valid.jsonl.gz"}) {
    const Folder folder;
    for (const char* name : {"train.jsonl", held_out, "test.jsonl", "notes.txt"}) folder.write(name, kLine);
    const ConversationFiles found = find_conversation_files({folder.path()});
    EXPECT_EQ(names(found.train), Names{"train.jsonl"});
    EXPECT_EQ(names(found.validation), Names{held_out});
  }
}

TEST(ConversationFiles, WithoutTrainAllFilesOfADirectoryAreTrainedOn) {
  const Folder folder;
  for (const char* name : {"b.jsonl", "a.jsonl.zst", "valid.jsonl", "c.json", ".d.jsonl"}) folder.write(name, kLine);
  const ConversationFiles found = find_conversation_files({folder.path()});
  EXPECT_EQ(names(found.train), (Names{"a.jsonl.zst", "b.jsonl"}));
  EXPECT_EQ(names(found.validation), Names{"valid.jsonl"});
}

TEST(ConversationFiles, FilesAreTakenAsTheyAre) {
  const Folder folder;
  const fs::path one = folder.write("one", kLine), two = folder.write("valid.jsonl", kLine);
  EXPECT_EQ(find_conversation_files({two, one}).train, (std::vector{two, one}));
}

TEST(ConversationFiles, ErrorsOfPaths) {
  const Folder folder;
  const auto error = [&] { return error_of([&] { find_conversation_files({folder.path()}); }); };
  EXPECT_TRUE(contains(error_of([] { find_conversation_files({}); }), "found none"));
  EXPECT_TRUE(contains(error_of([] { find_conversation_files({"/no/such"}); }), "/no/such: expected a file or folder"));
  EXPECT_TRUE(contains(error(), "expected train.jsonl or other .jsonl files, found none"));
  folder.write("valid.jsonl", kLine);
  EXPECT_TRUE(contains(error(), "expected train.jsonl or other .jsonl files, found none"));
  folder.write("train.jsonl", kLine);
  folder.write("train.jsonl.gz", kLine);
  EXPECT_TRUE(contains(error(), "expected one file to train on, found train.jsonl and train.jsonl.gz"));
}

TEST(ConversationFiles, ReadsLines) {
  const Folder folder;
  const std::string text = "\xEF\xBB\xBF{\"text\": \"one\"}\r\n\r\n  \n{\"text\": \"two\"}";
  EXPECT_EQ(texts(folder.write("a.jsonl", text)), (Names{"one", "two"}));
  EXPECT_EQ(texts(folder.write("a.jsonl.gz", data::test::gzip(text))), (Names{"one", "two"}));
  EXPECT_EQ(texts(folder.write("a.jsonl.zst", data::test::zstd(text))), (Names{"one", "two"}));
  EXPECT_EQ(texts(folder.write("b.jsonl", std::string("\xFF\xFE{\0\"\0t\0e\0x\0t\0\"\0:\0\"\0a\0\"\0}\0", 26))),
            Names{"a"});
}

TEST(ConversationFiles, VisitsUntilItIsEnough) {
  const Folder folder;
  size_t visited = 0;
  for_each_conversation(folder.write("a.jsonl", std::string(kLine) + kLine + "broken"), [&](Conversation&& record) {
    EXPECT_TRUE(record.where.ends_with(fmt::format("a.jsonl:{}", visited + 1)));
    return ++visited < 2;
  });
  EXPECT_EQ(visited, 2u);
}

TEST(ConversationFiles, ErrorsOfFiles) {
  const Folder folder;
  const auto error = [&](std::string_view text) {
    const fs::path file = folder.write("a.jsonl", text);
    return error_of([&] { read_conversations(file); });
  };
  EXPECT_TRUE(contains(error(""), "a.jsonl: expected one JSON object per line, found no lines"));
  EXPECT_TRUE(contains(error("\n \n"), "a.jsonl: expected one JSON object per line, found no lines"));
  EXPECT_TRUE(contains(error(std::string(kLine) + "\n{\"text\": }"), "a.jsonl:3:10: expected a JSON object"));
  EXPECT_TRUE(contains(error("{\"text\": \"\xff\"}"), "a.jsonl: byte 10: expected UTF-8, found byte 0xff"));
  EXPECT_TRUE(
      contains(error(std::string(70 << 20, ' ') + "{}"), "a.jsonl:1: expected a line of at most 67108864 bytes"));
  EXPECT_FALSE(error_of([&] { read_conversations(folder.path() / "none.jsonl"); }).empty());
}

}  // namespace
}  // namespace quern::chat
