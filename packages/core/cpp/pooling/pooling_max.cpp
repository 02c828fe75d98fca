// Pooling by the largest element, and its derivative. Where it lies is its number within the
// window, row by row, or its place in the image.
#include "convolution/convolution.h"
#include "kernel/dense.h"
#include "kernel/float_kernel.h"
#include "pooling/pooling.h"
#include "reduction/rows.h"

namespace plait::core {
namespace {

constexpr int64_t kBlock = 256;      // windows side by side whose numbers are kept at a time
constexpr int64_t kBeyond = 16;
constexpr int64_t kNumbers = 255;    // windows of up to so many elements have numbers of a byte
constexpr uint8_t kNowhere = 255;    // a dilated window may see nothing of the image

template <class T>
struct Lanes;  // integers beside the lanes of Vec<T>
template <>
struct Lanes<float> {
  using Int = int32_t;
  typedef int32_t Ints __attribute__((vector_size(32)));
};
template <>
struct Lanes<double> {
  using Int = int64_t;
  typedef int64_t Ints __attribute__((vector_size(32)));
};

// p[0], p[stride], p[2 stride], ... ; nothing behind the last of them is read.
template <int stride>
PLAIT_INLINE Vec<float> columns(const float *p) {
  if constexpr (stride == 1) return load(p);
  return shuffled<0, 2, 4, 6, 9, 11, 13, 15>(load(p), load(p + 7));
}
template <int stride>
PLAIT_INLINE Vec<double> columns(const double *p) {
  if constexpr (stride == 1) return load(p);
  return shuffled_longs<0, 2, 5, 7>(load(p), load(p + 3));
}

// NaN counts as the largest; the first of equal elements is kept
template <class T>
PLAIT_INLINE bool better(T x, T best) {
  return (x > best) | ((x != x) & (best == best));
}

// The largest elements of windows [begin, end) of output row i: y[j], and their numbers, -1: none.
template <class T>
void largest(const Pool &v, const T *x, int64_t i, int64_t begin, int64_t end, T *y,
             int32_t *number) {
  for (int64_t j = begin; j < end; j++) {
    const int64_t top = i * v.sh - v.ph, left = j * v.sw - v.pw;
    int32_t at = -1;
    T best = lowest<T>();
    for (int64_t r = top, a = 0; a < v.kh; a++, r += v.dh) {
      if (r < 0 || r >= v.h) continue;
      for (int64_t q = left, b = 0; b < v.kw; b++, q += v.dw)
        if (q >= 0 && q < v.w && (at < 0 || better(x[r * v.w + q], best))) {
          best = x[r * v.w + q];
          at = int32_t(a * v.kw + b);
        }
    }
    y[j] = best;
    number[j - begin] = at;
  }
}

// The same for windows that lie inside the image from left to right. Where they are fewer than a
// vector, up to kBeyond elements behind them are read, and what comes of those is dropped.
// `rows`: those of the window that are in the image.
template <class T, int stride>
void largest_inside(const Pool &v, const T *x, int64_t i, Span rows, int64_t begin, int64_t end,
                    T *y, int32_t *number) {
  using Ints = typename Lanes<T>::Ints;
  using Int = typename Lanes<T>::Int;
  const int64_t top = i * v.sh - v.ph, first = rows.begin, last = rows.end;
  const bool narrow = end - begin < kLanes<T>;
  for (int64_t j = begin; j < end; j += kLanes<T>) {
    if (j + kLanes<T> > end && !narrow) j = end - kLanes<T>;  // overlaps the block before
    const T *corner = x + (top + first * v.dh) * v.w + j * stride - v.pw;
    Vec<T> best = columns<stride>(corner);
    Ints at = Ints{} + Int(first * v.kw);
    for (int64_t a = first; a < last; a++, corner += v.dh * v.w)
      for (int64_t b = a == first; b < v.kw; b++) {
        const Vec<T> own = columns<stride>(corner + b * v.dw);
        const Ints take = (own > best) | ((own != own) & (best == best));
        best = take ? own : best;
        at = take ? Ints{} + Int(a * v.kw + b) : at;
      }
    if (narrow) {
      for (int64_t k = 0; k < end - begin; k++) {
        y[j + k] = best[k];
        number[k] = int32_t(at[k]);
      }
    } else {
      store(y + j, best);
      for (int64_t k = 0; k < kLanes<T>; k++) number[j - begin + k] = int32_t(at[k]);
    }
  }
}

// Calls put(place of the first window, its row, its column, numbers, count) for the windows of a
// plane, after the largest elements were written to y.
template <class T, class Put>
void max_plane(const Pool &v, const T *x, T *y, Put &&put) {
  int32_t number[kBlock];
  Span inner{0, 0};  // windows without padding at their sides
  if (is_float<T> && (v.sw == 1 || v.sw == 2)) {
    inner.begin = ceil_div(v.pw, v.sw);
    const int64_t room = v.w + v.pw - (v.kw - 1) * v.dw;  // for the left edge of a window
    inner.end = room <= 0 ? 0 : ceil_div(room, v.sw);
    if (inner.end > v.ow) inner.end = v.ow;
  }
  for (int64_t i = 0; i < v.oh; i++) {
    const Span rows = inside(v.kh, v.h, v.dh, i * v.sh - v.ph);
    T *row = y + i * v.ow;
    for (int64_t j = 0; j < v.ow; j += kBlock) {
      const int64_t end = j + kBlock < v.ow ? j + kBlock : v.ow;
      int64_t from = j > inner.begin ? j : inner.begin, to = end < inner.end ? end : inner.end;
      if (rows.begin == rows.end || to <= from) from = to = end;
      if constexpr (is_float<T>) {
        largest(v, x, i, j, from, row, number);
        if (from < to && v.sw == 1)
          largest_inside<T, 1>(v, x, i, rows, from, to, row, number + from - j);
        if (from < to && v.sw == 2)
          largest_inside<T, 2>(v, x, i, rows, from, to, row, number + from - j);
        largest(v, x, i, to, end, row, number + to - j);
      } else {
        largest(v, x, i, j, end, row, number);
      }
      put(i, j, number, end - j);
    }
  }
}

// The images of a tensor, with kBeyond elements in memory behind each: the last ones are copies.
template <class T>
class Images {
 public:
  plait_status take(const plait_call *c, const Pool &v, const DLTensor *in) {
    PLAIT_TRY(x_.take(c, in));
    area_ = v.area();
    const int64_t copied = ceil_div(kBeyond, area_);
    first_ = v.planes > copied ? v.planes - copied : 0;
    const int64_t size = (v.planes - first_) * area_;
    PLAIT_TRY(last_.take(c, uint64_t(size + kBeyond) * sizeof(T)));
    memcpy(last_.as<T>(), x_ + first_ * area_, size_t(size) * sizeof(T));
    memset(last_.as<T>() + size, 0, size_t(kBeyond) * sizeof(T));
    return PLAIT_OK;
  }
  const T *operator[](int64_t p) const {
    return p < first_ ? x_ + p * area_ : last_.as<T>() + (p - first_) * area_;
  }

 private:
  Dense<T> x_;
  Workspace last_;
  int64_t area_ = 1, first_ = 0;
};

// native_max_pool2d(input, kernel_size, stride, padding, dilation, ceil_mode) -> (result, numbers)
plait_status native_max_pool2d(plait_call *c) {
  const DLTensor *in = tensor(c, 0);
  DLTensor *out = result(c), *where = result(c, 1);
  if (numel(out) == 0) return PLAIT_OK;
  const Pool v = pooling(c, 1, true, in->shape, out->shape, in->ndim);
  PLAIT_NUMERIC(kind(in->dtype), {
    Images<T> images;
    PLAIT_TRY(images.take(c, v, in));
    parallel_ranges(c, v.planes, v.grain(), [&](int64_t begin, int64_t end) {
      for (int64_t p = begin; p < end; p++) {
        uint8_t *to = data<uint8_t>(where) + p * v.windows();
        max_plane(v, images[p], data<T>(out) + p * v.windows(),
                  [&](int64_t i, int64_t j, const int32_t *number, int64_t n) {
                    for (int64_t k = 0; k < n; k++) to[i * v.ow + j + k] = uint8_t(number[k]);
                  });
      }
    });
  })
  return PLAIT_OK;
}

// max_pool2d_with_indices(input, kernel_size, stride, padding, dilation, ceil_mode)
plait_status max_pool2d_with_indices(plait_call *c) {
  const DLTensor *in = tensor(c, 0);
  DLTensor *out = result(c), *where = result(c, 1);
  if (numel(out) == 0) return PLAIT_OK;
  const Pool v = pooling(c, 1, true, in->shape, out->shape, in->ndim);
  Workspace space;  // how far an element with a number lies from the window's corner
  const int64_t size = v.kh * v.kw < kBlock ? v.kh * v.kw : 0;
  PLAIT_TRY(space.take(c, uint64_t(size + 1) * sizeof(int64_t)));
  int64_t *distance = space.as<int64_t>();
  for (int64_t k = 0; k < size; k++) distance[k] = k / v.kw * v.dh * v.w + k % v.kw * v.dw;
  PLAIT_NUMERIC(kind(in->dtype), {
    Images<T> images;
    PLAIT_TRY(images.take(c, v, in));
    parallel_ranges(c, v.planes, v.grain(), [&](int64_t begin, int64_t end) {
      for (int64_t p = begin; p < end; p++) {
        int64_t *to = data<int64_t>(where) + p * v.windows();
        max_plane(v, images[p], data<T>(out) + p * v.windows(),
                  [&](int64_t i, int64_t j, const int32_t *number, int64_t n) {
                    for (int64_t k = 0; k < n; k++) {
                      const int64_t at = number[k];
                      const int64_t corner = (i * v.sh - v.ph) * v.w + (j + k) * v.sw - v.pw;
                      to[i * v.ow + j + k] =
                          at < 0 ? -1
                          : size ? corner + distance[at]
                                 : corner + at / v.kw * v.dh * v.w + at % v.kw * v.dw;
                    }
                  });
      }
    });
  })
  return PLAIT_OK;
}

// max_pool2d without recording, where the indices of the elements are not needed
plait_status max_pool2d(plait_call *c) {
  const DLTensor *in = tensor(c, 0);
  DLTensor *out = result(c);
  if (numel(out) == 0) return PLAIT_OK;
  const Pool v = pooling(c, 1, true, in->shape, out->shape, in->ndim);
  PLAIT_NUMERIC(kind(in->dtype), {
    Images<T> images;
    PLAIT_TRY(images.take(c, v, in));
    parallel_ranges(c, v.planes, v.grain(), [&](int64_t begin, int64_t end) {
      for (int64_t p = begin; p < end; p++)
        max_plane(v, images[p], data<T>(out) + p * v.windows(),
                  [](int64_t, int64_t, const int32_t *, int64_t) {});
    });
  })
  return PLAIT_OK;
}

// The derivative from numbers of a byte, of windows a column apart. Each row of an image gathers
// what the windows over it give, in the order of the windows, and is written once.
template <class T>
class Gather {
 public:
  using Int = typename Lanes<T>::Int;
  using Ints = typename Lanes<T>::Ints;

  explicit Gather(const Pool &v)
      : v_(v), blocks_(ceil_div(v.w + v.pw, kLanes<T>)), row_(blocks_ * kLanes<T> + v.kw) {
    if (row_ < v.ow + v.kw) row_ = v.ow + v.kw;
  }
  // Elements of T: gradients and numbers with margins, and a row of the image.
  int64_t scratch() const { return 2 * v_.oh * row_ + blocks_ * kLanes<T>; }

  void plane(const T *g, const uint8_t *where, T *gx, T *scratch) const {
    T *grads = scratch, *line = grads + 2 * v_.oh * row_;
    Int *numbers = reinterpret_cast<Int *>(grads + v_.oh * row_);
    memset(scratch, 0, size_t(v_.oh * row_) * sizeof(T));
    for (int64_t i = 0; i < v_.oh; i++) {
      memcpy(grads + i * row_ + v_.kw, g + i * v_.ow, size_t(v_.ow) * sizeof(T));
      Int *to = numbers + i * row_;
      for (int64_t j = 0; j < row_; j++) to[j] = kNowhere;
      for (int64_t j = 0; j < v_.ow; j++) to[v_.kw + j] = where[i * v_.ow + j];
    }
    for (int64_t r = 0; r < v_.h; r++) {
      gather(grads, numbers, r, line);
      memcpy(gx + r * v_.w, line + v_.pw, size_t(v_.w) * sizeof(T));
    }
  }

 private:
  void gather(const T *grads, const Int *numbers, int64_t r, T *line) const {
    // windows i with a row a over r: i sh - ph + a = r
    const int64_t below = r + v_.ph;
    int64_t first = below - v_.kh + 1 <= 0 ? 0 : ceil_div(below - v_.kh + 1, v_.sh);
    int64_t last = below / v_.sh;
    if (last >= v_.oh) last = v_.oh - 1;
    for (int64_t q = 0; q < blocks_ * kLanes<T>; q += kLanes<T>) {
      Vec<T> total = {};
      for (int64_t i = first; i <= last; i++) {
        const int64_t base = i * row_ + v_.kw + q, a = below - i * v_.sh;
        for (int64_t j = v_.kw - 1; j >= 0; j--) {
          const Ints at = numbers_at(numbers + base - j);
          const Vec<T> own = load(grads + base - j), zero = {};
          total += at == Ints{} + Int(a * v_.kw + j) ? own : zero;
        }
      }
      store(line + q, total);
    }
  }
  static PLAIT_INLINE Ints numbers_at(const Int *p) {
    Ints at;
    memcpy(&at, p, sizeof at);
    return at;
  }

  const Pool v_;
  const int64_t blocks_;
  int64_t row_;
};

// How far an element of a window is from its first one, by number.
struct Distances {
  int64_t of[256];
  explicit Distances(const Pool &v) {
    for (int64_t &each : of) each = INT64_MIN / 2;  // no element has this number
    for (int64_t k = 0; k < v.kh * v.kw; k++) of[k] = k / v.kw * v.dh * v.w + k % v.kw * v.dw;
  }
};

template <class T>
void scatter(const Pool &v, const Distances &distances, const T *g, const uint8_t *where, T *gx) {
  const uint64_t area = uint64_t(v.area());
  const int64_t step = v.sw, windows = v.ow;
  memset(gx, 0, size_t(area) * sizeof(T));
  for (int64_t i = 0; i < v.oh; i++, g += windows, where += windows) {
    int64_t corner = (i * v.sh - v.ph) * v.w - v.pw;
    for (int64_t j = 0; j < windows; j++, corner += step) {
      const int64_t at = corner + distances.of[where[j]];
      if (uint64_t(at) < area) gx[at] += g[j];
    }
  }
}

// native_max_pool2d_backward(grad, numbers, size, kernel_size, stride, padding, dilation)
plait_status native_max_pool2d_backward(plait_call *c) {
  const DLTensor *grad = tensor(c, 0), *where = tensor(c, 1);
  DLTensor *out = result(c);
  if (numel(out) == 0) return PLAIT_OK;
  const Pool v = pooling(c, 3, true, out->shape, grad->shape, out->ndim);
  Dense<uint8_t> numbers;
  PLAIT_TRY(numbers.take(c, where));
  const uint8_t *at = numbers;
  PLAIT_FLOATING(kind(out->dtype), {
    Dense<T> gy;
    PLAIT_TRY(gy.take(c, grad));
    const T *from = gy;
    T *to = data<T>(out);
    // others are faster one by one
    if (v.dh == 1 && v.dw == 1 && v.sw == 1 && v.ow >= 2 * kLanes<T>) {
      const Gather<T> gather(v);
      return with_scratch<T>(c, v.planes, v.grain(), gather.scratch(), [&](int64_t p, T *scratch) {
        gather.plane(from + p * v.windows(), at + p * v.windows(), to + p * v.area(), scratch);
      });
    }
    const Distances distances(v);
    parallel_ranges(c, v.planes, v.grain(), [&](int64_t begin, int64_t end) {
      for (int64_t p = begin; p < end; p++)
        scatter(v, distances, from + p * v.windows(), at + p * v.windows(), to + p * v.area());
    });
  })
  return PLAIT_OK;
}

template <class T>
bool spread(const T *g, const int64_t *where, int64_t n, int64_t area, T *gx) {
  memset(gx, 0, size_t(area) * sizeof(T));
  for (int64_t j = 0; j < n; j++) {
    if (where[j] == -1) continue;
    if (uint64_t(where[j]) >= uint64_t(area)) return false;
    gx[where[j]] += g[j];
  }
  return true;
}

// max_pool2d_backward(grad, indices, size)
plait_status max_pool2d_backward(plait_call *c) {
  const DLTensor *grad = tensor(c, 0), *where = tensor(c, 1);
  DLTensor *out = result(c);
  if (numel(out) == 0) return PLAIT_OK;
  const int n = out->ndim;
  const int64_t h = out->shape[n - 2], w = out->shape[n - 1],
                windows = grad->shape[n - 2] * grad->shape[n - 1];
  const int64_t planes = numel(out) / (h * w);
  Dense<int64_t> indices;
  PLAIT_TRY(indices.take(c, where));
  int bad = 0;
  PLAIT_FLOATING(kind(out->dtype), {
    Dense<T> gy;
    PLAIT_TRY(gy.take(c, grad));
    const T *from = gy;
    const int64_t *at = indices;
    parallel_ranges(c, planes, kSerial / (h * w) + 1, [&](int64_t begin, int64_t end) {
      for (int64_t p = begin; p < end; p++)
        if (!spread(from + p * windows, at + p * windows, windows, h * w, data<T>(out) + p * h * w))
          __atomic_store_n(&bad, 1, __ATOMIC_RELAXED);
    });
  })
  if (bad)
    return PLAIT_FAIL(c, PLAIT_INDEX_ERROR,
                      "`indices` must be in [0, %lld) for images of %lld x %lld elements",
                      (long long)(h * w), (long long)h, (long long)w);
  return PLAIT_OK;
}

PLAIT_KERNEL("max_pool2d", max_pool2d);
PLAIT_FLOAT_KERNEL("native_max_pool2d", native_max_pool2d);
PLAIT_KERNEL("native_max_pool2d_backward", native_max_pool2d_backward);
PLAIT_KERNEL("max_pool2d_with_indices", max_pool2d_with_indices);
PLAIT_KERNEL("max_pool2d_backward", max_pool2d_backward);

}  // namespace
}  // namespace plait::core
