#include "nn/parameter_table.h"

#include <vector>

#include "nn/models/language_model.h"
#include "support/support.h"

namespace quern::nn {
namespace {

TEST(ParameterTable, SegmentsCoverEveryParameterOnce) {
  const Declaration model = declare({.layers = 2, .heads = 2, .width = 100, .context = 8, .vocabulary = 5000});
  const ParameterTable& layout = model.parameters;
  std::vector<int> covered(layout.size(), 0);
  for (const Segment& segment : layout.segments()) {
    for (size_t i = 0; i < segment.size; ++i) ++covered[segment.offset + i];
  }
  for (const Parameter& tensor : layout.all()) {
    for (size_t i = 0; i < tensor.size; ++i) ASSERT_EQ(covered[tensor.offset + i], 1) << tensor.name << " " << i;
  }
}

TEST(ParameterTable, SegmentsAreWholeRowsOfOneTensor) {
  const Declaration model = declare({.layers = 1, .heads = 2, .width = 100, .context = 8, .vocabulary = 5000});
  const ParameterTable& layout = model.parameters;
  size_t at = 0;
  for (size_t t = 0; t < layout.all().size(); ++t) {
    const Parameter& tensor = layout.all()[t];
    ASSERT_EQ(tensor.first_segment, at);
    const size_t width = tensor.shape.size() > 1 ? tensor.shape[1] : tensor.size;
    for (size_t i = 0; i < tensor.segments; ++i, ++at) {
      const Segment& segment = layout.segments()[at];
      EXPECT_EQ(segment.parameter, static_cast<ParameterId>(t));
      EXPECT_EQ(segment.offset, tensor.offset + segment.row * width);
      EXPECT_EQ(segment.size, segment.rows * width);
      EXPECT_EQ(segment.row % kSegmentRows, 0u);  // panels of packed weights are not shared
      EXPECT_LE(segment.size, std::max(kSegmentFloats, kSegmentRows * width));
    }
  }
  EXPECT_EQ(at, layout.segments().size());
  EXPECT_GT(layout.all()[0].segments, 5u) << "the token table must be cut for this test to mean something";
}

}  // namespace
}  // namespace quern::nn
