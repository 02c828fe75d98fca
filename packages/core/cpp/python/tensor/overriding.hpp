// Attributes, methods and slots of Tensor that ask modes, and classes derived from Tensor, before
// they do their work (docs/design/0033): asking<f> stands in tables where entry<f> would, and
// special<f, name> in slots. Tensors whose class is Tensor itself pay a comparison.
#pragma once
#include "tensor/tensor.hpp"

namespace plait::core {

// Whether a call goes on without asking: a plain tensor, and no mode in any thread.
inline bool is_plain(PyObject *o) {
  return is_exact(o) && !__atomic_load_n(&state.modes, __ATOMIC_RELAXED);
}

using Code = void (*)();
// Each is true if a class or mode answered or raised: the result is in the last argument then.
// Tables are searched for the function `code`, to find the attribute's name.
bool asked_get(Code code, PyObject *self, PyObject **answer);
bool asked_set(Code code, PyObject *self, PyObject *value, int *answer);
bool asked_call(Code code, PyObject *self, PyObject *const *args, Py_ssize_t n, PyObject *kwnames,
                PyObject **answer);
// `args` as the convention of the method's table says: nothing, one argument, or a tuple
bool asked_call(Code code, PyObject *self, PyObject *args, PyObject *kwargs, PyObject **answer);
// The attribute of Tensor of this name, with all arguments of a call.
bool asked_name(const char *name, std::initializer_list<PyObject *> args, PyObject **answer);
bool asked_name(const char *name, std::initializer_list<PyObject *> args, Py_ssize_t *answer);
bool asked_name(const char *name, std::initializer_list<PyObject *> args, int *answer);
// Whether the class of an operand of a Python operator, or any mode, sees the call.
bool is_asked(PyObject *);
// A call of a method in Tensor's name or its reflected form; NotImplemented for a TypeError.
bool asked_operator(const char *name, const char *reflected, PyObject *a, PyObject *b,
                    PyObject **answer);
// Whether the class that a layer watches gave the number in a tensor: *number is it then,
// or nullptr with an exception.
bool read_watched(plait_tensor *, PyObject **number);
bool add_overriding(PyObject *module);

template <auto f, class F = decltype(f)>
struct Asking;
template <auto f>
struct Asking<f, PyObject *(*)(PyObject *, void *)> {
  static PyObject *call(PyObject *self, void *closure) {
    PyObject *answer;
    if (__builtin_expect(!is_plain(self), 0) &&
        asked_get(reinterpret_cast<Code>(&call), self, &answer))
      return answer;
    return entry<f>(self, closure);
  }
};
template <auto f>
struct Asking<f, int (*)(PyObject *, PyObject *, void *)> {
  static int call(PyObject *self, PyObject *value, void *closure) {
    int answer;
    if (__builtin_expect(!is_plain(self), 0) &&
        asked_set(reinterpret_cast<Code>(&call), self, value, &answer))
      return answer;
    return entry<f>(self, value, closure);
  }
};
template <auto f>
struct Asking<f, PyObject *(*)(PyObject *, PyObject *)> {
  static PyObject *call(PyObject *self, PyObject *args) {
    PyObject *answer;
    if (__builtin_expect(!is_plain(self), 0) &&
        asked_call(reinterpret_cast<Code>(&call), self, args, nullptr, &answer))
      return answer;
    return entry<f>(self, args);
  }
};
template <auto f>
struct Asking<f, PyObject *(*)(PyObject *, PyObject *, PyObject *)> {
  static PyObject *call(PyObject *self, PyObject *args, PyObject *kwargs) {
    PyObject *answer;
    if (__builtin_expect(!is_plain(self), 0) &&
        asked_call(reinterpret_cast<Code>(&call), self, args, kwargs, &answer))
      return answer;
    return entry<f>(self, args, kwargs);
  }
};
template <auto f>
struct Asking<f, PyObject *(*)(PyObject *, PyObject *const *, Py_ssize_t, PyObject *)> {
  static PyObject *call(PyObject *self, PyObject *const *args, Py_ssize_t n, PyObject *kwnames) {
    PyObject *answer;
    if (__builtin_expect(!is_plain(self), 0) &&
        asked_call(reinterpret_cast<Code>(&call), self, args, n, kwnames, &answer))
      return answer;
    return entry<f>(self, args, n, kwnames);
  }
};
template <auto f>
constexpr auto asking = &Asking<f>::call;

inline Object as_argument(PyObject *o) { return Object(new_reference(o)); }
inline Object as_argument(Py_ssize_t i) { return Object(PyLong_FromSsize_t(i)); }

template <auto f, const char *name, class F = decltype(f)>
struct Special;
template <auto f, const char *name, class R>
struct Special<f, name, R (*)(PyObject *)> {
  static R call(PyObject *self) {
    R answer;
    if (__builtin_expect(!is_plain(self), 0) && asked_name(name, {self}, &answer)) return answer;
    return entry<f>(self);
  }
};
template <auto f, const char *name, class R, class Key>
struct Special<f, name, R (*)(PyObject *, Key)> {
  static R call(PyObject *self, Key key) {
    if (__builtin_expect(!is_plain(self), 0)) {
      R answer;
      const Object argument = as_argument(key);
      if (!argument || asked_name(name, {self, argument.get()}, &answer))
        return argument ? answer : R{};
    }
    return entry<f>(self, key);
  }
};
template <auto f, const char *name>
struct Special<f, name, int (*)(PyObject *, PyObject *, PyObject *)> {
  static int call(PyObject *self, PyObject *key, PyObject *value) {
    int answer;
    if (__builtin_expect(!is_plain(self), 0) && value &&
        asked_name(name, {self, key, value}, &answer))
      return answer;
    return entry<f>(self, key, value);
  }
};
template <auto f, const char *name>
constexpr auto special = &Special<f, name>::call;

namespace names {  // of special methods; templates take the addresses of objects with linkage
inline constexpr char len[] = "__len__", contains[] = "__contains__", bool_[] = "__bool__",
                      int_[] = "__int__", float_[] = "__float__", index[] = "__index__",
                      getitem[] = "__getitem__", setitem[] = "__setitem__", positive[] = "positive";
}  // namespace names

}  // namespace plait::core
