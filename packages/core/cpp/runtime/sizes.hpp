// Size classes of the allocator: pure arithmetic, nothing to look up.
#pragma once
#include <cstdint>

namespace plait::core {

// Steps of 1/`parts` of a power of two above `floor` (a power of two): class 0 is (floor, floor +
// floor/parts].
template <uint64_t floor, unsigned parts>
struct Geometric {
  static constexpr unsigned log_floor = 63 - __builtin_clzll(floor);
  static constexpr unsigned log_parts = 63 - __builtin_clzll(uint64_t(parts));
  static constexpr uint32_t index(uint64_t n) {
    const unsigned lg = 63 - __builtin_clzll(n - 1);
    const unsigned shift = lg - log_parts;
    return (lg - log_floor) * parts + uint32_t(((n - 1) >> shift) - parts);
  }
  static constexpr uint64_t size(uint32_t i) {
    return uint64_t(parts + i % parts + 1) << (i / parts + log_floor - log_parts);
  }
};

constexpr uint64_t kUnit = 64;           // alignment and smallest block
constexpr uint64_t kLinearLimit = 1024;  // below: multiples of 64
constexpr uint64_t kSmallLimit = 32768;  // below: blocks cut from slabs
constexpr uint64_t kHugePage = 2u << 20;
constexpr uint64_t kMaxBytes = 1ull << 46;

using SmallSteps = Geometric<kLinearLimit, 4>;
using LargeSteps = Geometric<kSmallLimit, 8>;
constexpr uint32_t kLinearClasses = kLinearLimit / kUnit;
constexpr uint32_t kSmallClasses = kLinearClasses + SmallSteps::index(kSmallLimit) + 1;
constexpr uint32_t kLargeClasses = LargeSteps::index(kMaxBytes) + 1;

constexpr uint32_t small_class(uint64_t n) {
  return n <= kLinearLimit ? uint32_t((n + (n == 0) - 1) / kUnit)
                           : kLinearClasses + SmallSteps::index(n);
}
constexpr uint64_t small_size(uint32_t c) {
  return c < kLinearClasses ? (c + 1) * kUnit : SmallSteps::size(c - kLinearClasses);
}
constexpr uint32_t large_class(uint64_t n) { return LargeSteps::index(n); }
constexpr uint64_t large_size(uint32_t c) { return LargeSteps::size(c); }

static_assert(small_class(0) == 0 && small_class(64) == 0 && small_class(65) == 1 &&
              small_class(1024) == 15);
static_assert(small_class(1025) == 16 && small_size(16) == 1280 &&
              small_size(kSmallClasses - 1) == kSmallLimit);
static_assert(large_class(32769) == 0 && large_size(0) == 36864 &&
              large_size(large_class(1 << 20)) == 1 << 20);

}  // namespace plait::core
