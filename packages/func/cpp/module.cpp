// plait_func._layer: batched tensors, the layer that serves operators on them, and calls of vmap.
#include <plait/batched.h>

#include "batched.hpp"

namespace plait::func {

State state;

namespace {

// Tells core how to ask about batched tensors.
bool connect_core() {
  auto *core = static_cast<plait_batched *>(PyCapsule_Import(PLAIT_BATCHED_CAPSULE, 0));
  if (!core) return false;
  if (core->h.size < sizeof(plait_batched)) {
    PyErr_SetString(PyExc_ImportError, "plait_func: a newer plait-core is required");
    return false;
  }
  const auto is_batched_tensor = [](const plait_tensor *t) -> int { return is_batched(t); };
  const auto check = []() -> int { return refuse_backward() ? 0 : -1; };
  __atomic_store_n(&core->is_batched, +is_batched_tensor, __ATOMIC_RELEASE);
  __atomic_store_n(&core->samples, &all_samples, __ATOMIC_RELEASE);
  __atomic_store_n(&core->note_new, &note_fresh, __ATOMIC_RELEASE);
  __atomic_store_n(&core->check_backward, +check, __ATOMIC_RELEASE);
  return true;
}

bool find_tensor_type() {
  const Object core(PyImport_ImportModule("plait_core"));
  PyObject *type = core ? PyObject_GetAttrString(core.get(), "Tensor") : nullptr;
  state.tensor_type = reinterpret_cast<PyTypeObject *>(type);
  return type;
}

PyModuleDef definition = {
    PyModuleDef_HEAD_INIT,
    "plait_func._layer",
    "Batched tensors, the layer that serves operators on them, calls of vmap.",
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
  if (!module || plait_needs_no_lock(module.get()) < 0 || !find_tensor_type() ||
      !add_layer(module.get()) || !add_vmap(module.get()) || !connect_core())
    return nullptr;
  return module.release();
}

}  // namespace
}  // namespace plait::func

PyMODINIT_FUNC PyInit__layer(void) { return plait::func::make(); }
