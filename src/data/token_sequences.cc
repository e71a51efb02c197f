#include "data/token_sequences.h"

namespace quern::data {
namespace {

class TokenReader final : public SequenceReader {
 public:
  TokenReader(const TrainingBatches& batches, const SourcePosition& position)
      : batches_(batches), position_(position) {}

  void next(uint32_t step, uint32_t sequence, int32_t* inputs, int32_t* targets) override {
    if (batches_.options().order == Order::kRandom) {
      batches_.fill(step, sequence, 1, inputs, targets);
    } else {
      batches_.fill_block(position_.drawn, inputs, targets);
    }
    ++position_.drawn;
  }

  SourcePosition position() const override { return position_; }

 private:
  const TrainingBatches& batches_;
  SourcePosition position_;
};

}  // namespace

std::unique_ptr<SequenceReader> TokenSequences::reader(const SourcePosition& position) const {
  return std::make_unique<TokenReader>(batches_, position);
}

}  // namespace quern::data
