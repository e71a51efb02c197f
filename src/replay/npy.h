// The header of a .npy file: dtype and shape of the array that follows it.
#pragma once

#include <cstddef>
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "replay/schema.h"

namespace quern::replay {

struct NpyHeader {
  DType dtype = DType::kF32;
  std::vector<size_t> shape;
};

// Version 1.0, as numpy.save writes it; 64 bytes or a multiple.
std::string npy_header(const NpyHeader& header);

// Reads the header, versions 1.0 to 3.0, through `read`. Error that starts with `where` when it is invalid, or
// describes an array that cannot be a column: an unsupported type or byte order, or Fortran order. Safe for any bytes.
NpyHeader read_npy_header(const std::function<void(std::span<std::byte>)>& read, std::string_view where);

}  // namespace quern::replay
