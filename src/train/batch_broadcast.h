// data.broadcast: rank 0 reads the sequences of all ranks, and sends the others theirs.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "data/batch_reader.h"
#include "dist/communicator.h"
#include "parallel/step_cut.h"

namespace quern::train {

// At the beginning of every step: 8 bytes per token of text, which takes much less time than the gradients do.
class BatchBroadcast {
 public:
  struct Options {
    size_t context = 0;
    std::vector<StepPart> parts = {};  // this rank's micro-batches
    uint32_t first_step = 0;
    data::StreamPosition position = {};  // of that step, for sources that need it
    size_t sources = 0;                  // of a position
  };

  // `ranks` and `source`, of text, must outlive this object. Only rank 0 reads from the source.
  BatchBroadcast(dist::Communicator& ranks, const StepCut& cut, const data::BatchSource& source, Options options);

  // Between steps, by all ranks. Sends or receives the batches of the next step. Error from the source on rank 0.
  void next_step();
  // Not on rank 0: a micro-batch of this step, until the next one.
  data::Batch* batch(size_t index) { return &batches_[index]; }

 private:
  // What a rank gets: the number of targets that count, the position after the step, and its tokens and targets.
  struct Message {
    std::vector<uint64_t> numbers;
    std::vector<int32_t> tokens, targets;
  };

  void read(size_t rank);
  void send();
  void receive();
  void take();

  dist::Communicator& ranks_;
  StepCut cut_;
  Options options_;
  uint32_t step_;
  std::unique_ptr<data::BatchReader> reader_;  // rank 0
  data::Batch read_;                           // rank 0: the sequences of one rank
  std::vector<Message> messages_;              // rank 0: of every rank; otherwise one
  std::vector<data::Batch> batches_;
  std::vector<dist::Communicator::Request> requests_;
};

}  // namespace quern::train
