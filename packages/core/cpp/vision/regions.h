// Regions of interest along one side of an image: where the samples of their bins lie, and which
// pixels a bin has. The kernels of the CPU and of GPUs use the same functions.
#pragma once
#include <math.h>

#include "kernel/kernel.h"
#include "pointwise/math.h"

namespace plait::regions {

constexpr double kTooMany = 2147483648.0;  // samples of a bin: then it has none

enum class Pooling : int32_t { kAlign, kPool, kSensitiveAlign, kSensitivePool };

// What a call says of all regions.
struct Geometry {
  Pooling how;
  int64_t n, c, h, w;       // images
  int64_t count, channels;  // of the result
  int64_t ph, pw;           // bins
  double scale;
  int64_t ratio;
  bool aligned;

  PLAIT_HD int64_t area() const { return h * w; }
  PLAIT_HD int64_t bins() const { return ph * pw; }
  PLAIT_HD bool is_sensitive() const { return how >= Pooling::kSensitiveAlign; }
  // The channel of the images that bin (i, j) of a channel of the result reads.
  PLAIT_HD int64_t channel(int64_t o, int64_t i, int64_t j) const {
    return is_sensitive() ? (o * ph + i) * pw + j : o;
  }
};

// The geometry of a call: images of shape `size`; the numbers begin at argument `at`.
inline Geometry geometry(const plait_call *c, Pooling how, const int64_t *size, int at) {
  Geometry v{};
  v.how = how;
  v.n = size[0], v.c = size[1], v.h = size[2], v.w = size[3];
  v.count = core::tensor(c, 1)->shape[0];
  v.scale = core::real(c, at);
  v.ph = core::integer(c, at + 1), v.pw = core::integer(c, at + 2);
  const bool has_samples = how == Pooling::kAlign || how == Pooling::kSensitiveAlign;
  v.ratio = has_samples ? core::integer(c, at + 3) : 0;
  v.aligned = how == Pooling::kAlign ? core::integer(c, at + 4) != 0 : has_samples;
  v.channels = v.is_sensitive() ? v.c / v.bins() : v.c;
  return v;
}

// Whether a number names one of n images: the number is cut off behind the point.
PLAIT_HD bool is_image(double x, int64_t n) { return x > -1 && x < double(n); }

// The samples of the bins along one side.
template <class T>
struct Samples {
  T start, step;         // of the first bin; from bin to bin
  double count;          // of a bin
  int64_t pixels;
  bool may_lie_outside;  // the number of samples comes from the region, which may be large

  // The samples of bin b that may lie in the image.
  PLAIT_HD void range(int64_t b, int64_t *first, int64_t *last) const {
    *first = *last = 0;
    if (!(count >= 1 && count < kTooMany) || pixels == 0) return;
    if (may_lie_outside) {  // half a pixel to a pixel apart
      const double base = double(start) + double(b) * double(step), apart = double(step) / count;
      const double from = floor((-1 - base) / apart) - 2;
      const double to = ceil((double(pixels) - base) / apart) + 2;
      if (!(from < count && to > 0)) return;
      *first = from > 0 ? int64_t(from) : 0;
      *last = int64_t(to < count ? to : count);
    } else {
      *last = int64_t(count);
    }
  }
  // Sample i of bin b lies at `low`, and as far as `part` says at the next pixel; false if it lies
  // outside of the image.
  PLAIT_HD bool at(int64_t b, int64_t i, int64_t *low, T *part) const {
    T y = start + T(b) * step + T(float(i) + 0.5f) * step / T(count);
    if (!(y >= T(-1) && y <= T(pixels))) return false;
    if (y < T(0)) y = T(0);
    *low = int64_t(y);
    *part = y - T(*low);
    if (*low >= pixels - 1) *low = pixels - 1, *part = T(0);
    return true;
  }
};

// Those of the side from `from` to `to` of a region.
template <class T>
PLAIT_HD Samples<T> samples_of(const Geometry &g, T from, T to, int64_t bins, int64_t pixels) {
  const T scale = T(g.scale), shift = g.aligned ? T(0.5) : T(0);
  const T start = from * scale - shift;
  T length = to * scale - shift - start;
  if (!g.aligned && length < T(1)) length = T(1);
  const T step = length / T(bins);
  return {start, step, g.ratio > 0 ? double(g.ratio) : ceil(double(step)), pixels, g.ratio <= 0};
}

// What the sum of the samples of a bin is divided by.
template <class T>
PLAIT_HD T divisor_of(const Geometry &g, const Samples<T> &rows, const Samples<T> &columns) {
  const double samples = rows.count * columns.count;
  return T(g.how == Pooling::kAlign && !(samples > 1) ? 1 : samples);
}

PLAIT_HD int64_t within(double x, int64_t end) {
  return !(x > 0) ? 0 : x < double(end) ? int64_t(x) : end;
}

// The pixels [first, last) of bin b of a side whose ends are rounded to pixels; `more` is 1 if the
// last one belongs to it. No pixel comes from `end` on.
template <class T>
PLAIT_HD void span(T from, T to, int64_t more, int64_t bins, int64_t b, int64_t end, int64_t *first,
                   int64_t *last) {
  const double low = round(double(from)), high = round(double(to));
  const double length = high - low + double(more);
  const T size = T(length > 1 ? length : 1) / T(bins);
  *first = within(floor(double(T(b) * size)) + low, end);
  *last = within(ceil(double(T(b + 1) * size)) + low, end);
  // a place that is not a number
  if (!(low - low == 0 && high - high == 0) || *last < *first) *last = *first;
}

// nan counts as the largest; the first of equal elements is kept.
template <class T>
PLAIT_HD bool is_better(T x, T best) {
  return x > best || (x != x && best == best);
}

}  // namespace plait::regions
