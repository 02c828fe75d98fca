#include "convolution/convolution.h"

namespace plait::core {

template <class T>
void image_to_columns(const Conv &v, const T *image, int64_t begin, int64_t end, T *col) {
  for (int64_t c = 0; c < v.gc(); c++)
    for (int64_t i = 0; i < v.kh; i++)
      for (int64_t j = 0; j < v.kw; j++) {
        const int64_t shift = j * v.dw - v.pw;
        const Span x = inside(v.ow, v.w, v.sw, shift);
        for (int64_t oh = begin; oh < end; oh++, col += v.ow) {
          const int64_t row = oh * v.sh - v.ph + i * v.dh;
          if (row < 0 || row >= v.h) {
            memset(col, 0, size_t(v.ow) * sizeof(T));
            continue;
          }
          const T *from = image + (c * v.h + row) * v.w + shift;
          for (int64_t o = 0; o < x.begin; o++) col[o] = T(0);
          if (v.sw == 1) {
            copy_row(col + x.begin, from + x.begin, x.end - x.begin);
          } else {
            for (int64_t o = x.begin; o < x.end; o++) col[o] = from[o * v.sw];
          }
          for (int64_t o = x.end; o < v.ow; o++) col[o] = T(0);
        }
      }
}

template <class T>
void columns_to_image(const Conv &v, const T *col, T *image) {
  for (int64_t c = 0; c < v.gc(); c++)
    for (int64_t i = 0; i < v.kh; i++)
      for (int64_t j = 0; j < v.kw; j++) {
        const int64_t shift = j * v.dw - v.pw;
        const Span x = inside(v.ow, v.w, v.sw, shift);
        for (int64_t oh = 0; oh < v.oh; oh++, col += v.ow) {
          const int64_t row = oh * v.sh - v.ph + i * v.dh;
          if (row < 0 || row >= v.h) continue;
          T *to = image + (c * v.h + row) * v.w + shift;
          if (v.sw == 1) {
            for (int64_t o = x.begin; o < x.end; o++) to[o] += col[o];
          } else {
            for (int64_t o = x.begin; o < x.end; o++) to[o * v.sw] += col[o];
          }
        }
      }
}

template void image_to_columns(const Conv &, const float *, int64_t, int64_t, float *);
template void image_to_columns(const Conv &, const double *, int64_t, int64_t, double *);
template void columns_to_image(const Conv &, const float *, float *);
template void columns_to_image(const Conv &, const double *, double *);

}  // namespace plait::core
