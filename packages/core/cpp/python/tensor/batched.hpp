// Batched tensors, as far as core knows them: another package makes them (plait/batched.h).
#pragma once
#include <plait/batched.h>

#include "tensor/tensor.hpp"

namespace plait::core {

extern plait_batched batched;

inline bool is_batched(const plait_tensor *t) {
  const auto ask = __atomic_load_n(&batched.is_batched, __ATOMIC_ACQUIRE);
  return ask && ask(t);
}
// Says that Python is about to get the address of a tensor's memory, or to replace that. False,
// with an exception, if a call that computes its elements failed.
bool note_address(const plait_tensor *);
// Says that Python reads the elements of a tensor. False, with an exception, for a batched one,
// whose elements cannot be read, or if a call that computes them failed.
bool refuse_batched(const plait_tensor *, const char *caller);
// Says that a tensor was made by other means than an operator.
inline void note_new(const plait_tensor *t) {
  if (const auto note = __atomic_load_n(&batched.note_new, __ATOMIC_ACQUIRE)) note(t);
}
// False, with an exception, within a call of vmap: gradients of samples would stay in `.grad`.
inline bool may_call_backward() {
  const auto check = __atomic_load_n(&batched.check_backward, __ATOMIC_ACQUIRE);
  return !check || check() == 0;
}
// A size or stride as Python gets it.
inline PyObject *size_number(int64_t n) {
  const auto make = __atomic_load_n(&batched.size_number, __ATOMIC_ACQUIRE);
  return make ? static_cast<PyObject *>(make(n)) : PyLong_FromLongLong(n);
}
bool add_batched(PyObject *module);

}  // namespace plait::core
