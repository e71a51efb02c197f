// Reads a growing metrics.jsonl.
#pragma once

#include <sys/stat.h>

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>

#include "dashboard/run_data.h"

namespace quern::dashboard {

// Reads what was added since the last look, complete lines only: a last line without a line break is being written, or
// was cut short by a kill, and waits. A file that was replaced or became shorter, as a run does that resumes or rolls
// back, is read anew. One caller at a time.
class Follower {
 public:
  // Lines longer than this are damaged: one about the health of GPT-2's 148 tensors has 18 kB.
  static constexpr size_t kMaxLineBytes = size_t{8} << 20;

  explicit Follower(std::filesystem::path file) : path_(std::move(file)) {}
  Follower(const Follower&) = delete;
  Follower& operator=(const Follower&) = delete;
  ~Follower() { close(); }

  // Returns whether data() has changed. A file that does not exist, or cannot be read, is no error: it may be written
  // later, and what was read stays.
  bool update();
  const RunData& data() const { return *data_; }
  bool is_there() const { return there_; }  // at the last look

 private:
  void close();
  bool is_new(const struct stat& status) const;
  bool read_to_end();
  bool take_lines();

  std::filesystem::path path_;
  int descriptor_ = -1;
  bool there_ = false;
  uint64_t offset_ = 0;   // up to where the file was read
  uint64_t skipped_ = 0;  // bytes of a line that is too long
  std::string rest_;      // the beginning of a line
  std::unique_ptr<RunData> data_ = std::make_unique<RunData>();
};

}  // namespace quern::dashboard
