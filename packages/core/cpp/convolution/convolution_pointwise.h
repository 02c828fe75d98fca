// Convolutions with windows of one element, with or without strides: products of the filters and
// the channels at all positions of all images. Positions are columns, those of several small images
// side by side, and a block of them is packed where it is used; nothing else is copied.
#pragma once
#include "convolution/convolution.h"

namespace plait::core {

// Images of channels: element (n, c, y, x) is data[n * image + c * channel + (y * w + x) * pixel].
template <class T>
struct Images {
  const T *data = nullptr;
  int64_t image = 0, channel = 0, pixel = 0;
  static Images dense(const T *data, int64_t channels, int64_t area) {
    return {data, channels * area, area, 1};
  }
};
bool pointwise_fit(const Conv &v);

template <class T>
plait_status pointwise_forward(const plait_call *c, const Conv &v, Images<T> x, const T *w,
                               const DLTensor *bias, T *y);
template <class T>
plait_status pointwise_backward_input(const plait_call *c, const Conv &v, Images<T> gy, const T *w,
                                      T *gx);
template <class T>
plait_status pointwise_backward_weight(const plait_call *c, const Conv &v, Images<T> gy,
                                       Images<T> x, T *gw);

}  // namespace plait::core
