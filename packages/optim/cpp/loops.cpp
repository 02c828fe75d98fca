// The compiler vectorises these loops. Each is written once, as an always-inlined body, and
// instantiated in functions that are compiled for one instruction set: no symbol of the AVX2 set
// can be mistaken for a baseline one. setup.py compiles this file with -O3 -fno-math-errno: a sqrt
// that may set errno keeps a loop scalar.
#include "loops.hpp"

#define PLAIT_INLINE static inline __attribute__((always_inline))

namespace plait::optim {
namespace {

PLAIT_INLINE float root(float x) { return __builtin_sqrtf(x); }
PLAIT_INLINE double root(double x) { return __builtin_sqrt(x); }

template <class T, bool amsgrad, bool l2>
PLAIT_INLINE void adam_body(const AdamScalars &s, void *const *operands, int64_t n) {
  T *__restrict p = static_cast<T *>(operands[0]);
  const T *__restrict g = static_cast<const T *>(operands[1]);
  T *__restrict m = static_cast<T *>(operands[2]);
  T *__restrict v = static_cast<T *>(operands[3]);
  T *__restrict top = static_cast<T *>(operands[4]);
  const T sign = T(s.sign), decay = T(s.l2), keep = T(s.keep), weight1 = T(s.weight1),
          beta2 = T(s.beta2), weight2 = T(s.weight2), step = T(s.step),
          inverse_root = T(s.inverse_root), eps = T(s.eps);
  for (int64_t i = 0; i < n; i++) {
    T d = sign * g[i];
    if (l2) d += decay * p[i];
    const T first = m[i] + weight1 * (d - m[i]);
    const T second = beta2 * v[i] + weight2 * d * d;
    m[i] = first;
    v[i] = second;
    T scale = second;
    if (amsgrad) top[i] = scale = top[i] > second ? top[i] : second;
    p[i] = keep * p[i] - step * (first / (root(scale) * inverse_root + eps));
  }
}

template <class T>
PLAIT_INLINE void adam_any(const AdamScalars &s, void *const *operands, int64_t n) {
  if (operands[4])
    s.l2 != 0 ? adam_body<T, true, true>(s, operands, n)
              : adam_body<T, true, false>(s, operands, n);
  else
    s.l2 != 0 ? adam_body<T, false, true>(s, operands, n)
              : adam_body<T, false, false>(s, operands, n);
}

enum Momentum { none, first, later };

template <class T, Momentum momentum, bool nesterov>
PLAIT_INLINE void sgd_body(const SgdScalars &s, void *const *operands, int64_t n) {
  T *__restrict p = static_cast<T *>(operands[0]);
  const T *__restrict g = static_cast<const T *>(operands[1]);
  T *__restrict buffer = static_cast<T *>(operands[2]);
  const T sign = T(s.sign), decay = T(s.l2), lr = T(s.lr), mu = T(s.momentum), damped = T(s.damped);
  const bool l2 = s.l2 != 0;
  for (int64_t i = 0; i < n; i++) {
    T d = sign * g[i];
    d = l2 ? d + decay * p[i] : d;
    if (momentum != none) {
      const T b = momentum == first ? d : mu * buffer[i] + damped * d;
      buffer[i] = b;
      d = nesterov ? d + mu * b : b;
    }
    p[i] -= lr * d;
  }
}

template <class T>
PLAIT_INLINE void sgd_any(const SgdScalars &s, void *const *operands, int64_t n) {
  if (!s.momentum_on)
    sgd_body<T, none, false>(s, operands, n);
  else if (s.first)
    s.nesterov ? sgd_body<T, first, true>(s, operands, n)
               : sgd_body<T, first, false>(s, operands, n);
  else
    s.nesterov ? sgd_body<T, later, true>(s, operands, n)
               : sgd_body<T, later, false>(s, operands, n);
}

}  // namespace

#define PLAIT_LOOPS(set, attribute)                                                \
  namespace {                                                                      \
  attribute void set##_adam_f32(const AdamScalars &s, void *const *o, int64_t n) { \
    adam_any<float>(s, o, n);                                                      \
  }                                                                                \
  attribute void set##_adam_f64(const AdamScalars &s, void *const *o, int64_t n) { \
    adam_any<double>(s, o, n);                                                     \
  }                                                                                \
  attribute void set##_sgd_f32(const SgdScalars &s, void *const *o, int64_t n) {   \
    sgd_any<float>(s, o, n);                                                       \
  }                                                                                \
  attribute void set##_sgd_f64(const SgdScalars &s, void *const *o, int64_t n) {   \
    sgd_any<double>(s, o, n);                                                      \
  }                                                                                \
  }                                                                                \
  const Loops set##_loops = {#set, set##_adam_f32, set##_adam_f64, set##_sgd_f32, set##_sgd_f64};

PLAIT_LOOPS(base, )

#if defined(__x86_64__)
PLAIT_LOOPS(avx2, __attribute__((target("avx2,fma"))))
#endif

const Loops &best_loops(const char *wanted) {
#if defined(__x86_64__)
  const bool base = wanted && __builtin_strcmp(wanted, "base") == 0;
  __builtin_cpu_init();
  if (!base && __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma")) return avx2_loops;
#else
  (void)wanted;
#endif
  return base_loops;
}

}  // namespace plait::optim
