// Sequences that consist of several documents, such as short conversations that were packed together. Documents do not
// see each other: attention stays within one, and positions count from its start.
#pragma once

#include <algorithm>
#include <cstddef>

#include "core/columns.h"
#include "nn/micro_batch.h"

namespace quern::nn {

// Rows of one document, which are consecutive.
struct DocumentRows {
  size_t row, rows;  // counted over all sequences of the batch
  size_t position;   // of the first row, in its document
  size_t index;      // of the document in its sequence
};

// Calls visit(DocumentRows) for each document, or part of one, in rows `begin` ... `end` of the batch. Without the
// column of positions, every sequence is one document.
template <typename Visit>
void for_documents(const MicroBatch& batch, size_t begin, size_t end, Visit visit) {
  const int32_t* positions = batch.columns.find_ints(kPositionsColumn);
  size_t index = 0;
  for (size_t row = begin; row < end;) {
    const size_t last = std::min(end, (row / batch.T + 1) * batch.T);
    size_t next = last, position = batch.first_position + row % batch.T;
    if (positions != nullptr) {
      position = static_cast<size_t>(positions[row]);
      next = static_cast<size_t>(std::find(positions + row + 1, positions + last, 0) - positions);
    }
    visit(DocumentRows{row, next - row, position, index});
    index = next % batch.T == 0 ? 0 : index + 1;
    row = next;
  }
}

}  // namespace quern::nn
