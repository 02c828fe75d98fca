// plait_profiler._observer: the recorder, for Python.
#include <cstring>

#include "binding.hpp"

namespace plait::profiler::python {

const plait_python *host = nullptr;

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

PyModuleDef definition = {PyModuleDef_HEAD_INIT,
                          "plait_profiler._observer",
                          "Sessions of recording, modules and stacks.",
                          -1,
                          context_functions,
                          nullptr,
                          nullptr,
                          nullptr,
                          nullptr};

PyObject *make() {
  host = plait_python_import();
  if (!host) return nullptr;
  Object module(PyModule_Create(&definition));
  if (!module || plait_needs_no_lock(module.get()) < 0 || !add_session_type(module.get()))
    return nullptr;
  return module.release();
}

}  // namespace
}  // namespace plait::profiler::python

PyMODINIT_FUNC PyInit__observer(void) { return plait::profiler::python::make(); }
