// The geometry of a two-dimensional convolution, and how patches become columns of a matrix.
#pragma once
#include "kernel/lanes.h"
#include "kernel/past_caches.h"
#include "kernel/units.h"
#include "pointwise/joined_activations.h"

namespace plait::core {

struct Conv {
  int64_t n, c, h, w;          // input
  int64_t oc, oh, ow;          // output
  int64_t kh, kw;              // window
  int64_t sh, sw, ph, pw, dh, dw, groups;
  Activation activation{};  // of the results
  const void *residual = nullptr;  // in C order: it is added to them before their activation
  int64_t gc() const { return c / groups; }    // channels of a group
  int64_t goc() const { return oc / groups; }
  int64_t patch() const { return gc() * kh * kw; }
  bool is_pointwise() const {
    return kh == 1 && kw == 1 && sh == 1 && sw == 1 && ph == 0 && pw == 0;
  }
};

// Output positions ow in [begin, end) whose input column kw falls inside the image.
struct Span {
  int64_t begin, end;
};
inline Span inside(int64_t out, int64_t in, int64_t stride,
                   int64_t shift) {  // 0 <= o * stride + shift < in
  int64_t begin = shift < 0 ? ceil_div(-shift, stride) : 0;
  int64_t end = in - shift <= 0 ? 0 : ceil_div(in - shift, stride);
  if (end > out) end = out;
  if (begin > end) begin = end;
  return {begin, end};
}

template <class T>
PLAIT_INLINE void copy_row(T *to, const T *from, int64_t n) {
  if (n < kLanes<T>) {
    for (int64_t i = 0; i < n; i++) to[i] = from[i];
    return;
  }
  for (int64_t i = 0; i < n - kLanes<T>; i += kLanes<T>) store(to + i, load(from + i));
  store(to + n - kLanes<T>, load(from + n - kLanes<T>));
}
// Every step-th of n elements from `from` on.
template <class T>
void take_every(T *to, const T *from, int64_t step, int64_t n) {
  int64_t i = 0;
  if constexpr (sizeof(T) == 4)
    for (; step == 2 && i + kLanes<T> < n; i += kLanes<T>)  // the last would be read beyond the end
      store(to + i, even_lanes(load(from + 2 * i), load(from + 2 * i + kLanes<T>)));
  for (; i < n; i++) to[i] = from[i * step];
}

// The other way round: n elements to every step-th one from `to` on, between which are zeros.
template <class T>
void put_every(T *to, const T *from, int64_t step, int64_t n) {
  int64_t i = 0;
  if constexpr (sizeof(T) == 4)
    for (; step == 2 && i + kLanes<T> < n; i += kLanes<T>) {
      const Vec<T> v = load(from + i);
      store(to + 2 * i, shuffled<0, 8, 1, 9, 2, 10, 3, 11>(v, Vec<T>{}));
      store(to + 2 * i + kLanes<T>, shuffled<4, 12, 5, 13, 6, 14, 7, 15>(v, Vec<T>{}));
    }
  for (; i < n; i++) to[i * step] = from[i];
}

// Runs f(i, scratch) for i < n with scratch of `size` elements for each chunk of `grain` indices.
template <class T, class F>
plait_status with_scratch(const plait_call *c, int64_t n, int64_t grain, int64_t size, F &&f) {
  const uint64_t nbytes = uint64_t(size) * sizeof(T);
  bool failed = false;
  parallel_ranges(c, n, grain, [&](int64_t begin, int64_t end) {
    Workspace space;
    if (nbytes && !space.try_take(nbytes)) return __atomic_store_n(&failed, true, __ATOMIC_RELAXED);
    for (int64_t i = begin; i < end; i++) f(i, space.as<T>());
  });
  return failed ? Workspace::out_of_memory(c, nbytes) : PLAIT_OK;
}
inline int64_t grain_for(const Conv &v,
                         int64_t positions) {  // output rows for one unit of parallel work
  return (1 << 18) / (positions * v.patch() * v.goc() + 1) + 1;
}

// One group of one image, output rows [begin, end): col[patch][(end - begin) * ow].
template <class T>
void image_to_columns(const Conv &v, const T *image, int64_t begin, int64_t end, T *col);
// Adds the columns of all output rows back to the image.
template <class T>
void columns_to_image(const Conv &v, const T *col, T *image);

}  // namespace plait::core
