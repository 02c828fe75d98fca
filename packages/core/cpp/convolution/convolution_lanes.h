// Convolutions of many small images, eight at a time: one image in each lane of a vector. All lanes
// are used at the borders of images of any width, and the same loops serve windows of any size.
#ifndef PLAIT_CORE_CONVOLUTION_LANES_H
#define PLAIT_CORE_CONVOLUTION_LANES_H
#include "convolution/convolution.h"

namespace plait::core {

bool lanes_fit(
    const Conv &v);  // enough images, small enough to stay in the second-level cache, float32

plait_status lanes_forward(const plait_call *c, const Conv &v, const float *x, const float *w,
                           const DLTensor *bias, float *y);
plait_status lanes_backward_input(const plait_call *c, const Conv &v, const float *gy,
                                  const float *w, float *gx);
plait_status lanes_backward_weight(const plait_call *c, const Conv &v, const float *gy,
                                   const float *x, float *gw);

}  // namespace plait::core
#endif  // PLAIT_CORE_CONVOLUTION_LANES_H
