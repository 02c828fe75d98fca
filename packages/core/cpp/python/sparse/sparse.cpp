// Sparse tensors as handles, which engines pass on as they pass gradients: boxes
// (docs/design/0035). Python's SparseTensor derives from the class here.
#include <plait/sparse.h>
#include <plait/gil.hpp>
#include <plait/layer.hpp>

#include <vector>

#include "tensor/tensor.hpp"

namespace plait::core {
namespace {

using plait::python::HostGuard;

using plait::python::Gil;

struct SparseObject {
  PyObject_HEAD plait_tensor *handle;  // its box, once it was requested
};

struct Box : plait_sparse {
  PyObject *wrapper;  // the SparseTensor, or NULL; weak, guarded by the handle's wrapper_lock
};

PyTypeObject *base_type;
uint64_t layer_bit;  // 0 until there is a box
// What the Python side does: `make` a SparseTensor of its parts, `dense` makes one dense, `operate`
// runs an operator that knows boxes, or answers NotImplemented.
PyObject *make, *dense, *operate;

void drop_box(plait_object *o) {
  auto *box = reinterpret_cast<Box *>(o);
  plait_release(box->indices);
  plait_release(box->values);
  std::free(box);
}
const plait_type box_type{PLAIT_HEADER(plait_type), "sparse", drop_box};

Box *box_of(const plait_tensor *t) {
  auto *o = t ? static_cast<plait_object *>(t->slot[3]) : nullptr;
  return o && o->type == &box_type ? reinterpret_cast<Box *>(o) : nullptr;
}

// The living SparseTensor of a box, a new reference.
PyObject *wrapper_of(const plait_tensor *t, const Box *box) {
  const HostGuard guard(wrapper_lock(t));
  return box->wrapper && is_owned_now(box->wrapper) ? box->wrapper : nullptr;
}

SparseObject *sparse_object(PyObject *o) { return reinterpret_cast<SparseObject *>(o); }

// Gives the box of a SparseTensor up, if it has one.
void unbox(PyObject *self) {
  plait_tensor *t = std::exchange(sparse_object(self)->handle, nullptr);
  if (Box *box = box_of(t)) {
    const HostGuard guard(wrapper_lock(t));
    if (box->wrapper == self) box->wrapper = nullptr;
  }
  plait_release(t);
}

void sparse_dealloc(PyObject *self) {
  PyTypeObject *type = Py_TYPE(self);
  unbox(self);
  type->tp_free(self);
  Py_DECREF(type);
}

// The layer.

// A new reference on the dense tensor of a box.
Tensor dense_of(plait_tensor *t) {
  plait_retain(t);
  const Object sparse(wrap(t));
  const Object tensor(sparse ? PyObject_CallOneArg(dense, sparse.get()) : nullptr);
  if (!tensor) return {};
  if (!is_tensor(tensor.get())) {
    PyErr_SetString(PyExc_TypeError, "to_dense: a sparse tensor must give a Tensor");
    return {};
  }
  return Tensor::share(handle_of(tensor.get()));
}

PyObject *object_from(const plait_value &v) {
  switch (v.tag) {
    case PLAIT_NONE: Py_RETURN_NONE;
    case PLAIT_TENSOR: plait_retain(v.u.t); return wrap(v.u.t);
    case PLAIT_BOOL: return PyBool_FromLong(v.u.i != 0);
    case PLAIT_INT: return PyLong_FromLongLong(v.u.i);
    case PLAIT_FLOAT: return PyFloat_FromDouble(v.u.f);
    case PLAIT_STRING: return PyUnicode_FromStringAndSize(v.u.s, v.n);
    case PLAIT_DTYPE: return state.python->dtype_object(v.u.dtype);
    default: return new_reference(Py_NotImplemented);  // no operator on boxes has such an argument
  }
}

// What `operate` makes of the call: a new reference, Py_NotImplemented among them.
PyObject *answer(const plait_call *c) {
  if (c->n_out != 1 || c->form == PLAIT_OUT) return new_reference(Py_NotImplemented);
  Object args(PyTuple_New(Py_ssize_t(c->n_in) + 2));
  PyObject *name = args ? PyUnicode_FromString(c->op->name) : nullptr;
  if (!name) return nullptr;
  PyTuple_SET_ITEM(args.get(), 0, name);
  PyTuple_SET_ITEM(args.get(), 1, PyBool_FromLong(c->form == PLAIT_INPLACE));
  for (uint16_t i = 0; i < c->n_in; i++) {
    PyObject *o = object_from(c->in[i]);
    if (!o || o == Py_NotImplemented) return o;
    PyTuple_SET_ITEM(args.get(), Py_ssize_t(i) + 2, o);
  }
  return PyObject_Call(operate, args.get(), nullptr);
}

// A box that an operator writes to becomes a dense tensor first.
plait_status make_dense(plait_thread *thread, plait_tensor *t) {
  if (!box_of(t)) return PLAIT_OK;
  const Tensor whole = dense_of(t);
  if (!whole) return state.python->keep(thread);
  const plait_status s = state.runtime->tensor_repoint(thread, t, whole.get());
  if (s < 0) return s;
  t->layers &= ~layer_bit;
  plait_release_object(static_cast<plait_object *>(std::exchange(t->slot[3], nullptr)));
  return PLAIT_OK;
}

bool is_written(const plait_call *c, uint16_t i) {
  return (c->form == PLAIT_INPLACE && i == 0) || plait_arg_at(c->op, i)->flags & PLAIT_ARG_WRITES;
}

plait_status make_written_dense(plait_call *c) {
  plait_status s = PLAIT_OK;
  const auto visit = [&](const plait_value &v) {
    if (v.tag == PLAIT_TENSOR && s >= 0) s = make_dense(c->thread, v.u.t);
    for (uint32_t k = 0; v.tag == PLAIT_TENSORS && k < v.n && s >= 0; k++)
      if (v.u.ts[k]) s = make_dense(c->thread, v.u.ts[k]);
  };
  for (uint16_t i = 0; i < c->n_in; i++)
    if (is_written(c, i)) visit(c->in[i]);
  for (uint16_t i = 0; c->form == PLAIT_OUT && i < c->n_out; i++) visit(c->out[i]);
  return s;
}

struct Arguments {  // of a call, with dense tensors for boxes
  plait_value in[PLAIT_MAX_ARGS];
  std::vector<Tensor> dense_tensors;
  std::vector<std::vector<plait_tensor *>> lists;

  // false with an exception
  bool replace(plait_tensor *&t) {
    if (!t || !box_of(t)) return true;
    dense_tensors.push_back(dense_of(t));
    t = dense_tensors.back().get();
    return t != nullptr;
  }
  bool fill(const plait_call *c) {
    for (uint16_t i = 0; i < c->n_in; i++) {
      in[i] = c->in[i];
      if (in[i].tag == PLAIT_TENSOR && !replace(in[i].u.t)) return false;
      if (in[i].tag != PLAIT_TENSORS) continue;
      lists.emplace_back(in[i].u.ts, in[i].u.ts + in[i].n);
      for (plait_tensor *&t : lists.back())
        if (!replace(t)) return false;
      in[i].u.ts = lists.back().data();
    }
    return true;
  }
};

// Operators on boxes: those that `operate` knows, and all others on dense tensors.
plait_status run(plait_call *c) {
  return border(c->thread, c->op->name, [&]() -> plait_status {
    Arguments arguments;
    {
      const Gil gil;
      if (const plait_status s = make_written_dense(c); s < 0) return s;
      const Object result(answer(c));
      if (!result) return state.python->keep(c->thread);
      if (result.get() != Py_NotImplemented) {
        if (c->form == PLAIT_INPLACE) return PLAIT_OK;
        plait_tensor *t = state.python->unwrap(result.get());
        if (!t) return state.python->keep(c->thread);
        plait_retain(t);
        c->out[0] = value(t);
        return PLAIT_OK;
      }
      if (!arguments.fill(c)) return state.python->keep(c->thread);
    }
    plait_call again = *c;
    again.size = sizeof again;
    again.in = arguments.in;
    return state.runtime->call(&again);
  });
}

const plait_plugin plugin{PLAIT_HEADER(plait_plugin),
                          "plait_core.sparse",
                          "0.1.0",
                          PLAIT_PLUGIN_DEFAULT,
                          nullptr,
                          nullptr};

bool start_layer() {
  if (layer_bit) return true;
  plait_thread *thread = state.runtime->thread();
  uint32_t bit = 0;
  uint64_t undo = 0;
  plait_status s = state.runtime->attach(thread, &plugin);
  // above differentiation and forward mode: what they see is what it calls
  if (s >= 0) s = state.runtime->layer(thread, "sparse", 56, &bit);
  if (s >= 0)
    s = state.runtime->implement(thread, nullptr, PLAIT_SLOT_LAYER + bit, run, nullptr, &plugin,
                                 &undo);
  if (s < 0) return raise(thread, s), false;
  layer_bit = uint64_t(1) << bit;
  return true;
}

plait_tensor *make_box(PyObject *self) {
  if (!start_layer()) return nullptr;
  const Object parts(PyObject_CallMethod(self, "_parts", nullptr));
  if (!parts) return nullptr;
  PyObject *indices, *values, *blank, *shape;
  int coalesced;
  if (!PyArg_ParseTuple(parts.get(), "O!O!O!O!p", state.tensor_type, &indices, state.tensor_type,
                        &values, state.tensor_type, &blank, &PyTuple_Type, &shape, &coalesced))
    return nullptr;
  const Py_ssize_t ndim = PyTuple_GET_SIZE(shape);
  if (ndim > PLAIT_MAX_DIMS)
    return PyErr_Format(PyExc_ValueError, "sparse: at most %d dimensions are accepted, got %zd",
                        PLAIT_MAX_DIMS, ndim),
           nullptr;
  int64_t sizes[PLAIT_MAX_DIMS] = {0}, strides[PLAIT_MAX_DIMS] = {0};
  for (Py_ssize_t i = 0; i < ndim; i++) {
    sizes[i] = PyLong_AsLongLong(PyTuple_GET_ITEM(shape, i));
    if (sizes[i] == -1 && PyErr_Occurred()) return nullptr;
  }
  auto *box = static_cast<Box *>(std::malloc(sizeof(Box)));
  if (!box) return PyErr_NoMemory(), nullptr;
  static_cast<plait_sparse &>(*box) = {{1, &box_type},      uint32_t(sizeof(plait_sparse)),
                                       uint32_t(coalesced), layer_bit,
                                       handle_of(indices),  handle_of(values)};
  may_be_owned(self);
  box->wrapper = self;
  plait_retain(box->indices);
  plait_retain(box->values);
  plait_thread *thread = state.runtime->thread();
  plait_tensor *element = handle_of(blank), *t = nullptr;
  plait_status s = make_waiting_calls(thread, element);  // from now on it is read-only
  if (s >= 0)
    s = state.runtime->tensor_on(thread, element->storage, element->dl.data, element->dl.dtype,
                                 int32_t(ndim), sizes, strides, &t);
  if (s < 0) {
    plait_release(box);
    return raise(thread, s), nullptr;
  }
  __atomic_fetch_or(&t->storage->flags, uint64_t(PLAIT_STORAGE_READONLY), __ATOMIC_RELAXED);
  t->slot[3] = box;
  t->layers |= layer_bit;
  return t;
}

const plait_tensor_type table{PLAIT_HEADER(plait_tensor_type), sparse_handle, wrap, 0};

PyObject *set_sparse(PyObject *, PyObject *args) {
  PyObject *callables[3];
  if (!PyArg_ParseTuple(args, "OOO", callables, callables + 1, callables + 2)) return nullptr;
  make = new_reference(callables[0]);
  dense = new_reference(callables[1]);
  operate = new_reference(callables[2]);
  Py_RETURN_NONE;
}

PyObject *changed(PyObject *, PyObject *self) {
  if (!is_sparse(self))
    return PyErr_Format(PyExc_TypeError, "a SparseTensor is required, got %s",
                        Py_TYPE(self)->tp_name);
  Box *box = box_of(sparse_object(self)->handle);
  if (!box) Py_RETURN_NONE;
  const Object parts(PyObject_CallMethod(self, "_parts", nullptr));
  PyObject *indices, *values, *blank, *shape;
  int coalesced;
  if (!parts || !PyArg_ParseTuple(parts.get(), "O!O!OOp", state.tensor_type, &indices,
                                  state.tensor_type, &values, &blank, &shape, &coalesced))
    return nullptr;
  plait_tensor *old[] = {box->indices, box->values};
  box->indices = handle_of(indices);
  box->values = handle_of(values);
  box->coalesced = uint32_t(coalesced);
  plait_retain(box->indices);
  plait_retain(box->values);
  for (plait_tensor *t : old) plait_release(t);
  Py_RETURN_NONE;
}

// record(name, callable, input, output): the callable maps the output's gradient to the input's
PyObject *record(PyObject *, PyObject *args) {
  const char *name;
  PyObject *callable, *input, *output;
  if (!PyArg_ParseTuple(args, "sOO!O!", &name, &callable, state.tensor_type, &input,
                        state.tensor_type, &output))
    return nullptr;
  const plait_engine *e = state.python->engine();
  if (!e) return nullptr;
  plait_thread *thread = state.runtime->thread();
  plait_tensor *in = handle_of(input), *out = handle_of(output);
  plait_object *held = state.python->hold(callable), *node = nullptr;
  const plait_status s = e->record(e->ctx, thread, name, held, &in, 1, &out, 1, &node);
  plait_release_object(held);
  plait_release_object(node);
  if (s < 0) return raise(thread, s);
  if (!PyObject_GC_IsTracked(output)) PyObject_GC_Track(output);
  Py_RETURN_NONE;
}

PyMethodDef functions[] = {
    {"_set_sparse", entry<set_sparse>, METH_VARARGS,
     "_set_sparse(make, dense, operate, /)\n--\n\nThe functions for sparse tensors in C++."},
    {"_sparse_changed", entry<changed>, METH_O,
     "_sparse_changed(sparse, /)\n--\n\nTells a sparse tensor's handle of new parts."},
    {"_record", entry<record>, METH_VARARGS,
     "_record(name, callable, input, output, /)\n--\n\nMakes a callable the history of a tensor."},
    {nullptr, nullptr, 0, nullptr}};

PyType_Slot slots[] = {{Py_tp_dealloc, reinterpret_cast<void *>(sparse_dealloc)},
                       {Py_tp_doc, const_cast<char *>("What sparse tensors are to C++.")},
                       {0, nullptr}};
PyType_Spec spec{"plait_core._core._Sparse", sizeof(SparseObject), 0,
                 Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE, slots};

}  // namespace

bool is_sparse(PyObject *o) { return base_type && PyType_IsSubtype(Py_TYPE(o), base_type); }

plait_tensor *sparse_handle(PyObject *o) {
  plait_tensor *&handle = sparse_object(o)->handle;
  if (handle && !box_of(handle)) unbox(o);  // it was written: it is dense
  if (!handle) handle = make_box(o);
  return handle;
}

PyObject *wrap_box(plait_tensor *t) {
  Box *box = box_of(t);
  if (PyObject *known = box ? wrapper_of(t, box) : nullptr) {
    plait_release(t);
    return known;
  }
  if (!box || !make) {
    plait_release(t);
    return PyErr_Format(PyExc_RuntimeError, "a sparse tensor of another component has no wrapper");
  }
  plait_retain(box->indices);
  plait_retain(box->values);
  const Object indices(wrap(box->indices)), values(wrap(box->values)),
      shape(size_object(t->dl.shape, t->dl.ndim));
  const Object sparse(
      indices && values && shape
          ? PyObject_CallFunctionObjArgs(make, indices.get(), values.get(), shape.get(),
                                         box->coalesced ? Py_True : Py_False, nullptr)
          : nullptr);
  if (!sparse || !is_sparse(sparse.get())) {
    plait_release(t);
    if (!PyErr_Occurred()) PyErr_SetString(PyExc_TypeError, "a SparseTensor is required");
    return nullptr;
  }
  may_be_owned(sparse.get());
  sparse_object(sparse.get())->handle = t;
  const HostGuard guard(wrapper_lock(t));
  box->wrapper = sparse.get();
  return new_reference(sparse.get());
}

bool add_sparse(PyObject *module) {
  PyObject *type = PyType_FromSpec(&spec);
  base_type = reinterpret_cast<PyTypeObject *>(type);
  const Object capsule(
      type ? PyCapsule_New(const_cast<plait_tensor_type *>(&table), "plait.tensor", nullptr)
           : nullptr);
  return capsule && PyObject_SetAttrString(type, "__plait_tensor__", capsule.get()) == 0 &&
         PyModule_AddFunctions(module, functions) == 0 &&
         PyModule_AddObjectRef(module, "_Sparse", type) == 0;
}

}  // namespace plait::core
