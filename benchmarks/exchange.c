/* What DLPack's tables of C functions cost: a Python extension that calls those of two libraries.
 * bench_exchange.py compiles it. */
#define PY_SSIZE_T_CLEAN
#include <Python.h>
#include <plait/dlpack.h>
#include <time.h>

typedef struct { /* the table's published layout, dmlc.github.io/dlpack/latest/c_api.html */
  DLPackVersion version;
  void *previous;
  int (*allocate)(DLTensor *, DLManagedTensorVersioned **, void *,
                  void (*)(void *, const char *, const char *));
  int (*managed_from_object)(void *, DLManagedTensorVersioned **);
  int (*managed_to_object)(DLManagedTensorVersioned *, void **);
  int (*tensor_from_object)(void *, DLTensor *);
} Table;

static double now(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return t.tv_sec * 1e9 + t.tv_nsec;
}

/* nanoseconds(tensor, its table, the table of the other library, rounds): of a borrowed DLTensor,
 * of a managed tensor made and freed, and of one that becomes an object of the other library. */
static PyObject *nanoseconds(PyObject *self, PyObject *args) {
  PyObject *tensor, *first, *second;
  long rounds;
  (void)self;
  if (!PyArg_ParseTuple(args, "OOOl", &tensor, &first, &second, &rounds)) return NULL;
  const Table *from = (const Table *)PyCapsule_GetPointer(first, "dlpack_exchange_api");
  const Table *to = (const Table *)PyCapsule_GetPointer(second, "dlpack_exchange_api");
  if (!from || !to) return NULL;
  DLTensor borrowed;
  DLManagedTensorVersioned *managed;
  void *object;
  double times[4] = {now(), 0, 0, 0};
  for (long i = 0; i < rounds; i++)
    if (from->tensor_from_object(tensor, &borrowed)) return NULL;
  times[1] = now();
  for (long i = 0; i < rounds; i++) {
    if (from->managed_from_object(tensor, &managed)) return NULL;
    managed->deleter(managed);
  }
  times[2] = now();
  for (long i = 0; i < rounds; i++) {
    if (from->managed_from_object(tensor, &managed)) return NULL;
    if (to->managed_to_object(managed, &object)) return NULL;
    Py_DECREF((PyObject *)object);
  }
  times[3] = now();
  return Py_BuildValue("ddd", (times[1] - times[0]) / rounds, (times[2] - times[1]) / rounds,
                       (times[3] - times[2]) / rounds);
}

static PyMethodDef functions[] = {{"nanoseconds", nanoseconds, METH_VARARGS, NULL},
                                  {NULL, NULL, 0, NULL}};
static struct PyModuleDef definition = {
    PyModuleDef_HEAD_INIT, "exchange", NULL, -1, functions, NULL, NULL, NULL, NULL};
PyMODINIT_FUNC PyInit_exchange(void) { return PyModule_Create(&definition); }
