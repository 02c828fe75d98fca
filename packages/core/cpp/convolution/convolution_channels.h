// Convolutions with the channels of a pixel side by side. A row of pixels is then a matrix whose
// rows overlap: the pixels under a window's row are contiguous, so no patch is copied. The
// derivative by the input is one such convolution for each residue of the stride: an element of the
// input sees every stride-th element of the window, always the same ones for a residue, and nothing
// is scattered.
#pragma once
#include "convolution/convolution.h"
#include "kernel/transpose.h"

namespace plait::core {

// Whether the algorithm of these files is the faster one.
bool channels_border_fit(const Conv &v);  // for all three
bool channels_forward_fit(const Conv &v);
bool channels_input_fit(const Conv &v);
bool channels_weight_fit(const Conv &v);

template <class T>
plait_status channels_forward(const plait_call *c, const Conv &v, const T *x, const T *w,
                              const DLTensor *bias, T *y);
template <class T>
plait_status channels_backward_input(const plait_call *c, const Conv &v, const T *gy, const T *w,
                                     T *gx);
template <class T>
plait_status channels_backward_weight(const plait_call *c, const Conv &v, const T *gy, const T *x,
                                      T *gw);

// The same with the images' channels in panels, convolution_panels_weight.cpp.
template <class T>
bool panels_weight_fit(const Conv &v);
template <class T>
plait_status panels_backward_weight(const plait_call *c, const Conv &v, const T *gy, const T *x,
                                    T *gw);

// to[r + c * to_step] = from[r * from_step + c]
template <class T>
void transposed(T *to, int64_t to_step, const T *from, int64_t from_step, int64_t rows,
                int64_t columns) {
  if (rows == 1 && to_step == 1) {
    memcpy(to, from, size_t(columns) * sizeof(T));
    return;
  }
  transpose_block(reinterpret_cast<char *>(to), to_step, reinterpret_cast<const char *>(from),
                  from_step, rows, columns, int(sizeof(T)));
}

// Rows of an image as pixels with padding: `rows` rows from `first` on, which may lie outside of
// the image, each with `left` zeros before it and zeros after it up to `width` pixels.
struct Frame {
  int64_t channels, h, w;
  int64_t first, rows, left, width;
  int64_t size() const { return rows * width * channels; }
};
// `beside` is a buffer of rows * w * channels elements.
template <class T>
void to_pixels(const Frame &f, const T *image, T *to, T *beside);

}  // namespace plait::core
