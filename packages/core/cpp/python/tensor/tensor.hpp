// Declarations that the files of plait_core._core share: the Tensor object, and calls of operators
// from C++.
#pragma once
#include <plait/python.h>

#include <plait/entry.hpp>
#include <plait/gil.hpp>
#include <plait/plait.hpp>

namespace plait::core {

struct TensorObject {
  PyObject_HEAD plait_tensor *handle;
  PyObject *dict, *weakrefs;
  bool weak;  // resurrected: the handle owns this wrapper, not the other way round
              // (docs/design/0001)
};

// The operators that slots, indexing and conversions call. The order is that of operator_names in
// operators.cpp.
enum Op : int {
  op_add,
  op_sub,
  op_mul,
  op_div,
  op_floor_divide,
  op_remainder,
  op_pow,
  op_matmul,
  op_bitwise_and,
  op_bitwise_or,
  op_bitwise_xor,
  op_shift_left,
  op_shift_right,
  op_eq,
  op_ne,
  op_lt,
  op_le,
  op_gt,
  op_ge,
  op_neg,
  op_abs,
  op_bitwise_not,
  op_select,
  op_slice,
  op_unsqueeze,
  op_index,
  op_index_put,
  op_copy,
  op_fill,
  op_cast,
  op_clone,
  op_permute,
  op_transpose,
  op_empty,
  op_contiguous,
  op_nonzero,
  op_reshape,
  op_view,
  op_stack,
  op_masked_fill,
  op_alias,
  op_count
};

struct State {  // filled at import; the operators when plait_core starts
  const plait_python *python;
  const plait_runtime *runtime;
  PyTypeObject *tensor_type, *size_type, *node_type;
  destructor subtype_dealloc;  // CPython's tp_dealloc of classes written in Python
  const plait_op *op[op_count];
  const plait_op *fast[op_count];  // `op`, or NULL while a mode sees every call
  uint64_t modes;  // the number of modes of all threads
  // Calls on instances of classes that have this attribute, with another value than this one, are
  // seen by this layer. NULL: there is none.
  PyObject *watched_attribute, *unwatched_value;
  uint64_t watching_layer;
  PyObject *watched_read;  // gives the number in such an instance
  // Operator objects, for calls that the fast paths do not handle
  PyObject *callable[op_count];
  PyObject *in_place_callable[op_count];
};
extern State state;

using plait::python::function;
using plait::python::Items;
using plait::python::new_reference;
using plait::python::Object;
using plait::python::sequence_of;

inline plait_tensor *handle_of(PyObject *o) { return reinterpret_cast<TensorObject *>(o)->handle; }
inline bool is_exact(PyObject *o) { return Py_TYPE(o) == state.tensor_type; }
inline bool is_tensor(PyObject *o) {
  return is_exact(o) || PyType_IsSubtype(Py_TYPE(o), state.tensor_type);
}

// From lifetime.cpp.
// Where C++ knows a Python object that it does not own: whether the object lives and is owned now.
// What may be asked of it must have been prepared when it was made.
#ifdef Py_GIL_DISABLED
inline void may_be_owned(PyObject *o) { PyUnstable_EnableTryIncRef(o); }
inline bool is_owned_now(PyObject *o) { return PyUnstable_TryIncRef(o); }
#else
inline void may_be_owned(PyObject *) {}
inline bool is_owned_now(PyObject *o) {
  if (Py_REFCNT(o) <= 0) return false;  // it is being freed
  Py_INCREF(o);
  return true;
}
#endif
// Guards slot[1] of a handle that several threads own.
plait::python::HostLock &wrapper_lock(const plait_tensor *);
PyObject *wrap(plait_tensor *);  // steals
PyObject *wrap_as(PyTypeObject *, plait_tensor *);  // a new wrapper of this class; steals
void dealloc(PyObject *);
int traverse(PyObject *, visitproc, void *);
int clear(PyObject *);
int set_attribute(PyObject *, PyObject *, PyObject *);
PyObject *get_dict(PyObject *, void *);
bool find_subtype_dealloc();

// From sparse/sparse.cpp: sparse tensors as handles (docs/design/0035).
inline bool is_box(const plait_tensor *t) { return t->slot[3] != nullptr; }
PyObject *wrap_box(plait_tensor *);  // as a SparseTensor; steals
bool is_sparse(PyObject *);
plait_tensor *sparse_handle(PyObject *);  // borrowed; NULL with an exception
bool add_sparse(PyObject *module);

// From operators.cpp: a new handle, or nullptr with an exception.
// Warns about the line of the program that called plait; false with an exception.
bool warn(const char *text);
plait_tensor *call(Op, std::initializer_list<plait_value>, uint32_t form = PLAIT_FUNCTION);
plait_tensor *cast(plait_tensor *, DLDataType);
extern PyNumberMethods number_methods;
PyObject *compare(PyObject *, PyObject *, int);
bool start_operators();
void choose_fast_operators();  // after a change of state.modes
PyObject *raise(plait_thread *, plait_status);
const plait_op *known(Op);

// From scalars.cpp: elements and Python numbers.
PyObject *read_element(DLDataType, const void *);
// stores a Python number; false with an exception
bool write_element(DLDataType, void *, PyObject *);
bool is_storable(DLDataType);  // the dtypes of write_element
PyObject *item(plait_tensor *, const char *caller);
PyObject *tolist(plait_tensor *);
int truth(PyObject *);
PyObject *as_int(PyObject *);
PyObject *as_float(PyObject *);
PyObject *as_complex(PyObject *);
PyObject *as_index(PyObject *);
// A tensor's values where the host can read them: the tensor itself, or a copy of a device's. All
// that reads values goes through it.
class OnHost {
 public:
  OnHost(plait_tensor *, const char *caller);
  OnHost(const OnHost &) = delete;
  ~OnHost() { plait_release(here_); }
  explicit operator bool() const { return here_; }  // false with an exception
  plait_tensor *get() const { return here_; }
  const char *data() const { return static_cast<const char *>(here_->dl.data); }

 private:
  plait_tensor *here_ = nullptr;
};

// From indexing.cpp and keys.cpp.
PyObject *subscript(PyObject *, PyObject *);
int assign_subscript(PyObject *, PyObject *, PyObject *);
PyObject *get_item(PyObject *, Py_ssize_t);
constexpr int max_keys = 2 * PLAIT_MAX_DIMS;
// an index: the view that its basic part selects, and the arrays that index this view
struct Keys {
  plait_tensor *view = nullptr;  // owned
  plait_tensor *indices[max_keys];  // owned, the first n; NULL where the dimension is left alone
  int n = 0;  // 0: basic indexing only
  // Masks that stand in `indices` as numbers, for the layer of `watch_classes`, which sees them
  // whole: the first dimension of each and how many it has.
  struct Mask {
    int dim;
    plait_tensor *mask;  // owned
  };
  Mask masks[max_keys];
  int n_masks = 0;
  Keys() = default;
  Keys(const Keys &) = delete;
  ~Keys();
};
// While one is alive, `_whole_masks` finds the masks of these keys among the indices of a call.
class ShownKeys {
 public:
  explicit ShownKeys(const Keys &);
  ShownKeys(const ShownKeys &) = delete;
  ~ShownKeys();

 private:
  const Keys *before_;
};
bool is_watched(const plait_tensor *);  // whether the layer of `watch_classes` sees its calls
extern PyMethodDef key_functions[];
bool take_apart(plait_tensor *, PyObject *key, Keys &);
bool set_pytorch_keys(bool);  // returns what was set before
plait_tensor *take_slice(plait_tensor *, int dim, PyObject *slice);  // a new handle, also of x[:]

// From construct.cpp and numpy/exchange.cpp.
plait_tensor *from_data(PyObject *data,
                        const DLDataType *);  // nested lists, numbers, arrays: always a copy
// the tensor on a device: itself, or a copy, through which gradients flow; steals
plait_tensor *moved(plait_tensor *, DLDevice);
// Whether a device is there; `caller`, which is to use it, raises an exception if not.
bool is_there(DLDevice, const char *caller);
extern PyBufferProcs buffer_methods;
extern PyMethodDef exchange_methods[], exchange_functions[];
bool refuse_grad(plait_tensor *, const char *caller, PyObject *exception);
// numpy/bits.cpp: bfloat16 and float8, through ml_dtypes, where it is installed
plait_tensor *import_array(PyObject *);  // a new handle on an array's own bytes
PyObject *bits_to_numpy(plait_tensor *);
PyObject *numpy();  // the module, imported at its first use; borrowed; NULL with an exception
// From numpy/exchange_table.cpp: __dlpack_c_exchange_api__, ours and those of other libraries.
bool add_exchange_table();
// A handle on the bytes of an array on the CPU, by the table of its class; nullptr, with an
// exception or without one, where `__dlpack__` has to be called.
plait_tensor *import_by_table(PyObject *);

// From storages.cpp.
extern PyMethodDef storage_methods[];

// From size.cpp, attributes.cpp, methods.cpp, gradients.cpp and type.cpp.
PyObject *size_object(const int64_t *, int32_t);
bool add_size(PyObject *module);
extern PyGetSetDef attributes[];
extern PyMethodDef methods[];
extern PyGetSetDef gradient_attributes[];
extern PyMethodDef gradient_methods[];
bool add_node(PyObject *module);
bool add_tensor(PyObject *module);
PyObject *new_tensor(PyTypeObject *, PyObject *args, PyObject *kwargs);

}  // namespace plait::core
