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

// Takes the header, versions 1.0 to 3.0, from the front of what `read` gives. Error that starts with `where` when it is
// none, or tells of an array that no column can be: of another kind of number or byte order, or in Fortran's order.
// Safe for any bytes.
NpyHeader read_npy_header(const std::function<void(std::span<std::byte>)>& read, std::string_view where);

}  // namespace quern::replay
