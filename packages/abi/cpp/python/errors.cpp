// Errors between C++ and Python: status codes become exceptions, and Python's own exceptions pass
// through C++ unchanged.
#include "binding.hpp"

#include <plait/collectives/failure.hpp>

namespace plait::python {
namespace {

PyObject *class_of(plait_status code) {
  switch (code) {
    case PLAIT_SHAPE_ERROR: return state.shape_error;
    case PLAIT_DTYPE_ERROR: return state.dtype_error;
    case PLAIT_MEMORY_ERROR: return state.memory_error;
    case PLAIT_VALUE_ERROR: return state.argument_error;
    case PLAIT_INDEX_ERROR: return state.range_error;
    case PLAIT_TYPE_ERROR: return PyExc_TypeError;
    case PLAIT_NOT_IMPLEMENTED: return PyExc_NotImplementedError;
    case PLAIT_TIMEOUT_ERROR: return PyExc_TimeoutError;
    case PLAIT_LINALG_ERROR: return state.linalg_error;
    default: return state.plait_error;
  }
}

// Sets the attributes `failure`, and `lost`: (rank, process, pid) of each lost process.
bool add_failure(PyObject *exception, const collectives::GroupFailure &failure) {
  Object all(PyTuple_New(Py_ssize_t(failure.count)));
  for (uint64_t i = 0; all && i < failure.count; i++) {
    const collectives::LostRank &each = failure.lost[i];
    PyObject *one =
        Py_BuildValue("(LLL)", static_cast<long long>(each.rank),
                      static_cast<long long>(each.process), static_cast<long long>(each.pid));
    if (!one) return false;
    PyTuple_SET_ITEM(all.get(), Py_ssize_t(i), one);
  }
  Object kind(PyUnicode_FromString(collectives::failure_name(failure.kind)));
  return all && kind && PyObject_SetAttrString(exception, "lost", all.get()) == 0 &&
         PyObject_SetAttrString(exception, "failure", kind.get()) == 0;
}

// a new exception object, with its causes
PyObject *exception_of(const plait_error *e) {
  if (e->host)
    if (PyObject *original = held(e->host)) return new_reference(original);
  PyObject *text = PyUnicode_DecodeUTF8(e->message, Py_ssize_t(strlen(e->message)), "replace");
  if (!text) return nullptr;
  PyObject *exception = PyObject_CallOneArg(class_of(e->code), text);
  Py_DECREF(text);
  if (!exception) return nullptr;
  if (const collectives::GroupFailure *failure = collectives::failure_of(e->cause)) {
    if (!add_failure(exception, *failure)) {
      Py_DECREF(exception);
      return nullptr;
    }
  } else if (e->cause) {
    PyObject *cause = exception_of(reinterpret_cast<const plait_error *>(e->cause));
    if (!cause) {
      Py_DECREF(exception);
      return nullptr;
    }
    PyException_SetCause(exception, cause);
  }
  return exception;
}

bool add_error(PyObject *module, const char *name, const char *doc, PyObject *first,
               PyObject *second, PyObject **out, PyObject *third = nullptr) {
  Object bases(third    ? PyTuple_Pack(3, first, second, third)
               : second ? PyTuple_Pack(2, first, second)
                        : PyTuple_Pack(1, first));
  Object full(PyUnicode_FromFormat("plait_abi.%s", name));
  if (!bases || !full) return false;
  *out = PyErr_NewExceptionWithDoc(PyUnicode_AsUTF8(full.get()), doc, bases.get(), nullptr);
  return *out && PyModule_AddObjectRef(module, name, *out) == 0;
}

}  // namespace

PyObject *raise(plait_thread *thread, plait_status status) {
  plait_error *e = thread->error;
  thread->error = nullptr;
  if (!e) {
    PyErr_Format(class_of(status), "plait: status %d came back without an error", int(status));
    return nullptr;
  }
  if (PyObject *exception = exception_of(e)) {
    PyErr_SetObject(reinterpret_cast<PyObject *>(Py_TYPE(exception)), exception);
    Py_DECREF(exception);
  }
  plait_release(e);
  return nullptr;
}

plait_status keep(plait_thread *thread) {
  PyObject *type, *value, *traceback;
  PyErr_Fetch(&type, &value, &traceback);
  PyErr_NormalizeException(&type, &value, &traceback);
  if (!value)
    return thread->runtime->raise(thread, PLAIT_ERROR, nullptr, "a failure without an exception");
  if (traceback) PyException_SetTraceback(value, traceback);
  Object text(PyObject_Str(value));
  if (!text) PyErr_Clear();
  const char *message = text ? PyUnicode_AsUTF8(text.get()) : nullptr;
  if (!message) PyErr_Clear();
  const plait_status s = thread->runtime->raise_host(thread, hold(value), message ? message : "");
  Py_XDECREF(type);
  Py_XDECREF(value);
  Py_XDECREF(traceback);
  return s;
}

bool add_errors(PyObject *module) {
  return add_error(
             module, "PlaitError",
             "What goes wrong in plait and has no kind of its own; a RuntimeError.\n\n"
             "`lost` has (rank, process, pid) of each process that a group of processes\n"
             "lost: its rank in the group of the call, or -1; its number in the job, or\n"
             "-1; its process, or 0.\n\n"
             "`failure` says why a collective failed: `mismatch` (the members' calls differ,\n"
             "and the group can be used further), `lost`, `timed_out`, `aborted`,\n"
             "`interrupted` or `broken`; empty if it is not known, or for another error."
             "\n\nExample:\n"
             "    >>> import plait_core as pc\n"
             "    >>> try:\n"
             "    ...     pc.linalg.inv(pc.zeros(2, 2))\n"
             "    ... except pc.PlaitError as error:\n"
             "    ...     print(isinstance(error, RuntimeError))\n"
             "    True",
             PyExc_RuntimeError, nullptr, &state.plait_error) &&
         PyObject_SetAttrString(state.plait_error, "lost", Object(PyTuple_New(0)).get()) == 0 &&
         PyObject_SetAttrString(state.plait_error, "failure",
                                Object(PyUnicode_FromString("")).get()) == 0 &&
         add_error(module, "ArgumentError",
                   "An argument with a value that is refused; a ValueError and a RuntimeError."
                   "\n\nExample:\n"
                   "    >>> import plait_core as pc\n"
                   "    >>> try:\n"
                   "    ...     pc.ones(2).repeat(-1)\n"
                   "    ... except pc.ArgumentError as error:\n"
                   "    ...     print(isinstance(error, ValueError))\n"
                   "    True",
                   PyExc_ValueError, PyExc_RuntimeError, &state.argument_error) &&
         add_error(module, "ShapeError",
                   "Sizes that do not fit; a ValueError and a RuntimeError."
                   "\n\nExample:\n"
                   "    >>> import plait_core as pc\n"
                   "    >>> try:\n"
                   "    ...     pc.zeros(2) + pc.zeros(3)\n"
                   "    ... except pc.ShapeError as error:\n"
                   "    ...     print(str(error).partition(\":\")[0])\n"
                   "    add",
                   PyExc_ValueError, PyExc_RuntimeError, &state.shape_error) &&
         add_error(module, "OutOfRangeError",
                   "A dimension or an index that is not there; an IndexError, a ValueError and a\n"
                   "RuntimeError."
                   "\n\nExample:\n"
                   "    >>> import plait_core as pc\n"
                   "    >>> try:\n"
                   "    ...     pc.ones(2).sum(dim=1)\n"
                   "    ... except pc.OutOfRangeError as error:\n"
                   "    ...     print(isinstance(error, IndexError))\n"
                   "    True",
                   PyExc_IndexError, PyExc_ValueError, &state.range_error, PyExc_RuntimeError) &&
         add_error(module, "DTypeError",
                   "A dtype that is not accepted; a TypeError and a RuntimeError."
                   "\n\nExample:\n"
                   "    >>> import plait_core as pc\n"
                   "    >>> try:\n"
                   "    ...     pc.tensor([1.5]) & 1\n"
                   "    ... except pc.DTypeError as error:\n"
                   "    ...     print(str(error).partition(\":\")[0])\n"
                   "    bitwise_and",
                   PyExc_TypeError, PyExc_RuntimeError, &state.dtype_error) &&
         add_error(module, "OutOfMemoryError",
                   "Memory that could not be had; a MemoryError and a RuntimeError."
                   "\n\nExample:\n"
                   "    >>> import plait_core as pc\n"
                   "    >>> try:\n"
                   "    ...     pc.empty(2**60, dtype=pc.uint8)\n"
                   "    ... except pc.OutOfMemoryError as error:\n"
                   "    ...     print(isinstance(error, MemoryError))\n"
                   "    True",
                   PyExc_MemoryError, PyExc_RuntimeError, &state.memory_error) &&
         add_error(module, "LinAlgError",
                   "A matrix that an algorithm of linear algebra cannot serve: it is singular or\n"
                   "not positive definite, or an iteration does not converge."
                   "\n\nExample:\n"
                   "    >>> import plait_core as pc\n"
                   "    >>> try:\n"
                   "    ...     pc.linalg.cholesky(-pc.eye(2))\n"
                   "    ... except pc.linalg.LinAlgError as error:\n"
                   "    ...     print(isinstance(error, RuntimeError))\n"
                   "    True",
                   state.plait_error, nullptr, &state.linalg_error);
}

}  // namespace plait::python
