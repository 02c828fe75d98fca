// device objects: a device type and an index; the default device of each thread.
#include <atomic>
#include <iterator>
#include <vector>

#include "binding.hpp"

namespace plait::python {
namespace {

struct DeviceObject {
  PyObject_HEAD DLDevice value;
  int32_t written;  // "cpu:1": a number that has no meaning, which the object shows; else -1
};
DLDevice value_of(PyObject *o) { return reinterpret_cast<DeviceObject *>(o)->value; }
int32_t written_of(PyObject *o) { return reinterpret_cast<DeviceObject *>(o)->written; }

PyObject *cpu;

// Types of devices that programs ask for and DLPack has no number of. A device object of such a
// type is a name: it compares, prints and pickles, and no call takes it, unless a plug-in brings
// the type.
constexpr const char *absent_names[] = {"mps", "xla", "xpu", "hpu",          "mtia",
                                        "ipu", "hip", "npu", "privateuseone"};
constexpr int first_absent = PLAIT_MAX_DEVICE_TYPES;  // so that no plug-in's number is met
bool is_absent(DLDevice d) { return int(d.device_type) >= first_absent; }

bool numbered(DLDevice d) { return d.device_type != kDLCPU && d.device_type != PLAIT_META; }

const char *type_name(DLDevice d) {
  if (is_absent(d)) return absent_names[int(d.device_type) - first_absent];
  const char *name = device_name(state.runtime, int32_t(d.device_type));
  return name ? name : "unknown";
}

int type_of(const char *text, size_t n) {
  const auto is = [&](const char *name) {
    return name && strlen(name) == n && strncmp(name, text, n) == 0;
  };
  int result = -1;
  for (int i = PLAIT_MAX_DEVICE_TYPES - 1; i >= 0; i--) {
    if (is(device_name(state.runtime, i))) return i;
    if (is(known_device_name(i))) result = i;  // also where its plug-in has another name for it
  }
  for (size_t i = 0; result < 0 && i < std::size(absent_names); i++)
    if (is(absent_names[i])) result = first_absent + int(i);
  return result;
}

// Of each thread and type: the device that a name without a number means.
thread_local int32_t current_index[PLAIT_MAX_DEVICE_TYPES];

// A number of a device that has none, the CPU, goes to `written`; -1 if the text has no number.
int parse(PyObject *o, DLDevice *out, int32_t *written) {
  const char *s = PyUnicode_AsUTF8(o);
  if (!s) return PLAIT_CONVERSION_FAILED;
  const char *colon = strchr(s, ':');
  const int type = type_of(s, colon ? size_t(colon - s) : strlen(s));
  char *end = nullptr;
  const long id = colon && colon[1] >= '0' && colon[1] <= '9' ? strtol(colon + 1, &end, 10) : 0;
  const bool zeros = colon && colon[1] == '0' && colon[2];  // "cpu:01"
  if (type < 0 || (colon && (!end || *end || zeros)) || id > 4095) {
    // the words at the end are those that programs written for PyTorch look for
    PyErr_Format(
        state.argument_error,
        type < 0
            ? "device: \"cpu\", \"meta\" or the name of an accelerator (\"cuda:1\") is required, "
              "got %R. Expected one of cpu, meta, cuda device type at start of device string: %s"
            : "device: \"cpu\", \"meta\" or the name of an accelerator (\"cuda:1\") is required, "
              "got %R. Invalid device string: '%s'",
        o, s);
    return PLAIT_CONVERSION_FAILED;
  }
  *out = {DLDeviceType(type), int32_t(id)};
  if (!numbered(*out)) {
    if (written && colon) *written = int32_t(id);
    out->device_id = 0;
  }
  if (!is_accelerator(*out)) return PLAIT_CONVERTED;
  if (!colon) out->device_id = current_index[type];
  return load_component(*out) ? PLAIT_CONVERTED : PLAIT_CONVERSION_FAILED;
}

DLDevice current_accelerator();

// The accelerator that a number means; false with an exception.
bool numbered_accelerator(PyObject *o, const char *caller, DLDevice *out) {
  *out = current_accelerator();
  const long index = PyLong_AsLong(o);
  if (index == -1 && PyErr_Occurred()) return false;
  if (!is_accelerator(*out) || index < 0 || index > 4095) {
    PyErr_Format(PyExc_ValueError, "%s: there is no accelerator with the number %ld", caller,
                 index);
    return false;
  }
  out->device_id = int32_t(index);
  return true;
}

// What a device object, a name or the number of an accelerator means, also where the device is a
// name only.
int named_device(PyObject *o, DLDevice *out, int32_t *written = nullptr) {
  if (Py_TYPE(o) == state.device_type) {
    if (written) *written = written_of(o);
    return *out = value_of(o), PLAIT_CONVERTED;
  }
  if (PyLong_CheckExact(o))
    return numbered_accelerator(o, "device", out) ? PLAIT_CONVERTED : PLAIT_CONVERSION_FAILED;
  return PyUnicode_Check(o) ? parse(o, out, written) : PLAIT_NOT_CONVERTIBLE;
}
// false with an exception for a device that is a name only
bool refuse_absent(DLDevice d, const char *caller) {
  if (!is_absent(d)) return true;
  PyErr_Format(PyExc_NotImplementedError,
               "%s: no component for the device %s:%d is installed; "
               "without it, only the device cpu can be used",
               caller, type_name(d), int(d.device_id));
  return false;
}

PyObject *new_object(DLDevice d, int32_t written) {
  auto *o = PyObject_New(DeviceObject, state.device_type);
  if (o) o->value = d, o->written = written;
  return reinterpret_cast<PyObject *>(o);
}

PyObject *make(PyTypeObject *, PyObject *args, PyObject *kwargs) {
  PyObject *o = nullptr, *index = nullptr;
  static const char *names[] = {"type", "index", nullptr};
  if (!PyArg_ParseTupleAndKeywords(args, kwargs, "O|O:device", const_cast<char **>(names), &o,
                                   &index))
    return nullptr;
  DLDevice d;
  int32_t written = -1;
  const int done = named_device(o, &d, &written);
  if (done == PLAIT_NOT_CONVERTIBLE)
    PyErr_Format(PyExc_TypeError, "device: a string is required, got %s", Py_TYPE(o)->tp_name);
  if (done != PLAIT_CONVERTED) return nullptr;
  if (index && index != Py_None) {
    const long id = PyLong_AsLong(index);
    if (id == -1 && PyErr_Occurred()) return nullptr;
    if (id < 0 || id > 4095) {
      PyErr_Format(state.argument_error, "device: `index` must be in [0, 4095], got %ld", id);
      return nullptr;
    }
    (numbered(d) ? d.device_id : written) = int32_t(id);
  }
  return written < 0 ? device_object(d) : new_object(d, written);
}

// The number that a device shows: that of an accelerator, or one that the program wrote; or -1.
int32_t shown_index(PyObject *self) {
  const DLDevice d = value_of(self);
  return numbered(d) ? d.device_id : written_of(self);
}

PyObject *repr(PyObject *self) {
  const char *name = type_name(value_of(self));
  const int index = shown_index(self);
  return index < 0 ? PyUnicode_FromFormat("device(type='%s')", name)
                   : PyUnicode_FromFormat("device(type='%s', index=%d)", name, index);
}
PyObject *str(PyObject *self) {
  const char *name = type_name(value_of(self));
  const int index = shown_index(self);
  return index < 0 ? PyUnicode_FromString(name) : PyUnicode_FromFormat("%s:%d", name, index);
}
Py_hash_t hash(PyObject *self) {
  return Py_hash_t(value_of(self).device_type) * 4097 + shown_index(self) + 2;
}
PyObject *compare(PyObject *a, PyObject *b, int op) {
  if (Py_TYPE(b) != Py_TYPE(a) || (op != Py_EQ && op != Py_NE)) Py_RETURN_NOTIMPLEMENTED;
  return PyBool_FromLong((same(value_of(a), value_of(b)) && written_of(a) == written_of(b)) ==
                         (op == Py_EQ));
}
PyObject *get_type(PyObject *self, void *) {
  return PyUnicode_FromString(type_name(value_of(self)));
}
PyObject *get_index(PyObject *self, void *) {
  const int32_t index = shown_index(self);
  if (index < 0) Py_RETURN_NONE;
  return PyLong_FromLong(index);
}
PyObject *reduce(PyObject *self, PyObject *) {
  Object text(str(self));
  return text ? Py_BuildValue("O(O)", reinterpret_cast<PyObject *>(state.device_type), text.get())
              : nullptr;
}
PyObject *dlpack_device(PyObject *self, PyObject *) {
  const DLDevice d = value_of(self);
  return Py_BuildValue("ii", int(d.device_type), int(d.device_id));
}

// The default device, which `with` changes for a while.

// of the `with`s of this thread that have not ended: the default device before each of them
thread_local std::vector<DLDevice> entered;

PyObject *enter(PyObject *self, PyObject *) {
  if (!is_there(value_of(self), "device")) return nullptr;
  plait_thread *thread = state.runtime->thread();
  entered.push_back(thread->device);
  thread->device = value_of(self);
  return new_reference(self);
}
PyObject *leave(PyObject *, PyObject *) {
  if (entered.empty())
    return PyErr_Format(PyExc_RuntimeError, "device: __exit__ was called without __enter__");
  state.runtime->thread()->device = entered.back();
  entered.pop_back();
  Py_RETURN_NONE;
}
PyObject *get_default(PyObject *, PyObject *) {
  return device_object(state.runtime->thread()->device);
}
PyObject *set_default(PyObject *, PyObject *args, PyObject *kwargs) {
  PyObject *o;
  DLDevice d{kDLCPU, 0};
  static const char *names[] = {"device", nullptr};
  if (!PyArg_ParseTupleAndKeywords(args, kwargs, "O:set_default_device", const_cast<char **>(names),
                                   &o))
    return nullptr;
  const int done = o == Py_None ? int(PLAIT_CONVERTED) : named_device(o, &d);
  if (done == PLAIT_NOT_CONVERTIBLE)
    PyErr_Format(PyExc_TypeError, "set_default_device: `device` must be a device or None, got %s",
                 Py_TYPE(o)->tp_name);
  if (done != PLAIT_CONVERTED || !is_there(d, "set_default_device")) return nullptr;
  state.runtime->thread()->device = d;
  Py_RETURN_NONE;
}

// Accelerators.

int32_t count_of(int32_t type) {
  const auto *table = role<plait_device>(state.runtime, type);
  return table ? table->count(table->ctx) : 0;
}

// The default device if it is an accelerator, else the first accelerator that there is, else the
// CPU.
DLDevice current_accelerator() {
  const DLDevice d = state.runtime->thread()->device;
  if (is_accelerator(d)) return d;
  if (!load_component({kDLCUDA, 0})) PyErr_Clear();  // a package that is installed counts
  for (int32_t type = kDLCPU + 1; type < PLAIT_MAX_DEVICE_TYPES; type++)
    if (is_accelerator({DLDeviceType(type), 0}) && count_of(type) > 0)
      return {DLDeviceType(type), current_index[type]};
  return {kDLCPU, 0};
}
PyObject *accelerator(PyObject *, PyObject *) {
  const DLDevice d = current_accelerator();
  return is_accelerator(d) ? device_object(d) : new_reference(Py_None);
}
// What `accelerator_from` gives, whether it is there or not.
bool accelerator_named(PyObject *o, const char *caller, DLDevice *out) {
  if (o == Py_None) return *out = current_accelerator(), true;
  if (PyLong_Check(o) && !PyBool_Check(o)) return numbered_accelerator(o, caller, out);
  const int done = named_device(o, out);
  if (done == PLAIT_NOT_CONVERTIBLE)
    PyErr_Format(PyExc_TypeError, "%s: `device` must be a device, int or None, got %s", caller,
                 Py_TYPE(o)->tp_name);
  return done == PLAIT_CONVERTED;
}

PyObject *device_count(PyObject *, PyObject *o) {
  DLDevice d;
  if (!accelerator_named(o, "device_count", &d)) return nullptr;
  return PyLong_FromLong(is_accelerator(d) ? count_of(int32_t(d.device_type)) : 0);
}

PyObject *set_index(PyObject *, PyObject *o) {
  DLDevice d;
  if (!accelerator_from(o, "set_device", &d)) return nullptr;
  if (!is_accelerator(d))
    return PyErr_Format(PyExc_ValueError, "set_device: `device` must be an accelerator, got %R", o);
  const int32_t before = current_index[d.device_type];
  current_index[d.device_type] = d.device_id;
  return PyLong_FromLong(before);
}

PyObject *check_device(PyObject *, PyObject *args) {
  const char *caller;
  PyObject *device;
  if (!PyArg_ParseTuple(args, "sO!:check_device", &caller, state.device_type, &device) ||
      !is_there(value_of(device), caller))
    return nullptr;
  Py_RETURN_NONE;
}

// The types that names of a tuple mean, as bits; false with an exception.
bool types_from(PyObject *names, uint32_t *types) {
  *types = 0;
  for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(names); i++) {
    PyObject *o = PyTuple_GET_ITEM(names, i);
    const char *text = PyUnicode_Check(o) ? PyUnicode_AsUTF8(o) : nullptr;
    const int type = text ? type_of(text, strlen(text)) : -1;
    if (PyErr_Occurred()) return false;
    if (type < 0 || !is_accelerator({DLDeviceType(type), 0})) {
      PyErr_Format(PyUnicode_Check(o) ? PyExc_ValueError : PyExc_TypeError,
                   "use: `fallback` must name types of accelerators, such as \"cuda\", got %R", o);
      return false;
    }
    *types |= uint32_t(1) << type;
  }
  return true;
}

PyObject *set_fallback(PyObject *, PyObject *names) {
  uint32_t types;
  if (!PyTuple_Check(names))
    return PyErr_Format(PyExc_TypeError, "set_fallback: a tuple of names is required, got %s",
                        Py_TYPE(names)->tp_name);
  if (!types_from(names, &types)) return nullptr;
  plait_thread *thread = state.runtime->thread();
  for (int type = 0; type < PLAIT_MAX_DEVICE_TYPES; type++) {
    const DLDevice d{DLDeviceType(type), 0};
    if (!is_accelerator(d)) continue;
    const plait_status s =
        state.runtime->set_fallback(thread, d.device_type, int32_t(types >> type & 1));
    if (s < 0) return raise(thread, s);
  }
  Py_RETURN_NONE;
}

PyGetSetDef getters[] = {
    {"type", entry<get_type>, nullptr, "\"cpu\"", nullptr},
    {"index", entry<get_index>, nullptr,
     "the device's number; of the CPU the one that was written, or None", nullptr},
    {nullptr, nullptr, nullptr, nullptr, nullptr}};
PyMethodDef methods[] = {{"__reduce__", entry<reduce>, METH_NOARGS, nullptr},
                         {"__dlpack_device__", entry<dlpack_device>, METH_NOARGS,
                          "__dlpack_device__($self, /)\n--\n\n(device type, device number) of "
                          "DLPack."},
                         {"__enter__", entry<enter>, METH_NOARGS, nullptr},
                         {"__exit__", entry<leave>, METH_VARARGS, nullptr},
                         {nullptr, nullptr, 0, nullptr}};
PyType_Slot slots[] = {
    {Py_tp_new, reinterpret_cast<void *>(entry<make>)},
    {Py_tp_repr, reinterpret_cast<void *>(entry<repr>)},
    {Py_tp_str, reinterpret_cast<void *>(entry<str>)},
    {Py_tp_hash, reinterpret_cast<void *>(entry<hash>)},
    {Py_tp_richcompare, reinterpret_cast<void *>(entry<compare>)},
    {Py_tp_getset, getters},
    {Py_tp_methods, methods},
    {Py_tp_doc, const_cast<char *>("device(type, index=None)\n--\n\nWhere a tensor's bytes are: "
                                   "device(\"cpu\"), device(\"cuda\", 1)."
                                   "\n\nExample:\n"
                                   "    >>> import plait_core as pc\n"
                                   "    >>> pc.device(\"cuda\", 1)\n"
                                   "    device(type='cuda', index=1)\n"
                                   "    >>> pc.zeros(2).device.type\n"
                                   "    'cpu'\n"
                                   "    >>> with pc.device(\"meta\"):\n"
                                   "    ...     x = pc.zeros(2)\n"
                                   "    >>> x.device\n"
                                   "    device(type='meta')")},
    {0, nullptr}};
PyType_Spec spec{"plait_abi.device", sizeof(DeviceObject), 0, Py_TPFLAGS_DEFAULT, slots};

PyMethodDef functions[] = {
    {"get_default_device", entry<get_default>, METH_NOARGS,
     "get_default_device()\n--\n\nThe device of new tensors of this thread where a call names none "
     "and has no tensor."
     "\n\nExample:\n"
     "    >>> import plait_core as pc\n"
     "    >>> pc.get_default_device()\n"
     "    device(type='cpu')"},
    {"set_default_device", function(entry<set_default>), METH_VARARGS | METH_KEYWORDS,
     "set_default_device(device)\n--\n\nSet the device of new tensors of this thread where a "
     "call names none and has no tensor; None is the CPU. In a ``with device(...)`` block it holds "
     "until the block ends."
     "\n\nRaises:\n"
     "    ValueError: if there is no type of device with this name, or no device with this "
     "number.\n"
     "    NotImplementedError: if no component for the device is installed.\n"
     "    TypeError: if it is no device."
     "\n\nExample:\n"
     "    >>> import plait_core as pc\n"
     "    >>> pc.set_default_device(\"meta\")\n"
     "    >>> pc.zeros(2).device, pc.zeros(2, device=\"cpu\").device\n"
     "    (device(type='meta'), device(type='cpu'))\n"
     "    >>> pc.set_default_device(None)"},
    {"current_accelerator", entry<accelerator>, METH_NOARGS,
     "current_accelerator()\n--\n\nThe accelerator that is meant where none is named, or None."},
    {"device_count", entry<device_count>, METH_O,
     "device_count(device, /)\n--\n\nThe number of devices of an accelerator's type."},
    {"set_device", entry<set_index>, METH_O,
     "set_device(device, /)\n--\n\nLet a device be the one of its type that a name without a "
     "number "
     "means in this thread, and return the number of the one before."},
    {"check_device", entry<check_device>, METH_VARARGS,
     "check_device(who, device, /)\n--\n\nRaise an exception in the name of a function if a device "
     "is not there."},
    {"set_fallback", entry<set_fallback>, METH_O,
     "set_fallback(names, /)\n--\n\nLet these device types fall back to the CPU, and no others."},
    {nullptr, nullptr, 0, nullptr}};

}  // namespace

PyObject *device_object(DLDevice d) {
  if (d.device_type == kDLCPU && cpu) return new_reference(cpu);
  return new_object(d, -1);
}

int device_from(PyObject *o, DLDevice *out) {
  const int done = named_device(o, out);
  return done == PLAIT_CONVERTED && !refuse_absent(*out, "device") ? PLAIT_CONVERSION_FAILED : done;
}

bool load_component(DLDevice d) {
  static std::atomic<bool> is_asked[PLAIT_MAX_DEVICE_TYPES];
  if (!is_accelerator(d) || role<plait_device>(state.runtime, int32_t(d.device_type))) return true;
  if (is_asked[d.device_type].exchange(true)) return true;
  Object components(PyImport_ImportModule("plait_abi.components"));
  Object done(components ? PyObject_CallMethod(components.get(), "load_device", "s", type_name(d))
                         : nullptr);
  if (!done) is_asked[d.device_type] = false;
  return bool(done);
}

bool is_there(DLDevice d, const char *caller) {
  if (!refuse_absent(d, caller)) return false;
  if (!is_accelerator(d)) return true;
  if (!load_component(d)) return false;
  const auto *table = role<plait_device>(state.runtime, int32_t(d.device_type));
  const int32_t n = table ? table->count(table->ctx) : 0;
  if (d.device_id < n) return true;
  plait_thread *thread = state.runtime->thread();
  if (table && !n && PLAIT_HAS(plait_device, table, start))  // it knows why there is none
    if (const plait_status s = table->start(table->ctx, thread); s < 0)
      return raise(thread, s), false;
  const std::string text = device_text(state.runtime, d);
  raise(thread, table ? state.runtime->raise(thread, PLAIT_VALUE_ERROR, caller,
                                             "there is no device %s: %s has %d", text.c_str(),
                                             table->name, int(n))
                      : state.runtime->raise(thread, PLAIT_NOT_IMPLEMENTED, caller,
                                             "no component for the device %s is installed; "
                                             "without it, only the device cpu can be used",
                                             text.c_str()));
  return false;
}

bool accelerator_from(PyObject *o, const char *caller, DLDevice *out) {
  return accelerator_named(o, caller, out) && is_there(*out, caller);
}

bool add_devices(PyObject *module) {
  state.device_type = reinterpret_cast<PyTypeObject *>(PyType_FromSpec(&spec));
  if (!state.device_type) return false;
  cpu = device_object({kDLCPU, 0});
  return cpu && PyModule_AddFunctions(module, functions) == 0 &&
         PyModule_AddObjectRef(module, "device", reinterpret_cast<PyObject *>(state.device_type)) ==
             0;
}

}  // namespace plait::python
