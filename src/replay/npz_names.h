// Arrays of a .npz file that are not columns.
#pragma once

#include <string_view>

namespace quern::replay {

inline constexpr std::string_view kIdsArray = "__ids__";
inline constexpr std::string_view kPrioritiesArray = "__priorities__";

}  // namespace quern::replay
