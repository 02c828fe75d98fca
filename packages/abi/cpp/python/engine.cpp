// The functions of the role "engine" for packages that use whatever engine there is: grad mode and
// backward passes.
#include <vector>

#include "binding.hpp"

namespace plait::python {
namespace {

// Sets whether this thread records operators, and returns the old setting. Without an engine
// nothing is recorded, and the answer is true, as an engine starts with recording on.
PyObject *set_grad_enabled(PyObject *, PyObject *on) {
  const int required = PyObject_IsTrue(on);
  if (required < 0) return nullptr;
  const plait_engine *e = role<plait_engine>(state.runtime);
  plait_thread *thread = e ? state.runtime->thread() : nullptr;
  const bool before = !e || e->enabled(e->ctx, thread);
  if (e) e->set_enabled(e->ctx, thread, required);
  return PyBool_FromLong(before);
}

bool tensors_from(PyObject *o, const char *name, bool optional, std::vector<plait_tensor *> &out) {
  if (!PyTuple_Check(o))
    return PyErr_Format(PyExc_TypeError, "run_backward: `%s` must be a tuple of tensors, got %s",
                        name, Py_TYPE(o)->tp_name),
           false;
  for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(o); i++) {
    PyObject *item = PyTuple_GET_ITEM(o, i);
    plait_tensor *t = item == Py_None && optional ? nullptr : unwrap(item);
    if (!t && !(item == Py_None && optional)) {
      if (!PyErr_Occurred())
        PyErr_Format(PyExc_TypeError, "run_backward: `%s` must hold tensors, got %s", name,
                     Py_TYPE(item)->tp_name);
      return false;
    }
    out.push_back(t);
  }
  return true;
}

// A tuple of the tensors; takes their references.
PyObject *wrapped(std::vector<plait_tensor *> &results) {
  Object result(PyTuple_New(Py_ssize_t(results.size())));
  for (size_t i = 0; i < results.size(); i++) {
    PyObject *o = !result ? nullptr : results[i] ? wrap(results[i]) : new_reference(Py_None);
    if (o) {
      PyTuple_SET_ITEM(result.get(), Py_ssize_t(i), o);
      continue;
    }
    for (size_t k = i + (result ? 1 : 0); k < results.size(); k++) plait_release(results[k]);
    return nullptr;
  }
  return result.release();
}

PyObject *run_backward(PyObject *, PyObject *args) {
  PyObject *roots_object, *grads_object = Py_None, *inputs_object = Py_None;
  unsigned flags = 0;
  if (!PyArg_ParseTuple(args, "O|OOI:run_backward", &roots_object, &grads_object, &inputs_object,
                        &flags))
    return nullptr;
  std::vector<plait_tensor *> roots, grads, inputs;
  if (!tensors_from(roots_object, "roots", false, roots) ||
      (grads_object != Py_None && !tensors_from(grads_object, "gradients", true, grads)) ||
      (inputs_object != Py_None && !tensors_from(inputs_object, "inputs", false, inputs)))
    return nullptr;
  if (roots.empty() || (!grads.empty() && grads.size() != roots.size()))
    return PyErr_Format(PyExc_ValueError,
                        "run_backward: roots and one gradient (or None) for each are required; got "
                        "%zu roots, %zu gradients",
                        roots.size(), grads.size());
  const plait_engine *e = engine();
  if (!e) return nullptr;
  plait_thread *thread = state.runtime->thread();
  std::vector<plait_tensor *> results(inputs.size(), nullptr);
  const plait_status s = e->backward(
      e->ctx, thread, roots.data(), grads.empty() ? nullptr : grads.data(), uint32_t(roots.size()),
      inputs.empty() ? nullptr : inputs.data(), uint32_t(inputs.size()), flags, results.data());
  drain();
  return s < 0 ? raise(thread, s) : wrapped(results);
}

PyMethodDef functions[] = {
    {"set_grad_enabled", entry<set_grad_enabled>, METH_O,
     "set_grad_enabled(mode, /)\n--\n\nLet the engine, if there is one, record calls of this "
     "thread or not; returns the mode before.\n\n"
     "Example:\n"
     "    >>> import plait_abi\n"
     "    >>> before = plait_abi.set_grad_enabled(False)\n"
     "    >>> plait_abi.set_grad_enabled(before)\n"
     "    False"},
    {"run_backward", entry<run_backward>, METH_VARARGS,
     "run_backward(roots, gradients=None, inputs=None, flags=0, /)\n--\n\nOne backward pass of "
     "the engine in force: what `backward` and `grad` of an engine's package are made of.\n\n"
     "`roots` is a tuple of results, `gradients` one of a gradient, or None, for each. Without\n"
     "`inputs` the leaves' gradients grow; else the gradients of these tensors are returned, None\n"
     "where they were not used. The bits of `flags`: 1 keeps what the derivatives need, 2 records\n"
     "the pass, 4 allows inputs that were not used.\n\n"
     "Example:\n"
     "    >>> import plait_abi, plait_core as pc\n"
     "    >>> x = pc.tensor(3.0, requires_grad=True)\n"
     "    >>> plait_abi.run_backward((x * x,), None, (x,))\n"
     "    (tensor(6.),)"},
    {nullptr, nullptr, 0, nullptr}};

}  // namespace

bool add_engine(PyObject *module) { return PyModule_AddFunctions(module, functions) == 0; }

}  // namespace plait::python
