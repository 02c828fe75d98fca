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
