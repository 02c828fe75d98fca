// The smaller and the larger one of two sizes.
#pragma once
#include <cstdint>

namespace plait::core {

constexpr int64_t least(int64_t a, int64_t b) { return a < b ? a : b; }
constexpr int64_t most(int64_t a, int64_t b) { return a > b ? a : b; }

}  // namespace plait::core
