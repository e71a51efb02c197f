// What test programs include.
#pragma once

#include <gtest/gtest.h>

#include <random>

#include "cmake/precompiled/library.h"
