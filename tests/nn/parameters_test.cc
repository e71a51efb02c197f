#include "nn/parameters.h"

#include <vector>

#include "support/support.h"

namespace quern {
namespace {

TEST(ParameterLayout, SegmentsCoverEveryParameterOnce) {
  const ParameterLayout layout({.layers = 2, .heads = 2, .width = 100, .context = 8, .vocabulary = 5000});
  std::vector<int> covered(layout.size(), 0);
  for (const Segment& segment : layout.segments()) {
    for (size_t i = 0; i < segment.size; ++i) ++covered[segment.offset + i];
  }
  for (const TensorInfo& tensor : layout.tensors()) {
    for (size_t i = 0; i < tensor.size; ++i) ASSERT_EQ(covered[tensor.offset + i], 1) << tensor.name << " " << i;
  }
}

TEST(ParameterLayout, SegmentsAreWholeRowsOfOneTensor) {
  const ParameterLayout layout({.layers = 1, .heads = 2, .width = 100, .context = 8, .vocabulary = 5000});
  size_t at = 0;
  for (size_t t = 0; t < layout.tensors().size(); ++t) {
    const TensorInfo& tensor = layout.tensors()[t];
    ASSERT_EQ(tensor.first_segment, at);
    const size_t width = tensor.shape.size() > 1 ? tensor.shape[1] : tensor.size;
    for (size_t i = 0; i < tensor.segments; ++i, ++at) {
      const Segment& segment = layout.segments()[at];
      EXPECT_EQ(segment.tensor, t);
      EXPECT_EQ(segment.offset, tensor.offset + segment.row * width);
      EXPECT_EQ(segment.size, segment.rows * width);
      EXPECT_EQ(segment.row % kSegmentRows, 0u);  // panels of packed weights are not shared
      EXPECT_LE(segment.size, std::max(kSegmentFloats, kSegmentRows * width));
    }
  }
  EXPECT_EQ(at, layout.segments().size());
  EXPECT_GT(layout.tensors()[0].segments, 5u) << "the token table must be cut for this test to mean something";
}

}  // namespace
}  // namespace quern
