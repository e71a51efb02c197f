// What the files of the program include: the library's headers, and JSON.
#pragma once

#include <nlohmann/json.hpp>

#include "cmake/precompiled/library.h"
