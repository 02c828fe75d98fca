// Convolutions of many small images, eight at a time: one image in each lane of a vector. All lanes
// are used at the borders of images of any width, and the same loops serve windows of any size.
#pragma once
#include "convolution/convolution.h"

namespace plait::core {

// Images are small enough to stay in the second-level cache, for float32.
bool lanes_fit(const Conv &v);
constexpr int64_t kLaneImages = 8;
// There are enough images, few lanes are empty.
bool lanes_filled(const Conv &v);
// A sum over windows of so many channels has the bits that convolution_channels gives it.
bool lanes_like_pixels(const Conv &v, int64_t channels);

plait_status lanes_forward(const plait_call *c, const Conv &v, const float *x, const float *w,
                           const DLTensor *bias, float *y);
plait_status lanes_backward_input(const plait_call *c, const Conv &v, const float *gy,
                                  const float *w, float *gx);
plait_status lanes_backward_weight(const plait_call *c, const Conv &v, const float *gy,
                                   const float *x, float *gw);

}  // namespace plait::core
