// Random numbers: element i (in C order) depends on the stream's position and on i only.
#include "random/random.h"
#include "pointwise/math.h"

namespace plait::core {
namespace {

template <class T>
struct Uniform {
  T low, width;
  void operator()(const uint32_t *w, T *out) const {
    for (int i = 0; i < kMade<T>; i++) out[i] = low + unit(w, i, T()) * width;
  }
};

template <class T>
struct Normal {  // Box and Muller's transform; the first half of the elements takes cosines, the
                 // second sines
  T mean, deviation;
  void operator()(const uint32_t *w, T *out) const {
    constexpr int half = kMade<T> / 2;
    for (int i = 0; i < half; i++) {
      const T u = T(1) - unit(w, i, T());  // (0, 1]
      const T radius = deviation * scalar::math::sqrt(T(-2) * scalar::math::log(u));
      const T angle = T(6.283185307179586) * unit(w, half + i, T());
      out[i] = mean + radius * scalar::math::cos<true>(angle);
      out[half + i] = mean + radius * scalar::math::sin<true>(angle);
    }
  }
};

plait_status uniform_in(const plait_call *c, const DLTensor *to, double low, double high) {
  PLAIT_FLOATING(kind(to->dtype), (fill<T, kMade<T>>(c, to, Uniform<T>{T(low), T(high - low)})))
  return PLAIT_OK;
}
// Uniform numbers in float16 and bfloat16 from `bits` bits, so that none is rounded up to `high`.
plait_status uniform_halves(const plait_call *c, const DLTensor *to, double low, double high) {
  const Kind k = kind(to->dtype);
  const int bits = k == F16 ? 11 : 8;
  const float unit = 1.0f / float(1 << bits);
  fill<uint16_t, kWords>(c, to, [=](const uint32_t *w, uint16_t *out) {
    for (int i = 0; i < kWords; i++) {
      const double u = double(float(w[i] >> (32 - bits)) * unit);
      plait_value v{PLAIT_FLOAT, 0, {0}};
      v.u.f = low + u * (high - low);
      store_number(k, v, out + i);
    }
  });
  return PLAIT_OK;
}

plait_status uniform(plait_call *c) {  // uniform_(self, low, high, *, generator)
  const DLTensor *self = tensor(c, 0);
  const Kind k = kind(self->dtype);
  if (is_complex_kind(k)) {
    const Parts parts(self);
    return uniform_in(c, &parts.t, real(c, 1), real(c, 2, 1));
  }
  return (is_half(k) ? uniform_halves : uniform_in)(c, self, real(c, 1), real(c, 2, 1));
}
PLAIT_KERNEL("uniform_", uniform);

plait_status normal_in(const plait_call *c, const DLTensor *to, double mean, double deviation) {
  PLAIT_FLOATING(kind(to->dtype), (fill<T, kMade<T>>(c, to, Normal<T>{T(mean), T(deviation)})))
  return PLAIT_OK;
}
plait_status normal(plait_call *c) {  // normal_(self, mean, std, *, generator)
  const DLTensor *self = tensor(c, 0);
  const double mean = real(c, 1), deviation = real(c, 2, 1);
  // each part of a complex number has half the variance
  if (is_complex_kind(kind(self->dtype))) {
    const Parts parts(self);
    return normal_in(c, &parts.t, mean, deviation * 0.70710678118654752);
  }
  return normal_in(c, self, mean, deviation);
}
PLAIT_KERNEL("normal_", normal);

plait_status bernoulli_fill(plait_call *c) {  // bernoulli_(self, p, *, generator)
  const DLTensor *self = tensor(c, 0);
  const uint64_t below = threshold(real(c, 1, 0.5));
  alignas(16) char one[16] = {};
  plait_value number{PLAIT_INT, 0, {1}};
  store_number(kind(self->dtype), number, one);
  PLAIT_BY_SIZE(self->dtype.bits / 8, {
    T yes;
    memcpy(&yes, one, sizeof(T));
    fill<T, kWords>(c, self, [=](const uint32_t *w, T *out) {
      for (int i = 0; i < kWords; i++) out[i] = w[i] < below ? yes : T{};
    });
  })
  return PLAIT_OK;
}
PLAIT_KERNEL("bernoulli_", bernoulli_fill);

template <class T>
void draw(const plait_call *c, const DLTensor *p, DLTensor *out) {
  const int64_t n = numel(out);
  const Stream s(c, ceil_div(n, kWords) * kPhiloxBlocks);
  Counter from(p->ndim, p->shape, p->strides), to(out->ndim, out->shape, out->strides);
  uint32_t words[kWords];
  for (int64_t i = 0; i < n; i++, from.next(), to.next()) {
    if (i % kWords == 0) s.words(i / 4, words);
    data<T>(out)[to.offset] = T(words[i % kWords] < threshold(double(data<T>(p)[from.offset])));
  }
}

template <class T>
bool are_probabilities(const DLTensor *p) {
  Counter at(p->ndim, p->shape, p->strides);
  for (int64_t i = 0, n = numel(p); i < n; i++, at.next()) {
    const double x = double(data<T>(p)[at.offset]);
    if (!(x >= 0 && x <= 1)) return false;
  }
  return true;
}

plait_status bernoulli(
    plait_call *c) {  // bernoulli(self, *, generator): self holds the probabilities
  const DLTensor *p = tensor(c, 0);
  PLAIT_FLOATING(kind(p->dtype), {
    if (!are_probabilities<T>(p))
      return PLAIT_FAIL(c, PLAIT_VALUE_ERROR, "`%s` must hold probabilities, from 0 to 1",
                        plait_arg_at(c->op, 0)->name);
    draw<T>(c, p, result(c));
  })
  return PLAIT_OK;
}
PLAIT_KERNEL("bernoulli", bernoulli);

// Integers.

plait_status randint(plait_call *c) {  // randint(low, high, size, ...): in [low, high)
  const uint64_t low = uint64_t(integer(c, 0)), range = uint64_t(integer(c, 1)) - low;
  fill_whole(c, result(c),
             [=](const uint32_t *w, int j) { return int64_t(low + below(w, j, range)); });
  return PLAIT_OK;
}
PLAIT_KERNEL("randint", randint);

plait_status randperm(plait_call *c) {  // randperm(n, ...): Fisher and Yates' shuffle
  DLTensor *out = result(c);
  const int64_t n = numel(out);
  constexpr int per = kWords / 2;
  Workspace space;
  PLAIT_TRY(space.take(c, uint64_t(n ? n : 1) * sizeof(int64_t)));
  auto *p = space.as<int64_t>();
  for (int64_t i = 0; i < n; i++) p[i] = i;
  const Stream s(c, ceil_div(n, per) * kPhiloxBlocks);
  uint32_t w[kWords];
  for (int64_t i = 0; i < n; i++) {
    if (i % per == 0) s.words(i / per * kPhiloxBlocks, w);
    const int64_t j = i + int64_t(below(w, int(i % per), uint64_t(n - i)));
    const int64_t swap = p[i];
    p[i] = p[j];
    p[j] = swap;
  }
  const Kind k = kind(out->dtype);
  for (int64_t i = 0; i < n; i++)
    store_number(k, plait_value{PLAIT_INT, 0, {p[i]}}, data<char>(out) + i * size_of(k));
  return PLAIT_OK;
}
PLAIT_KERNEL("randperm", randperm);

}  // namespace
}  // namespace plait::core
