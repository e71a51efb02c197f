// The JSON header of a safetensors file.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "checkpoint/safetensors.h"

namespace quern::safetensors {

// One entry as found in the header; the offsets have not been validated.
struct Entry {
  std::string name;
  Dtype dtype = Dtype::kF32;
  std::vector<size_t> shape;
  std::vector<uint64_t> offsets;  // begin, end
};

struct Header {
  Metadata metadata;
  std::vector<Entry> entries;
};

// Parses the JSON as a stream of events and accepts only what the format allows, so that a hostile header cannot make
// it nest or store anything else. Throws Error unless names are unique and every entry has its three fields.
Header parse_header(std::string_view json, std::string_view file);

// The JSON for these tensors, stored contiguously from offset 0.
std::string make_header(std::span<const Tensor> tensors, const Metadata& metadata);

}  // namespace quern::safetensors
