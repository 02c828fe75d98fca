// Measured exceptions from the rules by which kernels choose among algorithms: one table for each
// family of processors, a maker and a width of vectors, written by `nox -s tune`. Where a table has
// no row, and on families without a table, kernels' own rules hold (docs/design/0031).
#ifndef PLAIT_CORE_TUNING_H
#define PLAIT_CORE_TUNING_H
#include <cstdint>

namespace plait::core {

// What a two-dimensional convolution without groups, or one of its derivatives, may be computed by.
// The numbers stand in the tables and in benchmarks/tune.py.
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

// Convolutions of one class get the same algorithm.
struct ConvolutionClass {
  ConvolutionPass pass;
  uint8_t window, stride;
  uint8_t batch;  // 0: up to 3 images, 1: up to 15, 2: more
  uint8_t channels, filters, side;  // the largest powers of two in the numbers

  ConvolutionClass(ConvolutionPass pass, int64_t window, int64_t stride, int64_t images,
                   int64_t channels, int64_t filters, int64_t side);
  uint64_t key() const;
};

// The algorithm that the family's table has for float32; ByRule where it has none. All kernels that
// may depend on a table ask this function, so a mode without tables is one condition in it.
Algorithm tuned(const ConvolutionClass &shape);

}  // namespace plait::core
#endif  // PLAIT_CORE_TUNING_H
