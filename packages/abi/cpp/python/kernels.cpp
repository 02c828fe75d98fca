// Kernels written in Python: a callable registered as the kernel of an operator (docs/design/0008).
#include <plait/fork.hpp>

#include <map>
#include <string>

#include "kernels.hpp"
#include "values.hpp"

namespace plait::python {
namespace {

struct PythonKernel : Registered {
  explicit PythonKernel(PyObject *steals) { function.exchange(steals); }
  ~PythonKernel() override { close(); }
  void close() override { Py_XDECREF(function.exchange(nullptr)); }

  SharedReference function;
};
const char *const capsule_name = "plait_abi.kernel";

// A tensor as a kernel sees it: one that requires grad becomes a handle on the same bytes without
// history.
PyObject *tensor_object(plait_thread *thread, plait_tensor *t) {
  if (!t) Py_RETURN_NONE;
  if (!t->layers) {
    plait_retain(t);
    return wrap(t);
  }
  plait_tensor *bare = nullptr;
  const plait_status s = thread->runtime->tensor_alias(thread, t, &bare);
  return s < 0 ? raise(thread, s) : wrap(bare);
}

plait_status run(plait_call *c) {
  if (interpreter_gone())
    return c->thread->runtime->fail(c, PLAIT_ERROR,
                                    "its kernel is written in Python, which has ended");
  auto *kernel = static_cast<PythonKernel *>(static_cast<Registered *>(c->self->ctx));
  Gil gil;
  drain();
  const Object function(kernel->function.get());
  if (!function) return PLAIT_DECLINE;  // the kernel was closed since the call began
  const BelowLayers below(c->thread);
  const uint32_t n_in = c->n_in;
  Object args(tuple_of(n_in + c->n_out, [&](uint32_t i) {
    return object_from(i < n_in ? c->in[i] : c->out[i - n_in],
                       [c](plait_tensor *t) { return tensor_object(c->thread, t); });
  }));
  Object done(args ? PyObject_Call(function.get(), args.get(), nullptr) : nullptr);
  if (!done) return keep(c->thread);
  if (done.get() == Py_NotImplemented) return PLAIT_DECLINE;
  if (done.get() == Py_None) return PLAIT_OK;
  return c->thread->runtime->fail(
      c, PLAIT_TYPE_ERROR,
      "a kernel in Python fills in its results and returns None, or NotImplemented to leave the "
      "call to another kernel; got %s",
      Py_TYPE(done.get())->tp_name);
}

ForkMutex &known_mutex = *new ForkMutex;  // never destroyed, as `all` in export.cpp
auto &known = *new std::map<std::string, std::unique_ptr<plait_plugin>>;

// One plug-in for each module that registers kernels, so that reports and `detach` can name it.
const plait_plugin *plugin_of(const char *owner) {
  const std::lock_guard<ForkMutex> lock(known_mutex);
  const auto [at, fresh] = known.try_emplace(owner);
  if (fresh)
    at->second.reset(new plait_plugin{PLAIT_HEADER(plait_plugin), at->first.c_str(), PY_VERSION, 0,
                                      nullptr, nullptr});
  return at->second.get();
}

PyObject *implement(PyObject *, PyObject *args) {
  const char *name;
  PyObject *function, *where;
  if (!PyArg_ParseTuple(args, "sOO", &name, &function, &where)) return nullptr;
  if (!PyCallable_Check(function))
    return PyErr_Format(PyExc_TypeError, "kernel: `function` must be callable, got %s",
                        Py_TYPE(function)->tp_name);
  Object module(PyObject_GetAttrString(function, "__module__"));
  if (!module) PyErr_Clear();
  const char *owner =
      module && PyUnicode_Check(module.get()) ? PyUnicode_AsUTF8(module.get()) : "python-kernels";
  if (!owner) return nullptr;
  return register_kernel(name, where, owner, run,
                         std::make_unique<PythonKernel>(new_reference(function)));
}

PyObject *retract(PyObject *, PyObject *capsule) {
  auto *kernel = static_cast<Registered *>(PyCapsule_GetPointer(capsule, capsule_name));
  if (!kernel) return nullptr;
  if (!kernel->open.exchange(false)) Py_RETURN_NONE;
  plait_thread *thread = state.runtime->thread();
  // detaching its plug-in may have removed the kernel before
  if (state.runtime->retract(thread, kernel->undo) < 0) state.runtime->clear(thread);
  kernel->close();
  Py_RETURN_NONE;
}

PyMethodDef functions[] = {
    {"implement", entry<implement>, METH_VARARGS,
     "implement(name, function, device, /)\n--\n\nRegister a callable as the kernel of an "
     "operator; what is returned goes to `retract`."},
    {"retract", entry<retract>, METH_O,
     "retract(kernel, /)\n--\n\nTake a kernel back; again is no error."},
    {nullptr, nullptr, 0, nullptr}};

}  // namespace

PyObject *register_kernel(const char *name, PyObject *where, const char *owner, plait_kernel fn,
                          std::unique_ptr<Registered> result) {
  plait_thread *thread = state.runtime->thread();
  const plait_op *op = state.runtime->op(name);
  DLDevice device;
  const int converted = device_from(where, &device);
  if (converted == PLAIT_NOT_CONVERTIBLE)
    PyErr_Format(PyExc_TypeError, "kernel: `device` must be a device or its name, got %R", where);
  else if (!op)
    PyErr_Format(PyExc_AttributeError, "kernel: no operator named %s is defined", name);
  else if (op->flags & PLAIT_OP_VIEW)
    PyErr_Format(PyExc_ValueError, "kernel: %s is a view, which no kernel runs for", name);
  if (PyErr_Occurred()) return nullptr;
  const plait_plugin *plugin = plugin_of(owner);
  plait_status s = state.runtime->attach(thread, plugin);
  if (s >= 0)
    s = state.runtime->implement(thread, op, uint32_t(device.device_type), fn, result.get(), plugin,
                                 &result->undo);
  if (s < 0) return raise(thread, s);
  result->open = true;
  return PyCapsule_New(result.release(), capsule_name, nullptr);
}

bool add_kernels(PyObject *module) { return PyModule_AddFunctions(module, functions) == 0; }

}  // namespace plait::python
