// Precompiled headers of the test programs.
#pragma once

#include <gtest/gtest.h>

#include <random>

#include "cmake/precompiled/library.h"
