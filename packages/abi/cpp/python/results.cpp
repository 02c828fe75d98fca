// Runs a call and makes Python objects of its results.
#include <plait/warning.h>
#include <plait/fork.hpp>

#include <algorithm>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "binding.hpp"

namespace plait::python {
namespace {

// From this number of elements on a call runs without the GIL (docs/design/0001).
constexpr int64_t large = 32768;

int64_t product(const int64_t *p, int64_t n) {
  int64_t x = 1;
  for (int64_t i = 0; i < n; i++)
    if (__builtin_mul_overflow(x, p[i], &x)) return large;
  return std::clamp(x, int64_t(0), large);  // sums of them do not overflow
}
bool is_large(const plait_call *c) {
  int64_t work = 0;
  for (int i = 0; i < c->n_in; i++) {
    const plait_value &v = c->in[i];
    if (v.tag == PLAIT_TENSOR) {
      work += product(v.u.t->dl.shape, v.u.t->dl.ndim);
    } else if (v.tag == PLAIT_INTS) {
      work += product(v.u.is, v.n);
    } else if (v.tag == PLAIT_TENSORS) {
      for (uint32_t k = 0; k < v.n; k++)
        if (v.u.ts[k]) work += product(v.u.ts[k]->dl.shape, v.u.ts[k]->dl.ndim);
    } else if (v.tag == PLAIT_INT && !(c->op->n_args && c->op->args[0].kind == PLAIT_KIND_TENSOR)) {
      work += std::clamp(v.u.i, int64_t(0),
                         large);  // arange, eye, randperm: a number is a size of the result
    }
    if (work >= large) return true;
  }
  return false;
}

PyObject *wrap_as(plait_tensor *t, const Bound *b) {
  if (b && b->foreign)
    for (const Foreign *f = b->foreign; f; f = f->next)
      if (f->handle == t) {
        plait_release(t);
        return new_reference(f->object);
      }
  return b && b->type ? b->type->wrap(t) : wrap(t);
}

PyObject *one(plait_value *v, const Bound *b) {
  switch (v->tag) {
    case PLAIT_NONE: Py_RETURN_NONE;
    case PLAIT_TENSOR: v->tag = PLAIT_NONE; return wrap_as(v->u.t, b);
    case PLAIT_BOOL: return PyBool_FromLong(v->u.i != 0);
    case PLAIT_INT: return PyLong_FromLongLong(v->u.i);
    case PLAIT_FLOAT: return PyFloat_FromDouble(v->u.f);
    case PLAIT_COMPLEX: return PyComplex_FromDoubles(v->u.fs[0], v->u.fs[1]);
    case PLAIT_STRING: return PyUnicode_FromStringAndSize(v->u.s, v->n);
    case PLAIT_DTYPE: return dtype_object(v->u.dtype);
    case PLAIT_DEVICE: return device_object(v->u.device);
    default: break;
  }
  if (v->tag != PLAIT_TENSORS && v->tag != PLAIT_INTS) {
    PyErr_Format(PyExc_SystemError, "plait: a result of kind %d has no Python object", int(v->tag));
    return nullptr;
  }
  PyObject *list = PyTuple_New(v->n);
  for (uint32_t i = 0; list && i < v->n; i++) {
    PyObject *o;
    if (v->tag == PLAIT_INTS) {
      o = PyLong_FromLongLong(v->u.is[i]);
    } else {
      plait_tensor *t = v->u.ts[i];
      if (t) plait_retain(t);
      o = t ? wrap_as(t, b) : new_reference(Py_None);
    }
    if (!o) Py_CLEAR(list);
    if (list) PyTuple_SET_ITEM(list, Py_ssize_t(i), o);
  }
  state.runtime->release_value(v);
  return list;
}

// `plait.return_types.max(`, then a line for each result, as PyTorch shows them.
PyObject *repr_of_named(PyObject *self) {
  auto *type = reinterpret_cast<PyObject *>(Py_TYPE(self));
  const Object module(PyObject_GetAttrString(type, "__module__"));
  const Object name(PyObject_GetAttrString(type, "__qualname__"));
  const Object fields(PyObject_GetAttrString(type, "__match_args__"));
  Object text(module && name ? PyUnicode_FromFormat("%U.%U(", module.get(), name.get()) : nullptr);
  if (!text || !fields || !PyTuple_Check(fields.get())) return nullptr;
  const Py_ssize_t n = PyTuple_GET_SIZE(fields.get());
  for (Py_ssize_t i = 0; i < n && i < PyTuple_GET_SIZE(self); i++) {
    text =
        Object(PyUnicode_FromFormat("%U%s\n%U=%R", text.get(), i ? "," : "",
                                    PyTuple_GET_ITEM(fields.get(), i), PyTuple_GET_ITEM(self, i)));
    if (!text) return nullptr;
  }
  return PyUnicode_FromFormat("%U)", text.get());
}

PyTypeObject *make_named_results(const plait_op *op) {
  const char *dot = strchr(op->name, '.');
  const size_t n = dot ? size_t(dot - op->name) : strlen(op->name);
  PyStructSequence_Field fields[PLAIT_MAX_RESULTS + 1] = {};
  bool named = true;  // the names of results come from the schema: `-> (Tensor Q, Tensor R)`
  for (int i = 0; i < op->n_results; i++) {
    fields[i].name = op->results[i].name;
    named = named && fields[i].name && *fields[i].name;
  }
  if (!named) return nullptr;
  const std::string base(op->name, n);
  const char *full =
      strdup(("plait.return_types." + base).c_str());  // older CPythons keep the pointer
  PyStructSequence_Desc description{full, nullptr, fields, op->n_results};
  PyTypeObject *type = PyStructSequence_NewType(&description);
  if (type) type->tp_repr = repr_of_named;
  return type;
}

// `module` is the one that texts name, in which programs find these classes.
bool set_module(PyTypeObject *type, const char *module) {
  const Object name(PyUnicode_FromFormat("%s.return_types", module));
  return name &&
         !PyObject_SetAttrString(reinterpret_cast<PyObject *>(type), "__module__", name.get());
}

// One class for the function and the method. Never destroyed, as `all` in export.cpp.
ForkMutex &named_mutex = *new ForkMutex;
auto &named = *new std::unordered_map<const plait_op *, PyTypeObject *>;
}  // namespace

PyTypeObject *named_results(const plait_op *op) {
  if (op->n_results < 2) return nullptr;
  const auto look = [op](PyTypeObject *fresh) {
    const std::lock_guard<ForkMutex> lock(named_mutex);
    PyTypeObject *&kept = named[op];
    return kept ? kept : (kept = fresh);
  };
  PyTypeObject *type = look(nullptr);
  if (!type) {
    type = make_named_results(op);
    if (type && !set_module(type, shown_module().c_str())) Py_CLEAR(type);
  }
  if (!type) return nullptr;
  if (PyTypeObject *kept = look(type); kept != type) {
    Py_DECREF(type);  // another thread made it meanwhile
    type = kept;
  }
  return reinterpret_cast<PyTypeObject *>(new_reference(reinterpret_cast<PyObject *>(type)));
}

bool show_named_results(const char *module) {
  std::vector<PyTypeObject *> types;
  {
    const std::lock_guard<ForkMutex> lock(named_mutex);
    for (const auto &entry : named)
      if (entry.second) types.push_back(entry.second);
  }
  for (PyTypeObject *type : types)
    if (!set_module(type, module)) return false;
  return true;
}

namespace {

// Shows the warning of a call that succeeded. If a filter makes it an exception, the call fails.
__attribute__((noinline, cold)) plait_status show(plait_thread *thread, const plait_warning &w) {
  const std::string name = w.text[0] == '(' ? w.op->name : "";
  return warn(name.substr(0, name.find('.')) + w.text) ? PLAIT_OK : keep(thread);
}

}  // namespace

bool warn(const std::string &text) {
  Object frames(PyImport_ImportModule("plait_abi.frames"));
  return frames && Object(PyObject_CallMethod(frames.get(), "warn", "s", text.c_str()));
}

plait_status call(plait_call *c) {
  plait_warning warning{};
  plait_thread *thread = c->thread;
  void *const outer = std::exchange(thread->slot[3], &warning);
  plait_status s;
  if (!is_large(c)) {
    s = state.runtime->call(c);
  } else {
    const Unlocked others;
    s = state.runtime->call(c);
  }
  thread->slot[3] = outer;
  if (__builtin_expect(warning.text != nullptr, 0) && s >= 0) return show(thread, warning);
  return s;
}

PyObject *results_of(plait_call *c, const Bound *b, PyTypeObject *result_type) {
  if (c->n_out == 1) return one(c->out, b);
  if (c->n_out == 0) Py_RETURN_NONE;
  PyObject *all = result_type ? PyStructSequence_New(result_type) : PyTuple_New(c->n_out);
  for (int i = 0; i < c->n_out; i++) {
    PyObject *o = all ? one(c->out + i, b) : nullptr;
    if (!o) {
      for (; i < c->n_out; i++) state.runtime->release_value(c->out + i);
      Py_XDECREF(all);
      return nullptr;
    }
    if (result_type)
      PyStructSequence_SetItem(all, i, o);
    else
      PyTuple_SET_ITEM(all, i, o);
  }
  return all;
}

PyObject *results(plait_call *c) { return results_of(c, nullptr, nullptr); }

const plait_engine *engine() {
  if (const plait_engine *e = role<plait_engine>(state.runtime)) return e;
  Object abi(PyImport_Import(state.str_plait_abi));
  Object done(abi ? PyObject_CallMethod(abi.get(), "require", "s", "engine") : nullptr);
  if (!done) return nullptr;
  const plait_engine *e = role<plait_engine>(state.runtime);
  if (!e)
    PyErr_SetString(state.plait_error,
                    "engine: the component that was loaded did not provide the role \"engine\"");
  return e;
}

}  // namespace plait::python
