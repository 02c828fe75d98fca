// Member: one rank of a group, and the collectives it takes part in.
#include <plait/gil.hpp>

#include <vector>

#include "binding.hpp"

namespace plait::multiprocessing::python {
namespace {

struct MemberObject {
  PyObject_HEAD plait_member *member;
};

plait_member *member_in(PyObject *self) {
  plait_member *m = reinterpret_cast<MemberObject *>(self)->member;
  if (!m) PyErr_SetString(PyExc_ValueError, "a member that has not left its group is required");
  return m;
}

int interrupted() {
  const plait::python::Gil gil;
  return PyErr_CheckSignals();
}

// Tensors of a tuple, also arrays of other libraries, all counted.
class Tensors {
 public:
  Tensors() = default;
  Tensors(const Tensors &) = delete;
  ~Tensors() {
    for (plait_tensor *t : list_) plait_release(t);
  }
  bool take(PyObject *tuple) {
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(tuple); i++) {
      PyObject *o = PyTuple_GET_ITEM(tuple, i);
      plait_tensor *t = state.python->unwrap(o);
      if (t)
        plait_retain(t);
      else if (!PyErr_Occurred())
        t = state.python->import_array(state.runtime->thread(), o);
      if (!t) return false;
      list_.push_back(t);
      if (t->dl.device.device_type != kDLCPU)
        return PyErr_Format(PyExc_TypeError, "a tensor on the CPU is required"), false;
    }
    return true;
  }
  bool writable() const {
    for (const plait_tensor *t : list_)
      if (t->storage->flags & PLAIT_STORAGE_READONLY)
        return PyErr_Format(PyExc_ValueError, "a tensor that may be written is required"), false;
    return true;
  }
  void touched() const {
    for (const plait_tensor *t : list_) state.runtime->touched(t->storage);
  }
  const std::vector<plait_tensor *> &list() const { return list_; }

 private:
  std::vector<plait_tensor *> list_;
};

// run(kind, reduction, root, inputs, outputs): (outcome, text)
PyObject *run(PyObject *self, PyObject *args) {
  plait_member *m = member_in(self);
  unsigned kind = 0, reduction = 0, root = 0;
  PyObject *inputs = nullptr, *outputs = nullptr;
  if (!m || !PyArg_ParseTuple(args, "IIIO!O!", &kind, &reduction, &root, &PyTuple_Type, &inputs,
                              &PyTuple_Type, &outputs))
    return nullptr;
  Tensors in, out;
  if (!in.take(inputs) || !out.take(outputs) || !out.writable()) return nullptr;
  for (const Tensors *some : {&in, &out})
    for (const plait_tensor *t : some->list())
      if (!same(t->dl.dtype, in.list()[0]->dl.dtype))
        return PyErr_Format(PyExc_TypeError, "tensors of one dtype are required");
  char text[4096] = "";
  plait_collective_call call{kind,
                             reduction,
                             root,
                             uint32_t(in.list().size()),
                             uint32_t(out.list().size()),
                             0,
                             in.list().data(),
                             out.list().data(),
                             interrupted,
                             text,
                             sizeof text};
  int outcome = 0;
  Py_BEGIN_ALLOW_THREADS;
  outcome = plait_group_run(m, &call);
  Py_END_ALLOW_THREADS;
  if (outcome != PLAIT_MISMATCH) out.touched();
  if (PyErr_Occurred()) return nullptr;
  return Py_BuildValue("is", outcome, text);
}

PyObject *leave(PyObject *self, PyObject *) {
  auto *m = reinterpret_cast<MemberObject *>(self);
  if (m->member) plait_group_leave(m->member);
  m->member = nullptr;
  Py_RETURN_NONE;
}

void dealloc(PyObject *self) {
  auto *m = reinterpret_cast<MemberObject *>(self);
  if (m->member) plait_group_leave(m->member);
  PyTypeObject *type = Py_TYPE(self);
  type->tp_free(self);
  Py_DECREF(type);
}

PyObject *join(PyObject *, PyObject *args) {
  PyObject *block = nullptr;
  unsigned rank = 0;
  if (!PyArg_ParseTuple(args, "OI", &block, &rank)) return nullptr;
  plait_storage *s = storage_in(block);
  if (!s) return nullptr;
  char text[512] = "";
  plait_member *m = plait_group_join(s, rank, text, sizeof text);
  if (!m) return PyErr_Format(PyExc_ValueError, "%s", text);
  auto *o = reinterpret_cast<MemberObject *>(state.member_type->tp_alloc(state.member_type, 0));
  if (o)
    o->member = m;
  else
    plait_group_leave(m);
  return reinterpret_cast<PyObject *>(o);
}

PyObject *make_group(PyObject *, PyObject *args) {
  unsigned size = 0;
  unsigned long long chunk = 0;
  double timeout = 0;
  if (!PyArg_ParseTuple(args, "IKd", &size, &chunk, &timeout)) return nullptr;
  plait_storage *s = nullptr;
  const plait_status status =
      plait_shared_create(state.runtime->thread(), plait_group_bytes(size, chunk), &s);
  if (status < 0) return raise(status);
  plait_group_format(s, size, chunk, timeout);
  return new_block(s);
}

PyMethodDef member_methods[] = {{"run", entry<run>, METH_VARARGS,
                                 "run(kind, reduction, root, inputs, outputs): (outcome, text)"},
                                {"leave", entry<leave>, METH_NOARGS, "Leave the group."},
                                {nullptr, nullptr, 0, nullptr}};
PyType_Slot member_slots[] = {{Py_tp_dealloc, reinterpret_cast<void *>(dealloc)},
                              {Py_tp_methods, member_methods},
                              {0, nullptr}};
PyType_Spec member_spec = {"plait_multiprocessing._shared.Member", int(sizeof(MemberObject)), 0,
                           Py_TPFLAGS_DEFAULT | Py_TPFLAGS_DISALLOW_INSTANTIATION, member_slots};

}  // namespace

bool add_member_type(PyObject *module) {
  state.member_type = add_type(module, &member_spec);
  return state.member_type != nullptr;
}

PyMethodDef member_functions[] = {
    {"make_group", entry<make_group>, METH_VARARGS, "make_group(size, chunk, timeout): its block."},
    {"join", entry<join>, METH_VARARGS, "join(block, rank): a Member."},
    {nullptr, nullptr, 0, nullptr}};

}  // namespace plait::multiprocessing::python
