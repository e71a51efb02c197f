// Drives the tokenizers by hand, for scripts/check_tokenizer_hf.py and for measuring. Input is standard input.
//   tokenizer_tool train byte|char|bpe SIZE OUT.json    learns from the input (SIZE: ids of bpe, ignored by the others)
//   tokenizer_tool encode TOKENIZER.json                prints the ids
//   tokenizer_tool document TOKENIZER.json              the same, with special tokens as ordinary text
//   tokenizer_tool decode TOKENIZER.json                prints the bytes of ids
//   tokenizer_tool split [gpt2|digits|llama3|qwen2]     prints the length of each piece, in bytes
//   tokenizer_tool lines TOKENIZER.json                 input: texts in hexadecimal, one per line; prints, for each,
//   the
//                                                       ids, ";", the ids of the document, ";", the decoded ids in
//                                                       hexadecimal
//   tokenizer_tool parts TOKENIZER.json OUT.json        takes the tokenizer apart, puts it together again and saves it
//   tokenizer_tool info TOKENIZER.json                  prints the size of the vocabulary, begin_of_text and
//   end_of_text
// Times go to standard error.
#include <chrono>
#include <cstdio>
#include <iostream>
#include <iterator>

#include "core/error.h"
#include "data/bpe_trainer.h"
#include "data/byte_tokenizer.h"
#include "data/char_tokenizer.h"

namespace quern::data {
namespace {

template <typename Body>
auto timed(const char* what, size_t bytes, Body body) {
  const auto start = std::chrono::steady_clock::now();
  auto result = body();
  const std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - start;
  fmt::print(stderr, "{}: {:.3f} s, {:.1f} MB/s\n", what, seconds.count(),
             static_cast<double>(bytes) / seconds.count() / 1e6);
  return result;
}

std::unique_ptr<Tokenizer> train(std::string_view kind, int32_t size, std::string_view text) {
  if (kind == "byte") return std::make_unique<ByteTokenizer>();
  if (kind == "char") return CharTokenizer::from_text(text, "input");
  BpeTrainer trainer;
  timed("count", text.size(), [&] { return trainer.add(text), 0; });
  return trainer.train({.vocabulary_size = size, .minimum_count = 1, .added_tokens = {"<|endoftext|>"}});
}

void encode(const Tokenizer& tokenizer, std::string_view text) {
  const std::vector<int32_t> ids = timed("encode cold", text.size(), [&] { return tokenizer.encode(text); });
  timed("encode warm", text.size(), [&] { return tokenizer.encode(text); });
  for (const int32_t id : ids) fmt::print("{}\n", id);
}

void encode_document(const Tokenizer& tokenizer, std::string_view text) {
  std::vector<int32_t> ids;
  tokenizer.encode_document_to(text, ids);
  for (const int32_t id : ids) fmt::print("{}\n", id);
}

void decode(const Tokenizer& tokenizer) {
  const std::vector<int32_t> ids{std::istream_iterator<int32_t>(std::cin), {}};
  std::cout << tokenizer.decode(ids);
}

std::string from_hex(std::string_view line) {
  std::string bytes;
  for (size_t i = 0; i + 1 < line.size(); i += 2) {
    bytes += static_cast<char>(std::stoi(std::string(line.substr(i, 2)), nullptr, 16));
  }
  return bytes;
}

void encode_lines(const Tokenizer& tokenizer) {
  std::vector<int32_t> document;
  for (std::string line; std::getline(std::cin, line);) {
    const std::string text = from_hex(line);
    const std::vector<int32_t> ids = tokenizer.encode(text);
    document.clear();
    tokenizer.encode_document_to(text, document);
    fmt::print("{};{};", fmt::join(ids, " "), fmt::join(document, " "));
    for (const char byte : tokenizer.decode(document)) fmt::print("{:02x}", static_cast<unsigned char>(byte));
    fmt::print("\n");
  }
}

PretokenizerKind kind_of(std::string_view name) {
  if (name == "gpt2") return PretokenizerKind::kGpt2;
  if (name == "digits") return PretokenizerKind::kDigitsGpt2;
  if (name == "llama3") return PretokenizerKind::kLlama3;
  if (name == "qwen2") return PretokenizerKind::kQwen2;
  throw Error("[tokenizer_tool] split: expected gpt2, digits, llama3 or qwen2, found {}", name);
}

void print_info(const Tokenizer& tokenizer) {
  fmt::print("{} {} {}\n", tokenizer.vocabulary_size(), tokenizer.begin_of_text().value_or(-1),
             tokenizer.end_of_text().value_or(-1));
}

void split(PretokenizerKind kind, std::string_view text) {
  Pretokenizer pretokenizer(kind);
  std::vector<size_t> lengths = timed("split", text.size(), [&] {
    std::vector<size_t> found;
    pretokenizer.start(text);
    for (std::string_view piece; pretokenizer.next(piece);) found.push_back(piece.size());
    return found;
  });
  for (const size_t length : lengths) fmt::print("{}\n", length);
}

int run(const std::vector<std::string>& words) {
  const std::string command = words.empty() ? "" : words[0];
  if (command == "decode" && words.size() == 2) return decode(*Tokenizer::load(words[1])), 0;
  if (command == "lines" && words.size() == 2) return encode_lines(*Tokenizer::load(words[1])), 0;
  if (command == "info" && words.size() == 2) return print_info(*Tokenizer::load_from(words[1])), 0;
  if (command == "parts" && words.size() == 3) {
    return make_tokenizer(Tokenizer::load(words[1])->parts(), words[1])->save(words[2]), 0;
  }
  const std::string text{std::istreambuf_iterator<char>(std::cin), {}};
  if (command == "train" && words.size() == 4) {
    timed("train", text.size(), [&] { return train(words[1], std::stoi(words[2]), text); })->save(words[3]);
  } else if (command == "encode" && words.size() == 2) {
    encode(*timed("load", 0, [&] { return Tokenizer::load(words[1]); }), text);
  } else if (command == "document" && words.size() == 2) {
    encode_document(*Tokenizer::load(words[1]), text);
  } else if (command == "split" && words.size() <= 2) {
    split(kind_of(words.size() == 2 ? words[1] : "gpt2"), text);
  } else {
    throw Error("[tokenizer_tool] expected a command; see tests/data/tokenizer_tool.cc");
  }
  return 0;
}

}  // namespace
}  // namespace quern::data

int main(int argc, char** argv) try {
  return quern::data::run({argv + 1, argv + argc});
} catch (const std::exception& error) {
  std::cerr << error.what() << '\n';
  return 2;
}
