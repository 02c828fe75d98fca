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

// Whether no number of those that it sees is infinite or nan: all exponents are less than theirs.
template <class T>
class Finite {
 public:
  void see(const T *p, int64_t n) {
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
// by this algorithm. It depends on sizes, on the user's choice (winograd_mode.h) and on what a
// table of measurements asks for alone.
template <class T>
int64_t winograd_tile(const Conv &v, Algorithm request, bool by_weight = false);

// An infinity or nan reaches results of its tiles that do not depend on it: `broken` has a byte for
// each image, of which those become 1 where this may have happened. It is seen at two corners of
// each tile: what is neither in the first nor in the last row and column of a tile's input reaches
// all its results, what is in one of these all results of the first or last row or column, and what
// is in both one corner, as it should.
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
