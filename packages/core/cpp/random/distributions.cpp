// Distributions by transformation of uniform numbers: exponential, Cauchy, log-normal, geometric,
// and integers of a range.
#include <math.h>

#include "pointwise/math.h"
#include "random/random.h"

namespace plait::core {
namespace {

template <class T>
struct Exponential {
  T scale;  // -1 / rate
  void operator()(const uint32_t *w, T *out) const {
    for (int i = 0; i < kMade<T>; i++) out[i] = scale * scalar::math::log(open_unit(w, i, T()));
  }
};
template <class T>
struct Cauchy {
  T median, sigma;
  void operator()(const uint32_t *w, T *out) const {
    for (int i = 0; i < kMade<T>; i++) {
      const T angle = T(3.141592653589793) * (open_unit(w, i, T()) - T(0.5));
      out[i] = median + sigma * scalar::math::tan<true>(angle);
    }
  }
};
template <class T>
struct LogNormal {  // pairs by Box and Muller's transform, as in normal_
  T mean, deviation;
  void operator()(const uint32_t *w, T *out) const {
    constexpr int half = kMade<T> / 2;
    for (int i = 0; i < half; i++) {
      const T u = open_unit(w, i, T()), angle = T(6.283185307179586) * unit(w, half + i, T());
      const T radius = deviation * scalar::math::sqrt(T(-2) * scalar::math::log(u));
      out[i] = scalar::math::exp(mean + radius * scalar::math::cos<true>(angle));
      out[half + i] = scalar::math::exp(mean + radius * scalar::math::sin<true>(angle));
    }
  }
};

plait_status exponential(plait_call *c) {  // exponential_(self, lambd, *, generator)
  const DLTensor *self = tensor(c, 0);
  const double rate = real(c, 1, 1);
  PLAIT_FLOATING(kind(self->dtype), (fill<T, kMade<T>>(c, self, Exponential<T>{T(-1 / rate)})))
  return PLAIT_OK;
}
plait_status cauchy(plait_call *c) {  // cauchy_(self, median, sigma, *, generator)
  const DLTensor *self = tensor(c, 0);
  const double median = real(c, 1), sigma = real(c, 2, 1);
  PLAIT_FLOATING(kind(self->dtype), (fill<T, kMade<T>>(c, self, Cauchy<T>{T(median), T(sigma)})))
  return PLAIT_OK;
}
plait_status log_normal(plait_call *c) {  // log_normal_(self, mean, std, *, generator)
  const DLTensor *self = tensor(c, 0);
  const double mean = real(c, 1, 1), deviation = real(c, 2, 2);
  PLAIT_FLOATING(kind(self->dtype),
                 (fill<T, kMade<T>>(c, self, LogNormal<T>{T(mean), T(deviation)})))
  return PLAIT_OK;
}
PLAIT_KERNEL("exponential_", exponential);
PLAIT_KERNEL("cauchy_", cauchy);
PLAIT_KERNEL("log_normal_", log_normal);

int64_t largest(Kind k) {  // up to this all whole numbers are exact
  switch (k) {
    case Bool: return 1;
    case F16: return 1 << 11;
    case BF16: return 1 << 8;
    case F32: return 1 << 24;
    case F64: return int64_t(1) << 53;
    case U64:
    case I64: return INT64_MAX;
    default: {
      const int bits = size_of(k) * 8 - (k == I8 || k == I16 || k == I32);
      return (int64_t(1) << bits) - 1;
    }
  }
}

plait_status geometric(
    plait_call *c) {  // geometric_(self, p, *, generator): trials up to a success
  const DLTensor *self = tensor(c, 0);
  const double scale = 1 / log1p(-real(c, 1));
  const Kind k = kind(self->dtype);
  if (unsigned(k) >= unsigned(kReal) && !is_half(k)) return PLAIT_DECLINE;
  const int64_t top = k >= F32 ? INT64_MAX : largest(k);
  fill_whole(c, self, [=](const uint32_t *w, int j) {
    const double trials = floor(log(open_unit(w, j, double())) * scale) + 1;
    return trials < double(top) ? int64_t(trials) : top;
  });
  return PLAIT_OK;
}
PLAIT_KERNEL("geometric_", geometric);

plait_status random_from(plait_call *c) {  // random_.from(self, low, high, *, generator)
  const DLTensor *self = tensor(c, 0);
  const Kind k = kind(self->dtype);
  if (unsigned(k) >= unsigned(kReal) && !is_half(k)) return PLAIT_DECLINE;
  const bool open = c->in[2].tag == PLAIT_NONE;  // up to the largest number of the dtype
  const uint64_t low = uint64_t(integer(c, 1));
  const uint64_t range = (open ? uint64_t(largest(k)) + 1 : uint64_t(integer(c, 2))) - low;
  fill_whole(c, self, [=](const uint32_t *w, int j) { return int64_t(low + below(w, j, range)); });
  return PLAIT_OK;
}
PLAIT_KERNEL("random_.from", random_from);

}  // namespace
}  // namespace plait::core
