// device objects: a device type and an index.
#include "binding.hpp"

namespace plait::python {
namespace {

struct DeviceObject {
  PyObject_HEAD DLDevice value;
};
DLDevice value_of(PyObject *o) { return reinterpret_cast<DeviceObject *>(o)->value; }

PyObject *cpu;

bool numbered(DLDevice d) { return d.device_type != kDLCPU && d.device_type != PLAIT_META; }

const char *type_name(DLDevice d) {
  const char *name = device_name(state.runtime, int32_t(d.device_type));
  return name ? name : "unknown";
}

int type_of(const char *text, size_t n) {
  const auto is = [&](const char *name) {
    return name && strlen(name) == n && strncmp(name, text, n) == 0;
  };
  int found = -1;
  for (int i = PLAIT_MAX_DEVICE_TYPES - 1; i >= 0; i--) {
    if (is(device_name(state.runtime, i))) return i;
    if (is(known_device_name(i))) found = i;  // also where its plug-in has another name for it
  }
  return found;
}

int parse(PyObject *o, DLDevice *out) {
  const char *s = PyUnicode_AsUTF8(o);
  if (!s) return PLAIT_CONVERSION_FAILED;
  const char *colon = strchr(s, ':');
  const int type = type_of(s, colon ? size_t(colon - s) : strlen(s));
  char *end = nullptr;
  const long id = colon && colon[1] >= '0' && colon[1] <= '9' ? strtol(colon + 1, &end, 10) : 0;
  if (type < 0 || (colon && (!end || *end)) || id > 4095) {
    PyErr_Format(
        PyExc_ValueError,
        "device: \"cpu\", \"meta\" or the name of an accelerator (\"cuda:1\") is required, got %R",
        o);
    return PLAIT_CONVERSION_FAILED;
  }
  *out = {DLDeviceType(type), int32_t(id)};
  if (!numbered(*out)) out->device_id = 0;
  return PLAIT_CONVERTED;
}

PyObject *make(PyTypeObject *, PyObject *args, PyObject *kwargs) {
  PyObject *o = nullptr, *index = nullptr;
  static const char *names[] = {"type", "index", nullptr};
  if (!PyArg_ParseTupleAndKeywords(args, kwargs, "O|O:device", const_cast<char **>(names), &o,
                                   &index))
    return nullptr;
  DLDevice d;
  const int done = device_from(o, &d);
  if (done == PLAIT_NOT_CONVERTIBLE)
    PyErr_Format(PyExc_TypeError, "device: a string is required, got %s", Py_TYPE(o)->tp_name);
  if (done != PLAIT_CONVERTED) return nullptr;
  if (index && index != Py_None) {
    const long id = PyLong_AsLong(index);
    if (id == -1 && PyErr_Occurred()) return nullptr;
    if (id < 0 || id > 4095) {
      PyErr_Format(PyExc_ValueError, "device: `index` must be in [0, 4095], got %ld", id);
      return nullptr;
    }
    if (numbered(d)) d.device_id = int32_t(id);
  }
  return device_object(d);
}

PyObject *repr(PyObject *self) {
  const DLDevice d = value_of(self);
  if (numbered(d))
    return PyUnicode_FromFormat("device(type='%s', index=%d)", type_name(d), int(d.device_id));
  return PyUnicode_FromFormat("device(type='%s')", type_name(d));
}
PyObject *str(PyObject *self) {
  const DLDevice d = value_of(self);
  if (numbered(d)) return PyUnicode_FromFormat("%s:%d", type_name(d), int(d.device_id));
  return PyUnicode_FromString(type_name(d));
}
Py_hash_t hash(PyObject *self) {
  return Py_hash_t(value_of(self).device_type) * 4096 + value_of(self).device_id + 1;
}
PyObject *compare(PyObject *a, PyObject *b, int op) {
  if (Py_TYPE(b) != Py_TYPE(a) || (op != Py_EQ && op != Py_NE)) Py_RETURN_NOTIMPLEMENTED;
  return PyBool_FromLong(same(value_of(a), value_of(b)) == (op == Py_EQ));
}
PyObject *get_type(PyObject *self, void *) {
  return PyUnicode_FromString(type_name(value_of(self)));
}
PyObject *get_index(PyObject *self, void *) {
  if (!numbered(value_of(self))) Py_RETURN_NONE;
  return PyLong_FromLong(value_of(self).device_id);
}
PyObject *reduce(PyObject *self, PyObject *) {
  Object text(str(self));
  return text ? Py_BuildValue("O(O)", reinterpret_cast<PyObject *>(state.device_type), text.get())
              : nullptr;
}

PyGetSetDef getters[] = {{"type", entry<get_type>, nullptr, "\"cpu\"", nullptr},
                         {"index", entry<get_index>, nullptr,
                          "the device's number, or None where there is one only", nullptr},
                         {nullptr, nullptr, nullptr, nullptr, nullptr}};
PyMethodDef methods[] = {{"__reduce__", entry<reduce>, METH_NOARGS, nullptr},
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
                                   "    'cpu'")},
    {0, nullptr}};
PyType_Spec spec{"plait_abi.device", sizeof(DeviceObject), 0, Py_TPFLAGS_DEFAULT, slots};

}  // namespace

PyObject *device_object(DLDevice d) {
  if (d.device_type == kDLCPU && cpu) return new_reference(cpu);
  auto *o = PyObject_New(DeviceObject, state.device_type);
  if (o) o->value = d;
  return reinterpret_cast<PyObject *>(o);
}

int device_from(PyObject *o, DLDevice *out) {
  if (Py_TYPE(o) == state.device_type) return *out = value_of(o), PLAIT_CONVERTED;
  return PyUnicode_Check(o) ? parse(o, out) : PLAIT_NOT_CONVERTIBLE;
}

bool add_devices(PyObject *module) {
  state.device_type = reinterpret_cast<PyTypeObject *>(PyType_FromSpec(&spec));
  if (!state.device_type) return false;
  cpu = device_object({kDLCPU, 0});
  return cpu && PyModule_AddObjectRef(module, "device",
                                      reinterpret_cast<PyObject *>(state.device_type)) == 0;
}

}  // namespace plait::python
