// Functions that CPython calls, made safe for C: entry<f> is f, but a std::bad_alloc becomes
// Python's MemoryError. CPython's frames are C: an exception that passes them leaves the
// interpreter broken.
//
//   PyMethodDef methods[] = {{"size", entry<size>, METH_NOARGS, nullptr}, ...};
//
// Only bad_alloc is caught: unwinding by pthread_exit must go on.
#ifndef PLAIT_ENTRY_HPP
#define PLAIT_ENTRY_HPP
#include <Python.h>

#include <new>
#include <type_traits>

namespace plait {

template <auto f, class F = decltype(f)>
struct Entry;

template <auto f, class R, class... Args>
struct Entry<f, R (*)(Args...)> {
  static R call(Args... args) {
    try {
      return f(args...);
    } catch (const std::bad_alloc &) {
      PyErr_SetString(PyExc_MemoryError, "out of memory");
      if constexpr (std::is_pointer_v<R>) {
        return nullptr;
      } else {
        return R(-1);
      }
    }
  }
};

template <auto f>
constexpr auto entry = &Entry<f>::call;

}  // namespace plait
#endif  // PLAIT_ENTRY_HPP
