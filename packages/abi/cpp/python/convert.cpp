// Python objects to the values of a call, by the kinds of the schema (docs/design/0003).
#include <plait/index.hpp>

#include "binding.hpp"

namespace plait::python {

void *Scratch::far_room(size_t bytes) {
  void *p = std::malloc(bytes ? bytes : 1);
  if (!p) Py_FatalError("plait: out of memory for the arguments of a call");
  at_end(std::free, p);
  return p;
}

void Scratch::at_end(void (*run)(void *), void *p) {
  // nodes that do not fit come from malloc
  void *memory =
      used_ + sizeof(Node) <= sizeof buffer_ ? room(sizeof(Node)) : std::malloc(sizeof(Node));
  if (!memory) Py_FatalError("plait: out of memory for the arguments of a call");
  nodes_ = new (memory) Node{nodes_, run, p};
}

void Scratch::clean() {
  while (nodes_) {
    Node *n = nodes_;
    nodes_ = n->next;
    n->run(n->p);
    const char *at = reinterpret_cast<const char *>(n);
    if (at < buffer_ || at >= buffer_ + sizeof buffer_) std::free(n);
  }
}

namespace {

bool named(PyObject *o, const char *type) { return strcmp(Py_TYPE(o)->tp_name, type) == 0; }
bool numpy_bool(PyObject *o) { return named(o, "numpy.bool") || named(o, "numpy.bool_"); }

int fail_large(PyObject *o) {
  PyErr_Format(PyExc_OverflowError, "an int of 64 bits is required, got %R", o);
  return PLAIT_CONVERSION_FAILED;
}

// an exception of these kinds means "not this type"; others are the user's own and are passed on
int refused() {
  if (!PyErr_ExceptionMatches(PyExc_TypeError) && !PyErr_ExceptionMatches(PyExc_ValueError) &&
      !PyErr_ExceptionMatches(PyExc_RuntimeError))
    return PLAIT_CONVERSION_FAILED;
  PyErr_Clear();
  return PLAIT_NOT_CONVERTIBLE;
}

int int_from(PyObject *o, int64_t *out) {
  int overflow = 0;
  if (PyLong_Check(o)) {
    *out = PyLong_AsLongLongAndOverflow(o, &overflow);
    return overflow ? fail_large(o) : PLAIT_CONVERTED;
  }
  if (!PyIndex_Check(o)) return PLAIT_NOT_CONVERTIBLE;
  Object n(index_of(o));
  if (!n) return refused();
  *out = PyLong_AsLongLongAndOverflow(n.get(), &overflow);
  return overflow ? fail_large(o) : PLAIT_CONVERTED;
}

int float_from(PyObject *o, double *out) {
  if (PyFloat_Check(o)) return *out = PyFloat_AS_DOUBLE(o), PLAIT_CONVERTED;
  if (is_recorded_size(o)) {
    int64_t n = 0;
    const int done = int_from(o, &n);
    return *out = double(n), done;
  }
  PyNumberMethods *m = Py_TYPE(o)->tp_as_number;
  if (!PyLong_Check(o) && !(m && (m->nb_float || m->nb_index))) return PLAIT_NOT_CONVERTIBLE;
  *out = PyFloat_AsDouble(o);
  if (*out != -1.0 || !PyErr_Occurred()) return PLAIT_CONVERTED;
  return PyErr_ExceptionMatches(PyExc_OverflowError) ? PLAIT_CONVERSION_FAILED : refused();
}

int complex_from(PyObject *o, Scratch *scratch, plait_value *v) {
  const Py_complex c = PyComplex_AsCComplex(o);
  if (c.real == -1.0 && PyErr_Occurred()) return refused();
  if (!scratch) return PLAIT_NOT_CONVERTIBLE;
  auto *pair = static_cast<double *>(scratch->room(2 * sizeof(double)));
  pair[0] = c.real;
  pair[1] = c.imag;
  v->tag = PLAIT_COMPLEX;
  v->n = 0;
  v->u.fs = pair;
  return PLAIT_CONVERTED;
}

// one int, a sequence of ints, or (length given) one int for all of them
int ints_from(const plait_arg &a, PyObject *o, Bound &b, plait_value *v) {
  int64_t one;
  Py_ssize_t n = 1;
  Object list;
  if (!PyTuple_Check(o) && !PyList_Check(o)) {
    if (PyUnicode_Check(o) || PyBytes_Check(o) || PyDict_Check(o) || PyAnySet_Check(o))
      return PLAIT_NOT_CONVERTIBLE;
    // a flag is no dimension: var(x, True) means another overload
    const int done = PyBool_Check(o) ? PLAIT_NOT_CONVERTIBLE : int_from(o, &one);
    if (done == PLAIT_CONVERSION_FAILED) return done;
    if (done == PLAIT_CONVERTED) {
      n = a.length ? a.length : 1;
      auto *to = static_cast<int64_t *>(b.scratch.room(size_t(n) * sizeof(int64_t)));
      for (Py_ssize_t i = 0; i < n; i++) to[i] = one;
      *v = ints(to, size_t(n));
      return PLAIT_CONVERTED;
    }
    if (!PySequence_Check(o)) return PLAIT_NOT_CONVERTIBLE;
  }
  list = Object(sequence_of(o, ""));
  if (!list) return refused();
  n = PySequence_Fast_GET_SIZE(list.get());
  if (n > 100000 || (a.length && n != a.length && n != 1)) return PLAIT_NOT_CONVERTIBLE;
  const Py_ssize_t room = a.length > n ? a.length : n;
  auto *to = static_cast<int64_t *>(b.scratch.room(size_t(room) * sizeof(int64_t)));
  // the length is read in each round: an element's __index__ may change the list
  for (Py_ssize_t i = 0; i < n && i < PySequence_Fast_GET_SIZE(list.get()); i++) {
    const int done = int_from(PySequence_Fast_GET_ITEM(list.get(), i), to + i);
    if (done != PLAIT_CONVERTED) return done;
  }
  if (PySequence_Fast_GET_SIZE(list.get()) < n) return PLAIT_NOT_CONVERTIBLE;
  for (Py_ssize_t i = n; i < room; i++) to[i] = to[0];
  *v = ints(to, size_t(room));
  return PLAIT_CONVERTED;
}

int floats_from(PyObject *o, Bound &b, plait_value *v) {
  double one;
  int done = PyTuple_Check(o) || PyList_Check(o) ? int(PLAIT_NOT_CONVERTIBLE) : float_from(o, &one);
  if (done == PLAIT_CONVERSION_FAILED) return done;
  Object list;
  if (done == PLAIT_NOT_CONVERTIBLE) {
    if (!PySequence_Check(o) || PyUnicode_Check(o)) return PLAIT_NOT_CONVERTIBLE;
    list = Object(sequence_of(o, ""));
    if (!list) return refused();
  }
  const Py_ssize_t n = list ? PySequence_Fast_GET_SIZE(list.get()) : 1;
  auto *to = static_cast<double *>(b.scratch.room(size_t(n) * sizeof(double)));
  if (!list) to[0] = one;
  for (Py_ssize_t i = 0; list && i < n; i++) {
    if (i >= PySequence_Fast_GET_SIZE(list.get())) return PLAIT_NOT_CONVERTIBLE;
    done = float_from(PySequence_Fast_GET_ITEM(list.get(), i), to + i);
    if (done != PLAIT_CONVERTED) return done;
  }
  *v = plait_value{PLAIT_FLOATS, uint32_t(n), {0}};
  v->u.fs = to;
  return PLAIT_CONVERTED;
}

int tensors_from(const plait_arg &a, PyObject *o, Bound &b, plait_value *v) {
  if (!PyTuple_Check(o) && !PyList_Check(o)) return PLAIT_NOT_CONVERTIBLE;
  const Items items(o);
  if (!items.valid()) return PLAIT_CONVERSION_FAILED;
  const Py_ssize_t n = items.size();
  auto **to = static_cast<plait_tensor **>(b.scratch.room(size_t(n) * sizeof(plait_tensor *)));
  for (Py_ssize_t i = 0; i < n; i++) {
    if (i >= items.size()) return PLAIT_NOT_CONVERTIBLE;
    PyObject *item = items[i];
    to[i] = nullptr;
    if (item == Py_None && (a.flags & PLAIT_ARG_OPTIONAL)) continue;
    plait_value one;
    const int done = tensor_from(item, b, &one);
    if (done != PLAIT_CONVERTED) return done;
    to[i] = one.u.t;
    // the list may be changed by another thread while the call runs without the GIL
    plait_retain(one.u.t);
    b.scratch.keep(one.u.t);
  }
  *v = tensors(to, size_t(n));
  return PLAIT_CONVERTED;
}

int pair_value(double re, double im, Scratch *scratch, plait_value *v) {
  auto *pair = scratch ? static_cast<double *>(scratch->room(2 * sizeof(double))) : nullptr;
  if (!pair) return PLAIT_NOT_CONVERTIBLE;
  pair[0] = re;
  pair[1] = im;
  *v = plait_value{PLAIT_COMPLEX, 0, {0}};
  v->u.fs = pair;
  return PLAIT_CONVERTED;
}

// Those that serve tensors whose bytes mean something else (plait_runtime::layer).
constexpr uint64_t layers_of_bytes = (uint64_t(1) << 16) - 1;

// the number that a 0-d tensor holds
int number_in(PyObject *o, plait_tensor *t, Scratch *scratch, plait_value *v) {
  if (t->dl.ndim != 0 || !t->dl.data) return PLAIT_NOT_CONVERTIBLE;
  plait_thread *thread = state.runtime->thread();
  Tensor here;
  const plait_status s = state.runtime->host_copy(thread, t, here.out());
  if (s < 0 && t->layers & layers_of_bytes) {  // a tensor, then, for whoever takes one
    state.runtime->clear(thread);
    return PLAIT_NOT_CONVERTIBLE;
  }
  if (s < 0) return raise(thread, s), PLAIT_CONVERSION_FAILED;
  const void *p = here.get()->dl.data;
  switch (key(t->dl.dtype)) {
    case key(dtype::bool_):
      return *v = value(*static_cast<const uint8_t *>(p) != 0), PLAIT_CONVERTED;
    case key(dtype::uint8):
      return *v = value(int64_t(*static_cast<const uint8_t *>(p))), PLAIT_CONVERTED;
    case key(dtype::int8):
      return *v = value(int64_t(*static_cast<const int8_t *>(p))), PLAIT_CONVERTED;
    case key(dtype::int16):
      return *v = value(int64_t(*static_cast<const int16_t *>(p))), PLAIT_CONVERTED;
    case key(dtype::int32):
      return *v = value(int64_t(*static_cast<const int32_t *>(p))), PLAIT_CONVERTED;
    case key(dtype::int64): return *v = value(*static_cast<const int64_t *>(p)), PLAIT_CONVERTED;
    case key(dtype::float32):
      return *v = value(double(*static_cast<const float *>(p))), PLAIT_CONVERTED;
    case key(dtype::float64): return *v = value(*static_cast<const double *>(p)), PLAIT_CONVERTED;
    case key(dtype::complex128): {
      const auto *parts = static_cast<const double *>(p);
      return pair_value(parts[0], parts[1], scratch, v);
    }
    case key(dtype::complex64): {
      const auto *parts = static_cast<const float *>(p);
      return pair_value(parts[0], parts[1], scratch, v);
    }
    default: break;
  }
  double x;  // other dtypes are read by the tensor's own item()
  Object number(PyObject_CallMethod(o, "item", nullptr));
  if (!number) return PLAIT_CONVERSION_FAILED;
  int64_t i;
  if (PyLong_Check(number.get())) {
    const int done = int_from(number.get(), &i);
    if (done == PLAIT_CONVERTED) *v = value(i);
    return done;
  }
  const int done = float_from(number.get(), &x);
  if (done == PLAIT_CONVERTED) *v = value(x);
  return done;
}

int scalar_from(PyObject *o, Bound &b, plait_value *v) {
  const int done = number_from(o, &b.scratch, v);
  if (done != PLAIT_NOT_CONVERTIBLE) return done;
  plait_tensor *t = unwrap(o);
  if (!t) return PyErr_Occurred() ? PLAIT_CONVERSION_FAILED : PLAIT_NOT_CONVERTIBLE;
  b.overridden |= overrides(o) > 0;
  const plait_engine *e = role<plait_engine>(state.runtime);
  if (e && (t->layers >> e->layer & 1))
    return PLAIT_NOT_CONVERTIBLE;  // its gradient would be lost without an error
  return number_in(o, t, &b.scratch, v);
}

int string_from(PyObject *o, plait_value *v) {
  if (!PyUnicode_Check(o)) return PLAIT_NOT_CONVERTIBLE;
  Py_ssize_t n = 0;
  const char *s = PyUnicode_AsUTF8AndSize(o, &n);
  if (!s) return PLAIT_CONVERSION_FAILED;
  if (Py_ssize_t(strlen(s)) != n) {
    PyErr_SetString(PyExc_ValueError, "a string without a null character is required");
    return PLAIT_CONVERSION_FAILED;
  }
  *v = value(s);
  return PLAIT_CONVERTED;
}

}  // namespace

int tensor_from(PyObject *o, Bound &b, plait_value *v) {
  plait_tensor *t;
  if (Py_TYPE(o) == state.tensor_type) {
    t = handle_of(o, state.tensor);
    if (!b.type) b.type = state.tensor;
    *v = value(t);
    return PLAIT_CONVERTED;
  }
  const TypeFacts *f = facts(Py_TYPE(o));
  if (!f) return PLAIT_CONVERSION_FAILED;
  b.overridden |= f->asks != 0;
  if (f->tensor) {
    t = handle_of(o, f->tensor);
    if (!t) return PLAIT_CONVERSION_FAILED;
    if (!b.type) b.type = f->tensor;
    *v = value(t);
    return PLAIT_CONVERTED;
  }
  if (!f->array) return PLAIT_NOT_CONVERTIBLE;
  for (Foreign *known = b.foreign; known; known = known->next)
    if (known->object == o) return *v = value(known->handle), PLAIT_CONVERTED;
  t = import_array(b.thread, o);
  if (!t) return PLAIT_CONVERSION_FAILED;
  b.scratch.keep(t);
  b.foreign = new (b.scratch.room(sizeof(Foreign))) Foreign{b.foreign, t, o};
  *v = value(t);
  return PLAIT_CONVERTED;
}

int number_from(PyObject *o, Scratch *scratch, plait_value *v) {
  if (PyFloat_Check(o)) return *v = value(PyFloat_AS_DOUBLE(o)), PLAIT_CONVERTED;
  if (PyBool_Check(o)) return *v = value(o == Py_True), PLAIT_CONVERTED;
  int64_t i;
  if (PyLong_Check(o)) {
    const int done = int_from(o, &i);
    if (done == PLAIT_CONVERTED) *v = value(i);
    return done;
  }
  if (PyComplex_Check(o)) return complex_from(o, scratch, v);
  const PyNumberMethods *m = Py_TYPE(o)->tp_as_number;
  if (!m || PyUnicode_Check(o) || Py_TYPE(o) == state.tensor_type) return PLAIT_NOT_CONVERTIBLE;
  const TypeFacts *f = facts(Py_TYPE(o));
  if (!f) return PLAIT_CONVERSION_FAILED;
  if (f->tensor || f->array) return PLAIT_NOT_CONVERTIBLE;
  if (numpy_bool(o)) return *v = value(PyObject_IsTrue(o) != 0), PLAIT_CONVERTED;
  if (named(o, "numpy.complex64")) return complex_from(o, scratch, v);
  if (m->nb_index) {
    const int done = int_from(o, &i);
    if (done == PLAIT_CONVERTED) *v = value(i);
    return done;
  }
  double x;
  const int done = m->nb_float ? float_from(o, &x) : int(PLAIT_NOT_CONVERTIBLE);
  if (done == PLAIT_CONVERTED) *v = value(x);
  return done;
}

int convert(const plait_arg &a, PyObject *o, Bound &b, plait_value *v) {
  if (o == Py_None) {
    *v = none();
    return a.flags & PLAIT_ARG_OPTIONAL ? PLAIT_CONVERTED : PLAIT_NOT_CONVERTIBLE;
  }
  int done = PLAIT_NOT_CONVERTIBLE;
  switch (a.kind) {
    case PLAIT_KIND_TENSOR: return tensor_from(o, b, v);
    case PLAIT_KIND_OPERAND:
      if (Py_TYPE(o) == state.tensor_type) return tensor_from(o, b, v);
      done = number_from(o, &b.scratch, v);
      return done == PLAIT_NOT_CONVERTIBLE ? tensor_from(o, b, v) : done;
    case PLAIT_KIND_TENSORS: return tensors_from(a, o, b, v);
    case PLAIT_KIND_SCALAR: return scalar_from(o, b, v);
    case PLAIT_KIND_INT: {
      int64_t i = 0;
      done = PyFloat_Check(o) ? int(PLAIT_NOT_CONVERTIBLE) : int_from(o, &i);
      *v = value(i);
      return done;
    }
    case PLAIT_KIND_INTS: return ints_from(a, o, b, v);
    case PLAIT_KIND_FLOAT: {
      double x = 0;
      done = float_from(o, &x);
      *v = value(x);
      return done;
    }
    case PLAIT_KIND_FLOATS: return floats_from(o, b, v);
    case PLAIT_KIND_BOOL:
      if (!PyBool_Check(o) && !numpy_bool(o)) return done;
      *v = value(PyObject_IsTrue(o) != 0);
      return PLAIT_CONVERTED;
    case PLAIT_KIND_STRING: return string_from(o, v);
    case PLAIT_KIND_DTYPE: *v = value(DType{}); return dtype_from(o, &v->u.dtype);
    case PLAIT_KIND_DEVICE: *v = value(DLDevice{kDLCPU, 0}); return device_from(o, &v->u.device);
    case PLAIT_KIND_GENERATOR:
      if (Py_TYPE(o) != state.generator_type) return done;
      *v = plait_value{PLAIT_OBJECT, 0, {0}};
      v->u.o = &generator_from(o)->o;
      return PLAIT_CONVERTED;
    default: return done;
  }
}

int operand(plait_thread *, PyObject *o, plait_value *v) {
  if (plait_tensor *t = unwrap(o)) return *v = value(t), PLAIT_CONVERTED;
  return PyErr_Occurred() ? int(PLAIT_CONVERSION_FAILED) : number_from(o, nullptr, v);
}

const char *kind_name(const plait_arg &a, char *room, size_t size) {
  static const char *const names[] = {"",
                                      "a Tensor",
                                      "a Tensor or a number",
                                      "a list of Tensors",
                                      "a number",
                                      "an int",
                                      "an int or a list of ints",
                                      "a float",
                                      "a list of floats",
                                      "a bool",
                                      "a str",
                                      "a dtype",
                                      "a device",
                                      "a Generator"};
  const bool sized = a.kind == PLAIT_KIND_INTS && a.length;
  if (sized)
    snprintf(room, size, "an int or %d ints%s", int(a.length),
             a.flags & PLAIT_ARG_OPTIONAL ? " or None" : "");
  else
    snprintf(room, size, "%s%s", names[a.kind <= PLAIT_KIND_GENERATOR ? a.kind : 0],
             a.flags & PLAIT_ARG_OPTIONAL ? " or None" : "");
  return room;
}

}  // namespace plait::python
