// plait_autograd._autograd: the engine's role, for Python. It calls the engine that is loaded.
#include "binding.hpp"

namespace plait::autograd::python {

State state;

const plait_engine *engine() { return state.python->engine(); }

const Introspection *introspection() {
  const plait_engine *e = role<plait_engine>(state.runtime);
  if (!e || std::strcmp(e->name, "plait_autograd") != 0) return nullptr;
  const auto *table = static_cast<const Introspection *>(e->ctx);
  return table && table->h.size == sizeof(Introspection) ? table : nullptr;
}

plait_tensor *tensor_from(PyObject *o, const char *subject) {
  plait_tensor *t = state.python->unwrap(o);
  if (!t && !PyErr_Occurred())
    PyErr_Format(PyExc_TypeError, "%s must be a tensor, got %s", subject, Py_TYPE(o)->tp_name);
  return t;
}

bool tensors_from(PyObject *o, const char *subject, bool optional,
                  std::vector<plait_tensor *> &out) {
  if (!PyTuple_Check(o))
    return PyErr_Format(PyExc_TypeError, "%s must be a tuple of tensors", subject), false;
  for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(o); i++) {
    PyObject *item = PyTuple_GET_ITEM(o, i);
    plait_tensor *t = nullptr;
    if (item != Py_None || !optional) {
      t = tensor_from(item, subject);
      if (!t) return false;
    }
    out.push_back(t);
  }
  return true;
}

PyObject *wrap_new(plait_tensor *t) {
  if (!t) Py_RETURN_NONE;
  return state.python->wrap(t);
}

namespace {

PyModuleDef definition = {PyModuleDef_HEAD_INIT,
                          "plait_autograd._autograd",
                          "The engine's role.",
                          -1,
                          nullptr,
                          nullptr,
                          nullptr,
                          nullptr,
                          nullptr};

PyObject *make() {
  state.python = plait_python_import();
  if (!state.python) return nullptr;
  state.runtime = state.python->runtime;
  Object module(PyModule_Create(&definition));
  if (!module || plait_needs_no_lock(module.get()) < 0) return nullptr;
  for (PyMethodDef *functions :
       {mode_functions, pass_functions, function_functions, element_functions, hook_functions,
        watch_functions, dual_functions, node_functions, saved_functions})
    if (PyModule_AddFunctions(module.get(), functions) < 0) return nullptr;
  if (!add_node(module.get())) return nullptr;
  add_collector();
  add_watch();
  *state.python->node_object = shown_node;  // makes the object that a tensor's grad_fn shows
  return module.release();
}

}  // namespace
}  // namespace plait::autograd::python

PyMODINIT_FUNC PyInit__autograd(void) { return plait::autograd::python::make(); }
