// Convolutions with one input channel in each group, so that a result is a sum over one plane. They
// are limited by memory and by loads, and matrix products of such depth would not pay. The usual
// window of 3 x 3 reads the planes themselves; for others planes are copied into zeros, and sums
// run along their rows; short rows have planes side by side instead.
#pragma once
#include "convolution/convolution.h"

namespace plait::core {

bool depthwise_fit(const Conv &v);  // one channel a group, and little memory for the border

template <class T>
plait_status depthwise_forward(const plait_call *c, const Conv &v, const T *x, const T *w,
                               const DLTensor *bias, T *y);
template <class T>
plait_status depthwise_backward_input(const plait_call *c, const Conv &v, const T *gy, const T *w,
                                      T *gx);
template <class T>
plait_status depthwise_backward_weight(const plait_call *c, const Conv &v, const T *gy, const T *x,
                                       T *gw);

// The same for windows of 3 x 3 in rows of at least a vector (convolution_depthwise_direct.cpp), if
// these fit.
template <class T>
bool depthwise_direct_fit(const Conv &v);
template <class T>
bool depthwise_direct_backward_fit(const Conv &v);
template <class T>
plait_status depthwise_direct_forward(const plait_call *c, const Conv &v, const T *x, const T *w,
                                      const DLTensor *bias, T *y);
template <class T>
plait_status depthwise_direct_backward_input(const plait_call *c, const Conv &v, const T *gy,
                                             const T *w, T *gx);

// The same where rows are a few vectors (convolution_depthwise_rows.cpp), if it fits.
template <class T>
bool depthwise_rows_fit(const Conv &v);
template <class T>
plait_status depthwise_rows_forward(const plait_call *c, const Conv &v, const T *x, const T *w,
                                    const DLTensor *bias, T *y);
template <class T>
plait_status depthwise_rows_backward_input(const plait_call *c, const Conv &v, const T *gy,
                                           const T *w, T *gx);

// The same with neighbouring planes in the lanes of vectors, for short rows
// (convolution_depthwise_lanes.cpp).
template <class T>
plait_status depthwise_lanes_forward(const plait_call *c, const Conv &v, const T *x, const T *w,
                                     const DLTensor *bias, T *y);
template <class T>
plait_status depthwise_lanes_backward_input(const plait_call *c, const Conv &v, const T *gy,
                                            const T *w, T *gx);
template <class T>
plait_status depthwise_lanes_backward_weight(const plait_call *c, const Conv &v, const T *gy,
                                             const T *x, T *gw);

}  // namespace plait::core
