/* The functions of plait_abi.binding for Python extensions: one C table, in the capsule
 * `plait_abi.binding.python` ("plait.python"). Only extension modules include this file;
 * components never do. Unless said otherwise every function needs the GIL and reports failure with
 * a Python exception set. Both tables grow at their end alone, as those of abi.h. */
#ifndef PLAIT_PYTHON_H
#define PLAIT_PYTHON_H
#include <Python.h>

#include "abi.h"

#ifdef __cplusplus
extern "C" {
#endif

/* How a type declares itself a tensor type: a class attribute `__plait_tensor__` holding a capsule
 * "plait.tensor" around this table. It is looked up once for each type; subclasses inherit it. */
typedef struct plait_tensor_type {
  plait_header h;
  plait_tensor *(*unwrap)(PyObject *); /* borrowed; NULL with an exception */
  PyObject *(*wrap)(plait_tensor *);   /* steals the reference, also on failure */
  uint64_t handle_offset; /* of the `plait_tensor *` in its instances; 0: only unwrap knows */
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
  /* not 0 if the object's class may make the call itself: then the Operator object must be called.
   * 1: it has `__plait_function__`; 2: the attribute of plait_core.overrides.set_protocol */
  int (*overrides)(PyObject *);

  /* objects held by C++; hold gives a new reference, which may be dropped on any thread */
  plait_object *(*hold)(PyObject *);
  PyObject *(*held)(plait_object *); /* borrowed; NULL without an exception */
  void (*drain)(void); /* does the releases that wait for the GIL */

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

  /* set by the engine's package: how a node of its graph becomes a Python object (steals; NULL: a
   * plain object is shown) */
  PyObject *(**node_object)(plait_object *);

  /* says that a storage's bytes are exported by other means than export_dlpack (1), or that this
   * export ended (0). An array of another library within the bytes is imported as that storage, so
   * that writes through it are seen. Any thread. */
  void (*exported)(plait_storage *, int out);

  DLDataType *default_dtype; /* of Python's floats, and of floats from integers */

  /* set by the engine's package, for the garbage collector: visits the Python objects that only
   * this tensor's history keeps alive, or clears them. A tensor type calls it for a handle that
   * only its wrapper owns. NULL: there is nothing to visit */
  int (**traverse)(plait_tensor *, visitproc, void *);
  void (**untie)(plait_tensor *);
  /* the number of calls of plait that run without the GIL. It grows only with the GIL held, so it
   * stays 0 for a whole garbage collection if it is 0 at the start; otherwise reference counts of
   * C++ objects may change during the collection.
   */
  const uint64_t *unlocked;

  /* exchange with devices */
  /* the DLPack capsule of an array, whose bytes work in our current stream may use; `wanted`: the
   * device to ask for, or NULL, where the array is; `copy`: what to ask for, or NULL */
  PyObject *(*ask_dlpack)(PyObject *array, const DLDevice *required, PyObject *copy);
  /* lets the stream that a consumer names (`__dlpack__(stream=...)`, NULL: none was named) wait for
   * the work in our current one; -1 with an exception */
  int (*hand_over)(plait_tensor *, PyObject *stream);

  /* as import_dlpack and export_dlpack, without a capsule around the struct; `import_managed` takes
   * it over, also on failure */
  plait_tensor *(*import_managed)(plait_thread *, DLManagedTensorVersioned *);
  DLManagedTensorVersioned *(*export_managed)(plait_tensor *, uint64_t flags);

  /* for the kernel of a layer, whose bit this is: a function of Python serves the call, as that of
   * plait_core.overrides.set_layer does; where `*function` is NULL the call goes on. Needs no GIL
   */
  plait_status (*serve)(plait_call *, PyObject *(*function)(void), uint64_t bit);
} plait_python;

/* Called in module initialisation; NULL with an exception. */
static inline const plait_python *plait_python_import(void) {
  const plait_python *table = (const plait_python *)PyCapsule_Import("plait_abi.binding.python", 0);
  const int major = PLAIT_TARGET / 1000, minor = PLAIT_TARGET % 1000;
  if (table && (table->h.major != major || table->h.minor < minor)) {
    PyErr_Format(PyExc_ImportError,
                 "plait_abi.binding: version %d.%d or a later one of %d is required, found %d.%d",
                 major, minor, major, table->h.major, table->h.minor);
    return NULL;
  }
  return table;
}

/* Says that a module of one-phase initialisation needs no global lock (docs/design/0044): importing
 * it leaves an interpreter without one as it is. 0, or -1 with an exception. */
static inline int plait_needs_no_lock(PyObject *module) {
#ifdef Py_GIL_DISABLED
  return PyUnstable_Module_SetGIL(module, Py_MOD_GIL_NOT_USED);
#else
  (void)module;
  return 0;
#endif
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

/* A new reference on the value of a key, or nullptr: without an exception where the key is absent.
 */
inline PyObject *value_in(PyObject *dict, PyObject *key) {
#if PY_VERSION_HEX >= 0x030D0000
  PyObject *result = nullptr;
  PyDict_GetItemRef(dict, key, &result);
  return result;
#else
  PyObject *result = PyDict_GetItemWithError(dict, key);
  Py_XINCREF(result);
  return result;
#endif
}

/* The items of a tuple or list, borrowed. Code that runs between two reads may change a list, so
 * that it has fewer items; on an interpreter without a global lock, where other threads could free
 * an item while it is read, these are the items of a copy. `valid` is false if there was no memory
 * for it: then there is an exception, and no item. `data` serves as long as no Python code runs. */
class Items {
 public:
#ifdef Py_GIL_DISABLED
  explicit Items(PyObject *tuple_or_list)
      : copy_(PyList_Check(tuple_or_list) ? PyList_AsTuple(tuple_or_list)
                                          : new_reference(tuple_or_list)) {}
  bool valid() const { return bool(copy_); }
  Py_ssize_t size() const { return copy_ ? PyTuple_GET_SIZE(copy_.get()) : 0; }
  PyObject *operator[](Py_ssize_t i) const { return PyTuple_GET_ITEM(copy_.get(), i); }
  PyObject *const *data() const { return PySequence_Fast_ITEMS(copy_.get()); }

 private:
  Object copy_;
#else
  explicit Items(PyObject *tuple_or_list) : all_(tuple_or_list) {}
  bool valid() const { return true; }
  Py_ssize_t size() const { return PySequence_Fast_GET_SIZE(all_); }
  PyObject *operator[](Py_ssize_t i) const { return PySequence_Fast_GET_ITEM(all_, i); }
  PyObject *const *data() const { return PySequence_Fast_ITEMS(all_); }

 private:
  PyObject *all_;
#endif
};

/* PySequence_Fast, whose result other threads do not change on an interpreter without a global
 * lock: there a list is copied. */
inline PyObject *sequence_of(PyObject *iterable, const char *message) {
#ifdef Py_GIL_DISABLED
  if (PyList_Check(iterable)) return PyList_AsTuple(iterable);
#endif
  return PySequence_Fast(iterable, message);
}

/* A function of any calling convention, as a table of methods wants it. */
template <class F>
PyCFunction function(F f) {
  return reinterpret_cast<PyCFunction>(reinterpret_cast<void (*)()>(f));
}

}  // namespace plait::python
#endif
#endif /* PLAIT_PYTHON_H */
