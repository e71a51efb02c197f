#include "formats/generation_config.h"

#include <gtest/gtest.h>

#include "core/files.h"
#include "core/temporary_folder.h"
#include "support/message.h"

namespace quern::formats {
namespace {

using Tokens = std::vector<int32_t>;

class GenerationConfig : public ::testing::Test {
 protected:
  Tokens read(const std::string& text, size_t vocabulary = 100) {
    write_file(file_, text);
    warnings_.clear();
    return read_end_tokens(file_, vocabulary, [&](const std::string& warning) { warnings_.push_back(warning); });
  }
  std::string message(const std::string& text) {
    const std::string found = test::message_of([&] { read(text); });
    const std::string start = "[run] " + file_.string() + ": ";
    return found.starts_with(start) ? found.substr(start.size()) : found;
  }

  TemporaryFolder folder_;
  std::filesystem::path file_ = folder_ / "generation_config.json";
  std::vector<std::string> warnings_;
};

TEST_F(GenerationConfig, EndTokensAreOneIdOrAList) {
  EXPECT_EQ(read(R"({"eos_token_id": 7})"), Tokens{7});
  EXPECT_EQ(read(R"({"bos_token_id": 1, "eos_token_id": [99, 0, 7], "temperature": 0.6})"), (Tokens{99, 0, 7}));
  EXPECT_TRUE(warnings_.empty());
}

TEST_F(GenerationConfig, ThereMayBeNone) {
  EXPECT_EQ(read_end_tokens(folder_ / "missing.json", 100, {}), Tokens{});
  for (const char* text : {"{}", R"({"eos_token_id": null})", R"({"eos_token_id": []})"}) {
    EXPECT_EQ(read(text), Tokens{}) << text;
  }
}

// Files of models with another vocabulary: no text contains these.
TEST_F(GenerationConfig, IdsOutsideTheVocabularyAreIgnoredWithAWarning) {
  EXPECT_EQ(read(R"({"eos_token_id": [99, 100, 2147483647]})"), Tokens{99});
  ASSERT_EQ(warnings_.size(), 2u);
  EXPECT_EQ(warnings_[0], file_.string() + ": eos_token_id: ignored 100, which is not in the vocabulary of 100");
}

TEST_F(GenerationConfig, AnythingElseIsAnError) {
  const std::string expected = "eos_token_id: expected a token id or a list of token ids, found ";
  EXPECT_EQ(message(R"({"eos_token_id": -1})"), expected + "'-1'");
  EXPECT_EQ(message(R"({"eos_token_id": 2147483648})"), expected + "'2147483648'");
  EXPECT_EQ(message(R"({"eos_token_id": 1e3})"), expected + "'1000.0'");
  EXPECT_EQ(message(R"({"eos_token_id": [1, true]})"), expected + "'[1,true]'");
  EXPECT_EQ(message(R"({"eos_token_id": {"a": 1}})"), expected + R"('{"a":1}')");
  EXPECT_EQ(message(R"({"eos_token_id": [)"), "expected JSON, found something else");
  EXPECT_EQ(message(std::string(1000, '[') + std::string(1000, ']')), "expected JSON, found something else");
  EXPECT_NE(message("[1]").find("expected an object"), std::string::npos);
  std::string many = R"({"eos_token_id": [1)";
  for (int i = 0; i < 256; ++i) many += ",1";
  EXPECT_NE(message(many + "]}").find("expected at most 256 token ids"), std::string::npos);
  EXPECT_NE(message("{}" + std::string(size_t{1} << 20, ' ')), "no error");
}

}  // namespace
}  // namespace quern::formats
