// Precompiled headers of the program: those of the library, and JSON.
#pragma once

#include <nlohmann/json.hpp>

#include "cmake/precompiled/library.h"
