// Block: a storage that goes to other processes, in shared memory or on a device. Ticket: one
// message that refers to it. Pin: keeps open what came along with a message.
#include <unistd.h>

#include <algorithm>

#include "binding.hpp"

namespace plait::multiprocessing::python {
namespace {

struct BlockObject {
  PyObject_HEAD plait_storage *storage;
};
struct TicketObject {
  PyObject_HEAD plait_block_name name;
  // of the block's arena, and of the memory of a device or nullptr
  void *pins[2];
  pid_t pid;   // the process that owns the ticket; a forked child's copy is not valid
  bool settled;
};
struct PinObject {
  PyObject_HEAD void *pin;
};

template <class T>
T *as(PyObject *o) {
  return reinterpret_cast<T *>(o);
}
template <class T>
T *allocate(PyTypeObject *type) {
  return as<T>(type->tp_alloc(type, 0));
}
void free_object(PyObject *o) {
  PyTypeObject *type = Py_TYPE(o);
  type->tp_free(o);
  Py_DECREF(type);
}

// The type Block.

void block_dealloc(PyObject *self) {
  plait_release(as<BlockObject>(self)->storage);
  free_object(self);
}
int block_buffer(PyObject *self, Py_buffer *view, int flags) {
  const plait_storage *s = as<BlockObject>(self)->storage;
  if (s->device.device_type != kDLCPU)
    return PyErr_SetString(PyExc_BufferError, "a block on the CPU is required"), -1;
  return PyBuffer_FillInfo(view, self, s->data, Py_ssize_t(s->nbytes), 0, flags);
}
Py_ssize_t block_length(PyObject *self) {
  return Py_ssize_t(as<BlockObject>(self)->storage->nbytes);
}
PyObject *block_ticket(PyObject *self, PyObject *) {
  auto *t = allocate<TicketObject>(state.ticket_type);
  if (!t) return nullptr;
  t->settled = true;
  plait_thread *thread = state.runtime->thread();
  auto block = Ref<plait_storage>::share(as<BlockObject>(self)->storage);
  plait_status status = PLAIT_OK;
  if (!plait_shared_is_block(block.get())) {
    plait_storage *ticket = nullptr;
    status = plait_shared_lend(thread, block.get(), &ticket, &t->pins[1]);
    block = Ref<plait_storage>::steal(ticket);
  }
  if (status >= 0) status = plait_shared_send(thread, block.get(), &t->name);
  if (status < 0) {
    Py_DECREF(t);
    return raise(status);
  }
  t->settled = false;
  t->pid = getpid();
  t->pins[0] = plait_shared_pin(block.get());
  return reinterpret_cast<PyObject *>(t);
}
PyObject *block_address(PyObject *self, void *) {
  return PyLong_FromVoidPtr(as<BlockObject>(self)->storage->data);
}

PyObject *block_key(PyObject *self, void *) {
  return PyLong_FromVoidPtr(as<BlockObject>(self)->storage);
}

PyObject *block_kind(PyObject *self, void *) {
  const auto type = int32_t(as<BlockObject>(self)->storage->device.device_type);
  return PyUnicode_FromString(type == kDLCPU ? "" : device_name(state.runtime, type));
}

PyMethodDef block_methods[] = {
    {"ticket", entry<block_ticket>, METH_NOARGS, "A message that will name this block."},
    {"tensor", function(entry<block_tensor>), METH_FASTCALL,
     "tensor(type, code, bits, offset, shape, strides): a tensor on these bytes."},
    {nullptr, nullptr, 0, nullptr}};
// What opens the communicator of a group in this block.
PyObject *block_where(PyObject *self, void *) {
  char text[160];
  plait_group_where(as<BlockObject>(self)->storage, text, sizeof text);
  return PyUnicode_FromString(text);
}

PyGetSetDef block_attributes[] = {
    {"where", entry<block_where>, nullptr, "Where a communicator of its group is opened.", nullptr},
    {"address", entry<block_address>, nullptr, "Of the first byte.", nullptr},
    {"kind", entry<block_kind>, nullptr, "The type of its device; '' for memory of the host.",
     nullptr},
    {"key", entry<block_key>, nullptr, "A number that no other living block has.", nullptr},
    {nullptr, nullptr, nullptr, nullptr, nullptr}};
PyType_Slot block_slots[] = {{Py_tp_dealloc, reinterpret_cast<void *>(block_dealloc)},
                             {Py_bf_getbuffer, reinterpret_cast<void *>(entry<block_buffer>)},
                             {Py_sq_length, reinterpret_cast<void *>(entry<block_length>)},
                             {Py_tp_methods, block_methods},
                             {Py_tp_getset, block_attributes},
                             {0, nullptr}};
PyType_Spec block_spec = {"plait_multiprocessing._shared.Block", int(sizeof(BlockObject)), 0,
                          Py_TPFLAGS_DEFAULT | Py_TPFLAGS_DISALLOW_INSTANTIATION, block_slots};

// The type Ticket.

void ticket_dealloc(PyObject *self) {
  auto *t = as<TicketObject>(self);
  if (!t->settled && t->pid == getpid()) plait_shared_cancel(&t->name);
  for (void *pin : t->pins)
    if (pin) plait_shared_unpin(pin);
  free_object(self);
}
PyObject *ticket_settle(PyObject *self, PyObject *) {
  settle(self);
  Py_RETURN_NONE;
}
PyObject *ticket_name(PyObject *self, void *) {
  const plait_block_name &n = as<TicketObject>(self)->name;
  using number = unsigned long long;
  return Py_BuildValue("(KKKKK)", number(n.arena[0]), number(n.arena[1]), number(n.offset),
                       number(n.generation), number(n.nbytes));
}
PyObject *ticket_descriptors(PyObject *self, void *) {
  std::vector<int> all;
  if (!add_descriptors(self, all)) return nullptr;
  Object tuple(PyTuple_New(Py_ssize_t(all.size())));
  for (size_t i = 0; tuple && i < all.size(); i++) {
    PyObject *fd = PyLong_FromLong(all[i]);
    if (!fd) return nullptr;
    PyTuple_SET_ITEM(tuple.get(), Py_ssize_t(i), fd);
  }
  return tuple.release();
}
PyMethodDef ticket_methods[] = {
    {"settle", entry<ticket_settle>, METH_NOARGS, "The message is on its way."},
    {nullptr, nullptr, 0, nullptr}};
PyGetSetDef ticket_attributes[] = {
    {"name", entry<ticket_name>, nullptr, "What the message says.", nullptr},
    {"descriptors", entry<ticket_descriptors>, nullptr,
     "What goes along: that of the arena, and of memory of a device, if it has one.", nullptr},
    {nullptr, nullptr, nullptr, nullptr, nullptr}};
PyType_Slot ticket_slots[] = {{Py_tp_dealloc, reinterpret_cast<void *>(ticket_dealloc)},
                              {Py_tp_methods, ticket_methods},
                              {Py_tp_getset, ticket_attributes},
                              {0, nullptr}};
PyType_Spec ticket_spec = {"plait_multiprocessing._shared.Ticket", int(sizeof(TicketObject)), 0,
                           Py_TPFLAGS_DEFAULT | Py_TPFLAGS_DISALLOW_INSTANTIATION, ticket_slots};

// The type Pin.

void pin_dealloc(PyObject *self) {
  if (as<PinObject>(self)->pin) plait_shared_unpin(as<PinObject>(self)->pin);
  free_object(self);
}
PyType_Slot pin_slots[] = {{Py_tp_dealloc, reinterpret_cast<void *>(pin_dealloc)}, {0, nullptr}};
PyType_Spec pin_spec = {"plait_multiprocessing._shared.Pin", int(sizeof(PinObject)), 0,
                        Py_TPFLAGS_DEFAULT | Py_TPFLAGS_DISALLOW_INSTANTIATION, pin_slots};

// Functions of the module.

PyObject *create(PyObject *, PyObject *size) {
  const Py_ssize_t n = PyNumber_AsSsize_t(size, PyExc_OverflowError);
  if (n == -1 && PyErr_Occurred()) return nullptr;
  if (n < 0) return PyErr_Format(PyExc_ValueError, "create: bytes are required, got %zd", n);
  plait_storage *s = nullptr;
  const plait_status status = plait_shared_create(state.runtime->thread(), uint64_t(n), &s);
  return status < 0 ? raise(status) : new_block(s);
}
PyObject *make_group(PyObject *, PyObject *args) {
  unsigned size = 0;
  unsigned long long chunk = 0;
  double timeout = 0;
  if (!PyArg_ParseTuple(args, "IKd", &size, &chunk, &timeout)) return nullptr;
  plait_storage *s = nullptr;
  const plait_status status = plait_group_create(state.runtime->thread(), size, chunk, timeout, &s);
  return status < 0 ? raise(status) : new_block(s);
}
// The block of a message, with its count taken over; nullptr with an exception.
plait_storage *received(PyObject *name) {
  unsigned long long a = 0, b = 0, offset = 0, generation = 0, nbytes = 0;
  if (!PyArg_ParseTuple(name, "KKKKK", &a, &b, &offset, &generation, &nbytes)) return nullptr;
  const plait_block_name n{{a, b}, offset, generation, nbytes};
  plait_storage *s = nullptr;
  const plait_status status = plait_shared_receive(state.runtime->thread(), &n, &s);
  if (status < 0) raise(status);
  return s;
}
PyObject *receive(PyObject *, PyObject *name) {
  plait_storage *s = received(name);
  return s ? new_block(s) : nullptr;
}
PyObject *borrow(PyObject *, PyObject *args) {
  PyObject *name = nullptr, *pin = nullptr;
  if (!PyArg_ParseTuple(args, "O!O", &PyTuple_Type, &name, &pin)) return nullptr;
  if (pin != Py_None && Py_TYPE(pin) != state.pin_type)
    return PyErr_Format(PyExc_TypeError, "borrow: a Pin or None is required, got %s",
                        Py_TYPE(pin)->tp_name);
  const auto ticket = Ref<plait_storage>::steal(received(name));
  if (!ticket) return nullptr;
  plait_storage *s = nullptr;
  const plait_status status =
      plait_shared_borrow(state.runtime->thread(), ticket.get(),
                          pin == Py_None ? nullptr : as<PinObject>(pin)->pin, &s);
  return status < 0 ? raise(status) : new_block(s);
}
PyObject *adopt(PyObject *, PyObject *descriptor) {
  const long fd = PyLong_AsLong(descriptor);
  if (fd == -1 && PyErr_Occurred()) return nullptr;
  plait_thread *thread = nullptr;
  try {
    thread = state.runtime->thread();
  } catch (const std::bad_alloc &) {
    close(int(fd));
    throw;
  }
  void *pin = nullptr;
  const plait_status s = plait_shared_adopt(thread, int(fd), &pin);
  return s < 0 ? raise(s) : new_pin(pin);
}

}  // namespace

PyObject *new_block(plait_storage *s) {
  auto *b = allocate<BlockObject>(state.block_type);
  if (b)
    b->storage = s;
  else
    plait_release(s);
  return reinterpret_cast<PyObject *>(b);
}

plait_storage *storage_in(PyObject *o) {
  if (Py_TYPE(o) == state.block_type) return as<BlockObject>(o)->storage;
  PyErr_Format(PyExc_TypeError, "a Block is required, got %s", Py_TYPE(o)->tp_name);
  return nullptr;
}

PyObject *new_pin(void *pin) {
  auto *p = allocate<PinObject>(state.pin_type);
  if (p)
    p->pin = pin;
  else
    plait_shared_unpin(pin);
  return reinterpret_cast<PyObject *>(p);
}

bool add_descriptors(PyObject *o, std::vector<int> &all) {
  if (Py_TYPE(o) != state.ticket_type) {
    PyErr_Format(PyExc_TypeError, "a Ticket is required, got %s", Py_TYPE(o)->tp_name);
    return false;
  }
  for (void *pin : as<TicketObject>(o)->pins) {
    const int fd = pin ? plait_shared_descriptor(pin) : -1;
    if (pin && std::find(all.begin(), all.end(), fd) == all.end()) all.push_back(fd);
  }
  return true;
}

void settle(PyObject *ticket) { as<TicketObject>(ticket)->settled = true; }

bool add_block_types(PyObject *module) {
  state.block_type = add_type(module, &block_spec);
  state.ticket_type = add_type(module, &ticket_spec);
  state.pin_type = add_type(module, &pin_spec);
  return state.block_type && state.ticket_type && state.pin_type;
}

PyMethodDef block_functions[] = {
    {"create", entry<create>, METH_O, "create(nbytes): a new block."},
    {"make_group", entry<make_group>, METH_VARARGS, "make_group(size, chunk, timeout): its block."},
    {"receive", entry<receive>, METH_O, "receive(name): the block that a message names."},
    {"borrow", entry<borrow>, METH_VARARGS,
     "borrow(name, pin): the storage on a device that a message names; pin: what came along."},
    {"adopt", entry<adopt>, METH_O,
     "adopt(descriptor): a pin on what it stands for; takes it over."},
    {nullptr, nullptr, 0, nullptr}};

}  // namespace plait::multiprocessing::python
