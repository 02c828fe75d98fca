// Which algorithm computes a convolution where the counts of operations, by which the others are
// chosen, mislead (docs/design/0031).
#pragma once
#include <cstdint>

namespace plait::core {

// What a two-dimensional convolution without groups, or one of its derivatives, may be computed by.
// The numbers stand in tests.
enum class Algorithm : int8_t {
  ByRule = -1,
  Direct = 0,  // without Winograd's tiles, the rest by the rules
  Tiles2 = 2,  // Winograd's tiles of so many results a side
  Tiles3 = 3,
  Tiles4 = 4,
  Tiles5 = 5,
  Lanes = 16,
  Pixels = 17,
  Columns = 18,
};

enum class ConvolutionPass : uint8_t { Forward, ByInput, ByWeight };

// The algorithm for float32 with square windows, without groups and dilation; ByRule where the
// counts of operations hold. It depends on sizes alone, and on no processor.
Algorithm exception_of(ConvolutionPass pass, int64_t window, int64_t stride, int64_t channels,
                       int64_t results);

}  // namespace plait::core
