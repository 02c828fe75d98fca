/* What a Python extension of plait needs to speak with plait_abi._binding: one C table, handed out
 * as the capsule `plait_abi._binding.python` ("plait.python"). Only extension modules include this
 * file; components never do. Unless said otherwise every function needs the GIL and reports failure
 * with a Python exception set. */
#ifndef PLAIT_PYTHON_H
#define PLAIT_PYTHON_H
#include <Python.h>

#include "abi.h"

#ifdef __cplusplus
extern "C" {
#endif

/* How a tensor type announces itself: a class attribute `__plait_tensor__` holding a capsule
 * "plait.tensor" around this table. It is looked up once for each type; subclasses inherit it. */
typedef struct plait_tensor_type {
  plait_header h;
  plait_tensor *(*unwrap)(PyObject *); /* borrowed; NULL with an exception */
  PyObject *(*wrap)(plait_tensor *);   /* steals the reference, also on failure */
  uint64_t handle_offset; /* where instances of this type hold their `plait_tensor *`; 0: only
                             unwrap knows */
} plait_tensor_type;

enum plait_conversion {
  PLAIT_CONVERTED = 1,
  PLAIT_NOT_CONVERTIBLE = 0,
  PLAIT_CONVERSION_FAILED = -1
};

typedef struct plait_python {
  plait_header h;
  const plait_runtime *runtime;
  PyTypeObject *operator_type, *dtype_type, *device_type, *generator_type;

  /* errors */
  PyObject *(*raise)(plait_thread *,
                     plait_status); /* the thread's error becomes the Python exception; NULL */
  plait_status (*keep)(
      plait_thread *); /* the Python exception becomes the thread's error; PLAIT_HOST_ERROR */

  /* tensors */
  plait_tensor *(*unwrap)(
      PyObject *); /* borrowed; NULL without an exception if no tensor type claims the object */
  PyObject *(*wrap)(
      plait_tensor *); /* steals; as the registered tensor type, or plait_abi.Handle without one */
  int (*set_tensor_type)(PyTypeObject *,
                         const plait_tensor_type *); /* the first one wraps results from then on */

  /* operators */
  PyObject *(*new_operator)(const char *name, uint32_t form); /* base name or "name.overload" */
  /* runtime->call without the GIL if the work is large; the status is handed on */
  plait_status (*call)(plait_call *);
  /* the results of a finished call: one object, or a tuple; takes what out holds */
  PyObject *(*results)(plait_call *);
  /* an operand (a tensor, or a number that stays one) for fast paths; a plait_conversion; borrowed
   * from the object */
  int (*operand)(plait_thread *, PyObject *, plait_value *);
  /* 1 if the object's class has `__plait_function__`: then the call belongs to the Operator object
   */
  int (*overrides)(PyObject *);

  /* objects held by C++; hold gives a new reference, which may be dropped on any thread */
  plait_object *(*hold)(PyObject *);
  PyObject *(*held)(plait_object *); /* borrowed; NULL without an exception */
  void (*drain)(void); /* does the releases that waited for the GIL */

  /* dtype and device objects; the first of each pair accepts all that a schema accepts: a
   * plait_conversion */
  int (*dtype)(PyObject *, DLDataType *);
  PyObject *(*dtype_object)(DLDataType);
  int (*device)(PyObject *, DLDevice *);
  PyObject *(*device_object)(DLDevice);
  PyObject *(*generator_object)(plait_generator *); /* steals */
  plait_generator *(*generator)(PyObject *); /* borrowed; NULL with an exception */

  /* exchange */
  /* a new handle on a foreign array's own bytes (buffer protocol or DLPack); it keeps the array
   * alive */
  plait_tensor *(*import_array)(plait_thread *, PyObject *);
  plait_tensor *(*import_dlpack)(plait_thread *, PyObject *capsule); /* consumes the capsule */
  PyObject *(*export_dlpack)(plait_tensor *, int versioned, uint64_t flags);

  const plait_engine *(*engine)(void); /* loads the default engine if there is none yet */

  /* the engine's package may put here how it shows a node of its graph (steals; NULL: a plain one
   * is shown) */
  PyObject *(**node_object)(plait_object *);

  /* says that bytes of a storage are handed out by other means than export_dlpack (1), or that they
   * came back (0): an array of another library that lies in them is taken for that storage, so that
   * writes through it are seen. Any thread. */
  void (*exported)(plait_storage *, int out);

  DLDataType *default_dtype; /* of Python's floats, and of operators that make floats of nothing */

  /* the engine's package may put here what the collector should know of a tensor's history: called
   * by a tensor type for a handle that only its wrapper counts; visits the Python objects that
   * hang on the history alone, and drops them (NULL: nothing) */
  int (**traverse)(plait_tensor *, visitproc, void *);
  void (**untie)(plait_tensor *);
  /* how many calls of plait run without the GIL; grows only with the GIL held, so that it stays 0
   * for a whole collection if it is 0 at its start. While it isn't, counts of C++ objects change.
   */
  const uint64_t *unlocked;
} plait_python;

/* Called in module initialisation; NULL with an exception. */
static inline const plait_python *plait_python_import(void) {
  const plait_python *table =
      (const plait_python *)PyCapsule_Import("plait_abi._binding.python", 0);
  if (table && (table->h.major != PLAIT_ABI_MAJOR || table->h.minor != PLAIT_ABI_MINOR)) {
    PyErr_Format(PyExc_ImportError, "plait_abi._binding: version %d.%d is required, found %d.%d",
                 PLAIT_ABI_MAJOR, PLAIT_ABI_MINOR, table->h.major, table->h.minor);
    return NULL;
  }
  return table;
}

/* Imports a module at its first use: handlers of signals wait until it is whole, as in
 * plait_abi.imports.import_module. A new reference; NULL with an exception. */
static inline PyObject *plait_import_module(const char *name) {
  PyObject *imports = PyImport_ImportModule("plait_abi.imports");
  PyObject *module = imports ? PyObject_CallMethod(imports, "import_module", "s", name) : NULL;
  Py_XDECREF(imports);
  return module;
}

#ifdef __cplusplus
}

#include <utility>

namespace plait::python {

/* A reference to a Python object that is dropped at the end of the scope. */
class Object {
 public:
  explicit Object(PyObject *steals = nullptr) : p_(steals) {}
  Object(Object &&o) noexcept : p_(o.release()) {}
  Object &operator=(Object o) noexcept {
    std::swap(p_, o.p_);
    return *this;
  }
  ~Object() { Py_XDECREF(p_); }
  PyObject *get() const { return p_; }
  PyObject *release() { return std::exchange(p_, nullptr); }
  explicit operator bool() const { return p_ != nullptr; }

 private:
  PyObject *p_;
};

inline PyObject *new_reference(PyObject *p) {
  Py_INCREF(p);
  return p;
}

/* A function of whatever calling convention, for a table of methods. */
template <class F>
PyCFunction function(F f) {
  return reinterpret_cast<PyCFunction>(reinterpret_cast<void (*)()>(f));
}

}  // namespace plait::python
#endif
#endif /* PLAIT_PYTHON_H */
