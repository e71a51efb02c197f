#include "report/tensorboard.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <chrono>
#include <system_error>
#include <utility>

#include "core/crc32c.h"
#include "core/error.h"
#include "core/host_name.h"
#include "report/histogram.h"

namespace quern::report {
namespace {

namespace fs = std::filesystem;

// Field numbers from event.proto, summary.proto and histogram.proto in TensorBoard's source.
enum EventField : uint32_t { kWallTime = 1, kStep = 2, kFileVersion = 3, kSummary = 5, kSessionLog = 7 };
enum SummaryField : uint32_t { kValue = 1 };
enum ValueField : uint32_t { kTag = 1, kSimpleValue = 2, kHisto = 5 };
enum HistogramField : uint32_t { kMin = 1, kMax, kNum, kSum, kSumSquares, kBucketLimit, kBucket };
enum SessionLogField : uint32_t { kStatus = 1 };
constexpr uint64_t kStatusStart = 1;

constexpr std::string_view kPrefix = "events.out.tfevents.";
constexpr double kMiB = 1 << 20;

double wall_time() {
  return std::chrono::duration<double>(std::chrono::system_clock::now().time_since_epoch()).count();
}

ProtoMessage event() {
  ProtoMessage message;
  message.real(kWallTime, wall_time());
  return message;
}

void add_scalar(ProtoMessage& summary, std::string_view tag, double value) {
  summary.message(kValue, ProtoMessage().text(kTag, tag).real32(kSimpleValue, static_cast<float>(value)));
}

void add_memory(ProtoMessage& summary, const train::MemoryUse& memory) {
  for (const auto& [name, member] : train::kMemoryFields) {
    add_scalar(summary, fmt::format("memory/{}", name), static_cast<double>(memory.*member) / kMiB);
  }
}

ProtoMessage to_message(const Histogram& h) {
  ProtoMessage message;
  message.real(kMin, h.min).real(kMax, h.max).real(kNum, h.count).real(kSum, h.sum).real(kSumSquares, h.squares);
  message.reals(kBucketLimit, h.limits).reals(kBucket, h.counts);
  return message;
}

// A CRC of data that contains CRCs is weak, so TFRecord stores it rotated and offset by a constant.
uint32_t masked_crc(std::string_view bytes) {
  const uint32_t crc = crc32c(bytes);
  return ((crc >> 15) | (crc << 17)) + 0xA282EAD8u;
}

std::string little_endian(uint64_t value, int size) {
  std::string bytes;
  for (int i = 0; i < size; ++i) bytes += static_cast<char>(value >> (8 * i));
  return bytes;
}

// TensorBoard reads files in the order of their names, which start with a time in seconds. Returns a time later than
// those of all existing files, since two processes may start within a second and clocks can be set back.
uint64_t time_for_name(const fs::path& folder) {
  auto time = static_cast<uint64_t>(wall_time());
  for (const fs::directory_entry& entry : fs::directory_iterator(folder)) {
    const std::string name = entry.path().filename().string();
    if (!name.starts_with(kPrefix)) continue;
    uint64_t found = 0;
    std::from_chars(name.data() + kPrefix.size(), name.data() + name.size(), found);
    if (found < UINT32_MAX)
      time = std::max(time, found + 1);  // larger ones have more digits; Quern does not write them
  }
  return time;
}

}  // namespace

TensorBoard::TensorBoard(fs::path folder, uint64_t interval, bool enabled)
    : folder_(std::move(folder)), interval_(interval), enabled_(enabled) {}

void TensorBoard::on_start(const train::RunStart& start) {
  first_step_ = start.first_step;
  last_step_ = start.steps;
}

void TensorBoard::on_settings(const train::SettingsReport& settings) {
  if (unlogged_) write_step(*unlogged_);
  enabled_ = settings.config.log.tensorboard;
  interval_ = settings.config.log.interval;
  last_step_ = settings.config.train.steps;
  if (!file_.is_open()) first_step_ = settings.first_step;
}

void TensorBoard::on_step(const train::StepReport& report) {
  if (!enabled_) return;
  unlogged_ = report;
  const bool due = report.step == last_step_ || (interval_ > 0 && report.step % interval_ == 0);
  if (due || report.skipped()) write_step(report);
}

void TensorBoard::write_step(const train::StepReport& report) {
  ProtoMessage summary;
  add_scalar(summary, "loss/train", report.loss);
  add_scalar(summary, "optimizer/rate", report.rate);
  add_scalar(summary, "optimizer/gradient_norm", report.gradient_norm);
  add_scalar(summary, "speed/tokens_per_s", static_cast<double>(report.tokens) / report.seconds);
  if (report.memory) add_memory(summary, *report.memory);
  write_summary(report.step, summary);
  unlogged_.reset();
}

// As in metrics.jsonl, writes the last step of a process that was asked to stop.
void TensorBoard::on_end(const train::RunEnd&) {
  if (unlogged_) write_step(*unlogged_);
}

void TensorBoard::on_health(const train::HealthReport& report) {
  ProtoMessage summary;
  for (const train::TensorHealth& tensor : report.tensors) {
    add_scalar(summary, fmt::format("gradient_norm/{}", tensor.name), tensor.norm);
    add_scalar(summary, fmt::format("update_ratio/{}", tensor.name), tensor.update_ratio);
  }
  write_summary(report.step, summary);
}

void TensorBoard::on_incident(const train::IncidentReport& report) {
  if (report.action != train::Policy::kRollback) return;
  unlogged_.reset();
  if (file_.is_open()) write_start(report.resumed_after + 1);
}

void TensorBoard::on_validation(uint64_t step, double loss) {
  ProtoMessage summary;
  add_scalar(summary, "loss/validation", loss);
  write_summary(step, summary);
}

void TensorBoard::on_weights(uint64_t step, std::span<const train::NamedValues> weights) {
  ProtoMessage summary;
  for (const train::NamedValues& tensor : weights) {
    const Histogram histogram = make_histogram(tensor.values);
    if (histogram.count == 0) continue;
    ProtoMessage value;
    value.text(kTag, fmt::format("weights/{}", tensor.name)).message(kHisto, to_message(histogram));
    summary.message(kValue, value);
  }
  write_summary(step, summary);
}

void TensorBoard::open() {
  std::error_code code;
  fs::create_directories(folder_, code);
  if (code) throw Error("[tensorboard] {}: cannot be created: {}", folder_.string(), code.message());
  path_ = folder_ / fmt::format("{}{:010}.{}.{}", kPrefix, time_for_name(folder_), host_name(), getpid());
  file_.open(path_, std::ios::binary | std::ios::app);
  if (!file_) throw Error("[tensorboard] {}: cannot be written", path_.string());
  ProtoMessage version = event();
  write_record(version.text(kFileVersion, "brain.Event:2"));
  write_start(first_step_);
}

// This record makes TensorBoard discard its data for that step and later ones.
void TensorBoard::write_start(uint64_t first_step) {
  ProtoMessage start = event();
  start.integer(kStep, first_step).message(kSessionLog, ProtoMessage().integer(kStatus, kStatusStart));
  write_record(start);
}

void TensorBoard::write_summary(uint64_t step, const ProtoMessage& summary) {
  if (!enabled_) return;
  if (!file_.is_open()) open();
  ProtoMessage message = event();
  write_record(message.integer(kStep, step).message(kSummary, summary));
}

void TensorBoard::write_record(const ProtoMessage& event) {
  const std::string& data = event.bytes();
  const std::string length = little_endian(data.size(), 8);
  const std::string record = length + little_endian(masked_crc(length), 4) + data + little_endian(masked_crc(data), 4);
  errno = 0;
  if (file_.write(record.data(), static_cast<std::streamsize>(record.size())) && file_.flush()) return;
  throw Error("[tensorboard] {}: cannot write a record of {} bytes: {}", path_.string(), record.size(),
              errno == 0 ? "unknown reason" : std::generic_category().message(errno));
}

}  // namespace quern::report
