// Convolutions with windows of r x r, 3 or 5, by Winograd's algorithm: tiles of m x m results from
// (m + r - 1)^2 products instead of (m r)^2. A product is a matrix product over all tiles and
// channels, one for each of the (m + r - 1)^2 points.
#ifndef PLAIT_CORE_WINOGRAD_H
#define PLAIT_CORE_WINOGRAD_H
#include "convolution/algorithm.h"
#include "convolution/convolution.h"

namespace plait::core {

// The size m of the tiles by which a convolution, or one of its derivatives, is computed; 0: not
// by this algorithm. It depends on sizes, on the user's choice (winograd_mode.h) and on what a
// table of measurements asks for alone.
template <class T>
int64_t winograd_tile(const Conv &v, Algorithm asked, bool by_weight = false);

template <class T>
plait_status winograd_forward(const plait_call *c, const Conv &v, int64_t m, const T *x, const T *w,
                              const DLTensor *bias, T *y);
template <class T>
plait_status winograd_backward_input(const plait_call *c, const Conv &v, int64_t m, const T *gy,
                                     const T *w, T *gx);
template <class T>
plait_status winograd_backward_weight(const plait_call *c, const Conv &v, int64_t m, const T *gy,
                                      const T *x, T *gw);

}  // namespace plait::core
#endif  // PLAIT_CORE_WINOGRAD_H
