// The binding of grad mode and backward passes.
#include "binding.hpp"

namespace plait::autograd::python {
namespace {

PyObject *is_enabled(PyObject *, PyObject *) {
  const plait_engine *e = engine();
  return e ? PyBool_FromLong(e->enabled(e->ctx, this_thread())) : nullptr;
}

PyObject *set_enabled(PyObject *, PyObject *on) {
  const int required = PyObject_IsTrue(on);
  const plait_engine *e = required < 0 ? nullptr : engine();
  if (!e) return nullptr;
  plait_thread *thread = this_thread();
  const int before = e->enabled(e->ctx, thread);
  e->set_enabled(e->ctx, thread, required);
  return PyBool_FromLong(before);
}

// run_pass(roots, gradients or None, inputs or None, flags) -> tuple of gradients of the inputs
PyObject *run_pass(PyObject *, PyObject *args) {
  PyObject *roots_object, *grads_object, *inputs_object;
  unsigned flags = 0;
  if (!PyArg_ParseTuple(args, "OOOI", &roots_object, &grads_object, &inputs_object, &flags))
    return nullptr;
  std::vector<plait_tensor *> roots, grads, inputs;
  if (!tensors_from(roots_object, "backward: results", false, roots) ||
      (grads_object != Py_None &&
       !tensors_from(grads_object, "backward: gradients", true, grads)) ||
      (inputs_object != Py_None && !tensors_from(inputs_object, "backward: inputs", false, inputs)))
    return nullptr;
  const plait_engine *e = engine();
  if (!e) return nullptr;
  std::vector<plait_tensor *> results(inputs.size() + 1, nullptr);
  const plait_status s =
      e->backward(e->ctx, this_thread(), roots.data(), grads.empty() ? nullptr : grads.data(),
                  uint32_t(roots.size()), inputs.empty() ? nullptr : inputs.data(),
                  uint32_t(inputs.size()), flags, results.data());
  state.python->drain();
  if (s < 0) return raise(s);
  Object result(PyTuple_New(Py_ssize_t(inputs.size())));
  for (size_t i = 0; i < inputs.size(); i++) {
    PyObject *o = wrap_new(results[i]);
    if (!result || !o) {
      for (size_t k = i + 1; k < inputs.size(); k++) plait_release(results[k]);
      Py_XDECREF(o);
      return nullptr;
    }
    PyTuple_SET_ITEM(result.get(), Py_ssize_t(i), o);
  }
  return result.release();
}

// accumulate(tensor, gradient): adds a gradient of backward(inputs=) to the tensor's
PyObject *accumulate(PyObject *, PyObject *args) {
  PyObject *tensor_object, *gradient_object;
  int create = 0;
  if (!PyArg_ParseTuple(args, "OOp", &tensor_object, &gradient_object, &create)) return nullptr;
  plait_tensor *t = tensor_from(tensor_object, "backward: `inputs`");
  plait_tensor *g = t ? tensor_from(gradient_object, "backward: gradient") : nullptr;
  const plait_engine *e = g ? engine() : nullptr;
  if (!e) return nullptr;
  plait_thread *thread = this_thread();
  const plait_status s = border(thread, "backward", [&]() -> plait_status {
    Tensor old;
    check(e->grad(e->ctx, thread, t, old.out()));
    if (!old) return e->set_grad(e->ctx, thread, t, g);
    const Operator add(state.runtime, "add");
    if (create) return e->set_grad(e->ctx, thread, t, add(thread, old, Tensor::share(g)).get());
    const int before = e->enabled(e->ctx, thread);
    e->set_enabled(e->ctx, thread, 0);
    const plait_status added = border(thread, "backward", [&]() -> plait_status {
      add.in_place(thread, old, Tensor::share(g));
      return PLAIT_OK;
    });
    e->set_enabled(e->ctx, thread, before);
    return added;
  });
  if (s < 0) return raise(s);
  Py_RETURN_NONE;
}

PyObject *grad_fn(PyObject *, PyObject *o) {
  plait_tensor *t = tensor_from(o, "grad_fn: argument");
  const plait_engine *e = t ? engine() : nullptr;
  return e ? shown_node(e->node(e->ctx, t)) : nullptr;
}

}  // namespace

PyMethodDef mode_functions[] = {
    {"is_grad_enabled", entry<is_enabled>, METH_NOARGS,
     "is_grad_enabled()\n--\n\nReturn whether this thread records operators.\n\nExample:\n"
     "    >>> import plait_autograd as pa\n    >>> with pa.no_grad():\n"
     "    ...     pa.is_grad_enabled()\n    False"},
    {"set_enabled", entry<set_enabled>, METH_O,
     "Sets whether this thread records and returns what was set before."},
    {nullptr, nullptr, 0, nullptr}};

PyMethodDef pass_functions[] = {
    {"run_pass", entry<run_pass>, METH_VARARGS, "One backward pass."},
    {"accumulate", entry<accumulate>, METH_VARARGS, "Adds to a tensor's gradient."},
    {"grad_fn", entry<grad_fn>, METH_O,
     "grad_fn(tensor, /)\n--\n\nReturn the node that made the tensor, or None for a leaf.\n\n"
     "Example:\n    >>> import plait_core as pc, plait_autograd as pa\n"
     "    >>> x = pc.ones(1, requires_grad=True)\n"
     "    >>> pa.grad_fn(x * 2).name(), pa.grad_fn(x)\n    ('MulBackward', None)"},
    {nullptr, nullptr, 0, nullptr}};

}  // namespace plait::autograd::python
