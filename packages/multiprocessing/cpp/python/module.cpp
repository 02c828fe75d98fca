// plait_multiprocessing._shared: the library's functions, for Python.
#include "binding.hpp"

namespace plait::multiprocessing::python {

State state;

PyTypeObject *add_type(PyObject *module, PyType_Spec *spec) {
  PyObject *type = PyType_FromSpec(spec);
  if (!type) return nullptr;
  const char *name = std::strrchr(spec->name, '.') + 1;
  Py_INCREF(type);
  if (PyModule_AddObject(module, name, type) < 0) {
    Py_DECREF(type);
    return nullptr;
  }
  return reinterpret_cast<PyTypeObject *>(type);
}

namespace {

PyObject *before_fork(PyObject *, PyObject *) {
  plait_shared_before_fork();
  Py_RETURN_NONE;
}
PyObject *leave(PyObject *, PyObject *) {
  plait_shared_leave();
  Py_RETURN_NONE;
}
PyObject *trim(PyObject *, PyObject *) {
  plait_shared_trim();
  Py_RETURN_NONE;
}
PyObject *stats(PyObject *, PyObject *) {
  plait_shared_stats s;
  plait_shared_get_stats(&s);
  return Py_BuildValue("KKKK", static_cast<unsigned long long>(s.arenas),
                       static_cast<unsigned long long>(s.storages),
                       static_cast<unsigned long long>(s.committed),
                       static_cast<unsigned long long>(s.free_bytes));
}

PyMethodDef process_functions[] = {
    {"before_fork", entry<before_fork>, METH_NOARGS,
     "Count every storage once more, for the child."},
    {"leave", entry<leave>, METH_NOARGS, "Give the counts of this process back."},
    {"trim", entry<trim>, METH_NOARGS, "Give the pages of free blocks back."},
    {"stats", entry<stats>, METH_NOARGS, "(arenas, storages, committed, free)."},
    {nullptr, nullptr, 0, nullptr}};

PyModuleDef definition = {PyModuleDef_HEAD_INIT,
                          "plait_multiprocessing._shared",
                          "Blocks of shared memory, messages with descriptors, groups.",
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
       {process_functions, block_functions, tensor_functions, channel_functions, fork_functions})
    if (PyModule_AddFunctions(module.get(), functions) < 0) return nullptr;
  if (!add_block_types(module.get())) return nullptr;
  return module.release();
}

}  // namespace
}  // namespace plait::multiprocessing::python

PyMODINIT_FUNC PyInit__shared(void) { return plait::multiprocessing::python::make(); }
