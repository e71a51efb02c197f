// What the files of the program include: the library's headers, command line parsing and JSON.
#pragma once

#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>

#include "cmake/precompiled/library.h"
