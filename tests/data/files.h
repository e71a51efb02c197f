// Files for one test, and inputs gone wrong.
#pragma once

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <random>
#include <string>
#include <string_view>

#include "core/error.h"
#include "support/temporary_folder.h"

namespace quern::test {

// A temporary folder with files.
class Folder : public TemporaryFolder {
 public:
  std::filesystem::path write(std::string_view name, std::string_view content) const {
    std::filesystem::path file = path() / name;
    std::filesystem::create_directories(file.parent_path());
    std::ofstream(file, std::ios::binary) << content;
    return file;
  }
};

// The message of the Error that body() throws; empty if it throws none.
template <typename Body>
std::string error_of(Body body) {
  try {
    body();
  } catch (const Error& error) {
    return error.what();
  }
  return {};
}

inline ::testing::AssertionResult contains(std::string_view text, std::string_view part) {
  if (text.find(part) != std::string_view::npos) return ::testing::AssertionSuccess();
  return ::testing::AssertionFailure() << "\"" << text << "\" does not contain \"" << part << "\"";
}

// One to four of: another byte, a flipped bit, a byte less or more, a cut, a doubled piece, a number of extreme bytes.
inline std::string mutated(std::string text, std::mt19937& random) {
  const auto below = [&random](size_t bound) { return bound == 0 ? 0 : random() % bound; };
  for (size_t change = 0, changes = 1 + below(4); change < changes; ++change) {
    const size_t at = below(text.size());
    switch (text.empty() ? 3 : below(7)) {
      case 0:
        text[at] = static_cast<char>(below(256));
        break;
      case 1:
        text[at] = static_cast<char>(text[at] ^ (1 << below(8)));
        break;
      case 2:
        text.erase(at, 1 + below(8));
        break;
      case 3:
        text.insert(at, 1, static_cast<char>(below(256)));
        break;
      case 4:
        text.resize(at);
        break;
      case 5:
        text.insert(at, text.substr(below(text.size()), below(64)));
        break;
      default:
        for (size_t i = at; i < text.size() && i < at + 4; ++i) text[i] = below(2) == 0 ? '\xff' : '\0';
    }
  }
  return text;
}

}  // namespace quern::test
