// DLPack's table of C functions (1.2 and later), by which two libraries exchange tensors without
// calls through Python: the class attribute `__dlpack_c_exchange_api__`, ours and that of others.
#include <plait/gil.hpp>

#include "tensor/tensor.hpp"

namespace plait::core {
namespace {

// The table's published layout, dmlc.github.io/dlpack/latest/c_api.html.
struct TableHeader {
  DLPackVersion version;
  TableHeader *previous;  // an older table; there is none
};
struct ExchangeTable {
  TableHeader header;
  int (*allocate)(DLTensor *prototype, DLManagedTensorVersioned **out, void *error_ctx,
                  void (*set_error)(void *error_ctx, const char *kind, const char *message));
  int (*managed_from_object)(void *object, DLManagedTensorVersioned **out);
  int (*managed_to_object)(DLManagedTensorVersioned *, void **out);  // steals
  int (*tensor_from_object)(void *object, DLTensor *out);  // valid while no other code runs
  int (*current_stream)(DLDeviceType, int32_t device_id, void **out);
};

// C callbacks: they set Python's exceptions as DLPack's standard says.

int managed_of(plait_tensor *t, DLManagedTensorVersioned **out) {
  *out = state.python->export_managed(t, 0);
  return *out ? 0 : -1;
}

plait_tensor *claimed(void *object) {
  auto *o = static_cast<PyObject *>(object);
  if (is_tensor(o)) return handle_of(o);
  PyErr_Format(PyExc_TypeError, "__dlpack_c_exchange_api__: a Tensor is required, got %s",
               Py_TYPE(o)->tp_name);
  return nullptr;
}

int managed_from_object(void *object, DLManagedTensorVersioned **out) {
  plait_tensor *t = claimed(object);
  if (!t || !refuse_grad(t, "__dlpack_c_exchange_api__", PyExc_BufferError)) return -1;
  return managed_of(t, out);
}

int managed_to_object(DLManagedTensorVersioned *managed, void **out) {
  plait_tensor *t = state.python->import_managed(state.runtime->thread(), managed);
  *out = t ? wrap(t) : nullptr;
  return *out ? 0 : -1;
}

int tensor_from_object(void *object, DLTensor *out) {
  plait_tensor *t = claimed(object);
  if (!t || !refuse_grad(t, "__dlpack_c_exchange_api__", PyExc_BufferError)) return -1;
  const char *trouble = nullptr;
  if (t->dl.device.device_type == PLAIT_META)
    trouble = "a tensor with bytes is required, got one on the device meta";
  else if (t->storage->flags & PLAIT_STORAGE_READONLY)  // a DLTensor cannot express this
    trouble = "a writable tensor is required; ask for a managed one";
  if (trouble) {
    PyErr_Format(PyExc_BufferError, "__dlpack_c_exchange_api__: %s", trouble);
    return -1;
  }
  *out = t->dl;
  return 0;
}

int current_stream(DLDeviceType type, int32_t id, void **out) {
  const plait_stream *s = state.runtime->stream(state.runtime->thread(), {type, id});
  *out = s ? s->native : nullptr;
  return 0;
}

// may be called without the GIL; reports errors through `set_error`
int allocate(DLTensor *like, DLManagedTensorVersioned **out, void *error_ctx,
             void (*set_error)(void *, const char *, const char *)) {
  plait_thread *thread = state.runtime->thread();
  plait_tensor *t = nullptr;
  const plait_status s = state.runtime->tensor_new(thread, like->dtype, like->ndim, like->shape,
                                                   nullptr, like->device, &t);
  if (s < 0) {
    set_error(error_ctx, s == PLAIT_MEMORY_ERROR ? "MemoryError" : "BufferError",
              thread->error ? thread->error->message : "the tensor could not be made");
    state.runtime->clear(thread);
    return -1;
  }
  const plait::python::Gil gil;
  const int done = managed_of(t, out);
  if (done < 0) {
    PyErr_Clear();
    set_error(error_ctx, "BufferError", "the tensor cannot be handed out through DLPack");
  }
  plait_release(t);
  return done;
}

constexpr const char *attribute = "__dlpack_c_exchange_api__",
                     *capsule_name = "dlpack_exchange_api";

ExchangeTable table{{{1, 3}, nullptr}, allocate,           managed_from_object,
                    managed_to_object, tensor_from_object, current_stream};

// The table that a class itself brings, or nullptr. What a class inherits is not taken: it may have
// a `__dlpack__` of its own that says something else.
const ExchangeTable *table_of(PyTypeObject *type) {
  static PyObject *const name = PyUnicode_InternFromString(attribute);
  Object dict(PyObject_GetAttrString(reinterpret_cast<PyObject *>(type), "__dict__"));
  Object capsule(dict && name ? PyObject_GetItem(dict.get(), name) : nullptr);
  if (!capsule || !PyCapsule_IsValid(capsule.get(), capsule_name)) return PyErr_Clear(), nullptr;
  auto *exchange =
      static_cast<const ExchangeTable *>(PyCapsule_GetPointer(capsule.get(), capsule_name));
  while (exchange && exchange->header.version.major > DLPACK_MAJOR_VERSION)
    exchange = reinterpret_cast<const ExchangeTable *>(exchange->header.previous);
  return exchange && exchange->header.version.major == DLPACK_MAJOR_VERSION ? exchange : nullptr;
}

// Whether an attribute, or what a method of this name returns, is true.
bool says(PyObject *o, PyObject *name) {
  Object value(PyObject_GetAttr(o, name));
  if (value && PyCallable_Check(value.get())) value = Object(PyObject_CallNoArgs(value.get()));
  const int truth = value ? PyObject_IsTrue(value.get()) : 0;
  if (!value || truth < 0) PyErr_Clear();
  return truth > 0;
}

// What the bytes of an array do not say: tables hand such arrays out (PyTorch's does) where
// `__dlpack__` refuses them.
bool is_more_than_bytes(PyObject *o) {
  static PyObject *const names[] = {PyUnicode_InternFromString("requires_grad"),
                                    PyUnicode_InternFromString("is_conj"),
                                    PyUnicode_InternFromString("is_neg")};
  for (PyObject *name : names)
    if (!name || says(o, name)) return true;
  return false;
}

}  // namespace

plait_tensor *import_by_table(PyObject *source) {
  const ExchangeTable *theirs = table_of(Py_TYPE(source));
  if (!theirs || !theirs->managed_from_object || is_more_than_bytes(source)) return nullptr;
  DLManagedTensorVersioned *managed = nullptr;
  if (theirs->managed_from_object(source, &managed) != 0) {
    PyErr_Clear();
    return nullptr;
  }
  // on an accelerator the streams must wait for each other, which `__dlpack__` does
  if (managed->dl_tensor.device.device_type != kDLCPU) {
    if (managed->deleter) managed->deleter(managed);
    return nullptr;
  }
  return state.python->import_managed(state.runtime->thread(), managed);
}

bool add_exchange_table() {
  Object capsule(PyCapsule_New(&table, capsule_name, nullptr));
  return capsule && PyObject_SetAttrString(reinterpret_cast<PyObject *>(state.tensor_type),
                                           attribute, capsule.get()) == 0;
}

}  // namespace plait::core
