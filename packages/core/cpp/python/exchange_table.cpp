// DLPack's table of C functions (1.2 and later), by which a library that takes our tensors skips
// the calls through Python: the class attribute `__dlpack_c_exchange_api__`.
#include <plait/gil.hpp>

#include "tensor.hpp"

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

ExchangeTable table{{{1, 3}, nullptr}, allocate,           managed_from_object,
                    managed_to_object, tensor_from_object, current_stream};

}  // namespace

bool add_exchange_table() {
  Object capsule(PyCapsule_New(&table, "dlpack_exchange_api", nullptr));
  return capsule && PyObject_SetAttrString(reinterpret_cast<PyObject *>(state.tensor_type),
                                           "__dlpack_c_exchange_api__", capsule.get()) == 0;
}

}  // namespace plait::core
