// Convolutions with windows of r x r, 3 or 5, by Winograd's algorithm: tiles of m x m results from
// (m + r - 1)^2 products instead of (m r)^2. A product is a matrix product over all tiles and
// channels, one for each of the (m + r - 1)^2 points.
#ifndef PLAIT_CORE_WINOGRAD_H
#define PLAIT_CORE_WINOGRAD_H
#include <cstring>
#include <limits>
#include <type_traits>

#include "convolution/algorithm.h"
#include "convolution/convolution.h"

namespace plait::core {

// Checks that numbers are finite: infinity and nan have a larger exponent than all other numbers.
template <class T>
class Finite {
 public:
  void add(const T *p, int64_t n) {
    Bits most = most_;
    for (int64_t i = 0; i < n; i++) {
      Bits bits;
      memcpy(&bits, p + i, sizeof bits);
      bits &= std::numeric_limits<Bits>::max();
      most = bits > most ? bits : most;
    }
    most_ = most;
  }
  bool all() const {
    const T infinity = std::numeric_limits<T>::infinity();
    Bits end;
    memcpy(&end, &infinity, sizeof end);
    return most_ < end;
  }

 private:
  using Bits = std::conditional_t<sizeof(T) == 4, int32_t, int64_t>;
  Bits most_ = 0;
};

// Points besides 0 and infinity of the sizes whose errors are small enough: docs/design/0024.
constexpr int64_t kTileSizes[] = {2, 4, 5};

// Costs in multiplications of a matrix product, from measurements with AVX2 and AVX-512: for each
// channel or filter and each of a tile's points, times the points of a side; and for each pair of a
// channel and a filter, of packing it, and of transforming it, for each of the points; the other
// way round, for the derivative, this is more.
constexpr double kTileCost = 4, kPackCost = 360, kFilterCost = 100, kPointCost = 8,
                 kWeightCost = 14;
constexpr double kWorth = 0.9;  // cost of 5 points, over others', for which their error is worth

// The size of the tiles with the lowest cost; 0: a product without tiles costs less.
constexpr int64_t winograd_rule(const ConvolutionSizes &v, bool by_weight) {
  const double n = double(v.images), channels = double(v.channels), filters = double(v.filters);
  const double products = channels * filters, taps = double(v.window * v.window);
  double least = (taps * double(v.rows) * double(v.columns) * n + kPackCost) * products;
  int64_t best = 0;
  for (const int64_t size : kTileSizes) {
    const int64_t m = size + 3 - v.window;
    if (m < 2) continue;
    const double points = double((size + 2) * (size + 2));
    const double tiles = double(ceil_div(v.rows, m)) * double(ceil_div(v.columns, m)) * n;
    const double each = products + kTileCost * double(size) * (channels + filters);
    const double point = by_weight ? kWeightCost : kPointCost;
    const double cost = points * tiles * each + (kFilterCost + point * points) * products;
    if (cost >= (size == 5 && best ? kWorth * least : least)) continue;
    least = cost;
    best = m;
  }
  return best;
}

// Whether a build has the tiles of m x m results for a window; those of settings aside.
template <int64_t window, int64_t m>
constexpr bool kSelectsTiles = any_convolution([](const ConvolutionSizes &v) {
  return v.window == window && (!v.is_known || winograd_rule(v, false) == m);
});
constexpr bool selects_tiles(int64_t window, int64_t m) {
  constexpr bool selected[2][4] = {
      {kSelectsTiles<3, 2>, kSelectsTiles<3, 3>, kSelectsTiles<3, 4>, kSelectsTiles<3, 5>},
      {kSelectsTiles<5, 2>, kSelectsTiles<5, 3>, kSelectsTiles<5, 4>, kSelectsTiles<5, 5>}};
  return m >= 2 && m <= 5 && selected[window == 5][m - 2];
}
constexpr bool kSelectsWinograd = selects_tiles(3, 2) || selects_tiles(3, 4) ||
                                  selects_tiles(3, 5) || selects_tiles(5, 2) || selects_tiles(5, 3);

// The size m of the tiles by which a convolution, or one of its derivatives, is computed; 0: not
// by this algorithm. It depends only on the sizes, on the user's choice (winograd_mode.h) and on
// a table of measurements (`request`).
template <class T>
int64_t winograd_tile(const Conv &v, Algorithm request, bool by_weight = false);

// With an infinity or nan in a tile, also results of the tile that do not depend on it become
// wrong. `broken` has a byte for each image, which is set to 1 if this may have happened. Two
// corners of each tile of results are checked, which suffices: an inner element of the tile's input
// reaches all results, an element of an outer row or column all results of this row or column, and
// a corner only the result at this corner, which does depend on it.
template <class T>
plait_status winograd_forward(const plait_call *c, const Conv &v, int64_t m, const T *x, const T *w,
                              const DLTensor *bias, T *y, uint8_t *broken);
template <class T>
plait_status winograd_backward_input(const plait_call *c, const Conv &v, int64_t m, const T *gy,
                                     const T *w, T *gx, uint8_t *broken);
template <class T>
plait_status winograd_backward_weight(const plait_call *c, const Conv &v, int64_t m, const T *gy,
                                      const T *x, T *gw, bool *broken);

}  // namespace plait::core
#endif  // PLAIT_CORE_WINOGRAD_H
