// What the kernels of random operators share: their registration, their arguments, their generator.
#pragma once
#include "random/elements.hpp"
#include "random/generator.hpp"
#include "random/operators.hpp"

// Registers a kernel.
#define PLAIT_DRAWS(op, function) \
  const bool function##_draws = ::plait::pytorch::add_random_operator(op, function)

namespace plait::pytorch {

inline bool add_random_operator(const char *op, plait_kernel kernel) {
  random_operators().push_back({op, kernel});
  return true;
}

inline double real(const plait_call *c, int i, double absent = 0) {
  const plait_value &v = c->in[i];
  return v.tag == PLAIT_NONE ? absent : v.tag == PLAIT_FLOAT ? v.u.f : double(v.u.i);
}
inline DLTensor &target(const plait_call *c) { return c->in[0].u.t->dl; }

template <class T>
T *data(const DLTensor &t) {
  return static_cast<T *>(t.data);
}

// Runs `f(mt)` with the generator of the call, or leaves the call to others.
template <class F>
plait_status drawing(plait_call *c, const F &f) {
  Twister *t = twister_of(c);
  if (!t) return PLAIT_DECLINE;
  const std::lock_guard<std::mutex> lock(t->mutex);
  return f(t->mt);
}

}  // namespace plait::pytorch
