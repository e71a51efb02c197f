#include "cli/data_batches.h"

#include <fmt/format.h>

#include <memory>
#include <span>
#include <vector>

#include "config/history.h"
#include "config/run_folder.h"
#include "core/error.h"
#include "core/json.h"
#include "dataset/dataset.h"

namespace quern::cli {
namespace {

using Json = nlohmann::ordered_json;

std::vector<int32_t> part_of(std::span<const int32_t> column, size_t row, size_t width) {
  const std::span<const int32_t> part = column.subspan(row * width, width);
  return {part.begin(), part.end()};
}

Json rows_of(const data::Batch& batch, const std::vector<ColumnSpec>& columns) {
  Json rows = Json::array();
  for (size_t row = 0; row < batch.sequences; ++row) {
    Json object;
    for (const ColumnSpec& column : columns) {
      object[column.name] = part_of(batch.columns.ints(column.name), row, column.width);
    }
    rows.push_back(std::move(object));
  }
  return rows;
}

}  // namespace

int show_batches(const std::string& run, uint64_t first, uint64_t steps) {
  const train::RunConfig config = train::read_config(run);
  if (!config.history.empty()) throw Error("data batches: expected a run whose settings never changed, found changes");
  const train::Dataset dataset =
      train::open_dataset(config, std::filesystem::path(run) / train::kTokenizerFile, {.resumed = true});
  if (first > config.train.steps) {
    throw Error("data batches: --first: expected a step from 1 to {}, found {}", config.train.steps, first);
  }
  if (dataset.has_position()) throw Error("data batches: not possible for streams and mixtures");
  const std::unique_ptr<data::BatchSource> batches = train::training_batches(config, dataset);
  const std::unique_ptr<data::BatchReader> reader = batches->reader({});
  data::Batch batch;
  batch.sequences = static_cast<uint32_t>(config.sequences_per_step());
  batch.columns = Columns(batches->columns(), batch.sequences);
  for (uint64_t step = first; step < first + steps && step <= config.train.steps; ++step) {
    batch.step = static_cast<uint32_t>(step - 1);
    reader->read(batch);
    fmt::print("{}\n", json_text(Json{{"step", step}, {"rows", rows_of(batch, batches->columns())}}));
  }
  return 0;
}

}  // namespace quern::cli
