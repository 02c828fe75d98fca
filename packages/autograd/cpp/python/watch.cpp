// The engine's callbacks for anomaly mode and hooks of saved tensors, on any thread.
#include "binding.hpp"

#include <plait/gil.hpp>

#include <frameobject.h>  // PyFrame_GetBack, in Python.h itself only from 3.11

namespace plait::autograd::python {
namespace {

using plait::python::Gil;
using plait::python::PendingError;

PyObject *call_one(PyObject *function, PyObject *argument) {
  PyObject *result = nullptr;
  plait::python::wait_for_lock([&] { result = PyObject_CallOneArg(function, argument); });
  return result;
}

bool python_thread() { return Py_IsInitialized() && PyGILState_GetThisThreadState(); }

long long offset_in(PyFrameObject *frame) {
#if PY_VERSION_HEX >= 0x030B0000
  return PyFrame_GetLasti(frame);
#else
  Object offset(PyObject_GetAttrString(reinterpret_cast<PyObject *>(frame), "f_lasti"));
  return offset ? PyLong_AsLongLong(offset.get()) : -1;
#endif
}

// The `self` of a frame that runs a module's forward or call, or NULL. Frames are never kept.
PyObject *module_in(PyFrameObject *frame, PyCodeObject *code) {
  const char *name = PyUnicode_AsUTF8(code->co_name);
  if (!name) return PyErr_Clear(), nullptr;
  if (std::strcmp(name, "forward") != 0 && std::strcmp(name, "_call_impl") != 0) return nullptr;
  Object locals(PyObject_GetAttrString(reinterpret_cast<PyObject *>(frame), "f_locals"));
  Object self(locals ? PyMapping_GetItemString(locals.get(), "self") : nullptr);
  if (!self || !PyObject_HasAttrString(self.get(), "named_modules")) return PyErr_Clear(), nullptr;
  return self.release();
}

// "Net.head.fc": the outermost module's class, then the name of each within the one around it.
Object module_path(PyObject *modules) {  // innermost first
  std::string path;
  for (Py_ssize_t i = PyList_GET_SIZE(modules) - 1; i >= 0; i--) {
    PyObject *here = PyList_GET_ITEM(modules, i);
    if (path.empty()) {
      path = Py_TYPE(here)->tp_name;
      path = path.substr(path.rfind('.') + 1);
      continue;
    }
    PyObject *around = PyList_GET_ITEM(modules, i + 1);
    if (around == here) continue;
    Object named(PyObject_CallMethod(around, "named_modules", nullptr));
    Object all(named ? PySequence_List(named.get()) : nullptr);
    for (Py_ssize_t k = 0; all && k < PyList_GET_SIZE(all.get()); k++) {
      PyObject *pair = PyList_GET_ITEM(all.get(), k);
      if (!PyTuple_Check(pair) || PyTuple_GET_SIZE(pair) != 2) continue;
      if (PyTuple_GET_ITEM(pair, 1) != here) continue;
      const char *name = PyUnicode_AsUTF8(PyTuple_GET_ITEM(pair, 0));
      if (name && *name) path += std::string(".") + name;
      break;
    }
    PyErr_Clear();
  }
  return Object(PyUnicode_FromString(path.c_str()));
}

// (module path, ((code, instruction offset), ...)) of this thread, innermost first, without the
// frames of plait's own packages.
PyObject *stack() {
  Object list(PyList_New(0)), modules(PyList_New(0));
  const Object binding(PyImport_ImportModule("plait_abi.binding"));
  const Object is_own(binding ? PyObject_GetAttrString(binding.get(), "is_own_file") : nullptr);
  if (!is_own) return nullptr;
  PyFrameObject *frame = PyThreadState_GetFrame(PyThreadState_Get());
  while (frame) {
    auto *code = PyFrame_GetCode(frame);
    Object owner(reinterpret_cast<PyObject *>(code));
    Object self(module_in(frame, code));
    if (self && modules) PyList_Append(modules.get(), self.get());
    const Object own(PyObject_CallOneArg(is_own.get(), code->co_filename));
    if (own.get() == Py_False && list) {
      const Object pair(Py_BuildValue("(OL)", owner.get(), offset_in(frame)));
      if (pair) PyList_Append(list.get(), pair.get());
    }
    PyFrameObject *back = PyFrame_GetBack(frame);
    Py_DECREF(frame);
    frame = back;
  }
  PyErr_Clear();
  if (!list || !modules) return nullptr;
  const Object path = module_path(modules.get());
  Object frames(PyList_AsTuple(list.get()));
  return path && frames ? PyTuple_Pack(2, path.get(), frames.get()) : nullptr;
}

plait_object *site() {
  if (!python_thread()) return nullptr;
  const Gil gil;
  const PendingError pending;
  const Object result(stack());
  if (!result) PyErr_Clear();
  return result ? state.python->hold(result.get()) : nullptr;
}

std::string line(PyObject *pair) {
  auto *code = reinterpret_cast<PyCodeObject *>(PyTuple_GET_ITEM(pair, 0));
  const int at = int(PyLong_AsLong(PyTuple_GET_ITEM(pair, 1)));
  const char *file = PyUnicode_AsUTF8(code->co_filename), *name = PyUnicode_AsUTF8(code->co_name);
  return std::string(file ? file : "?") + ":" + std::to_string(PyCode_Addr2Line(code, at)) +
         " in " + (name ? name : "?");
}

void describe(plait_object *held, int full, char *text, uint64_t size) {
  if (!size) return;
  text[0] = 0;
  if (!Py_IsInitialized()) return;
  const Gil gil;
  const PendingError pending;
  PyObject *site = state.python->held(held);
  if (!site || !PyTuple_Check(site) || PyTuple_GET_SIZE(site) != 2) return;
  PyObject *frames = PyTuple_GET_ITEM(site, 1);
  std::string result;
  for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(frames); i++) {
    PyObject *pair = PyTuple_GET_ITEM(frames, i);
    result += (result.empty() ? "" : "\n") + line(pair);
    if (!full) break;
  }
  const char *path = PyUnicode_AsUTF8(PyTuple_GET_ITEM(site, 0));
  if (!full && path && *path) result += std::string(" (module ") + path + ")";
  PyErr_Clear();
  std::snprintf(text, size, "%s", result.c_str());
}

void failed(const char *node, plait_object *held) {
  if (!state.failed || !python_thread()) return;
  const Gil gil;
  const PendingError pending;
  PyObject *site = held ? state.python->held(held) : nullptr;
  const Object result(PyObject_CallFunction(state.failed, "sO", node, site ? site : Py_None));
  if (!result) PyErr_WriteUnraisable(state.failed);
}

plait_object *pack(plait_thread *thread, plait_tensor *t) {
  const Gil gil;
  plait_retain(t);
  const Object tensor(state.python->wrap(t));
  const Object packed(tensor ? call_one(state.pack, tensor.get()) : nullptr);
  if (packed) return state.python->hold(packed.get());
  state.python->keep(thread);
  return nullptr;
}

plait_status unpack(plait_thread *thread, plait_object *held, plait_tensor **out) {
  const Gil gil;
  PyObject *pair = state.python->held(held);  // (unpack, packed)
  if (!pair || !PyTuple_Check(pair) || PyTuple_GET_SIZE(pair) != 2)
    return state.runtime->raise(thread, PLAIT_ERROR, "saved_tensors_hooks", "nothing was packed");
  const Object result(PyObject_CallOneArg(PyTuple_GET_ITEM(pair, 0), PyTuple_GET_ITEM(pair, 1)));
  if (!result) return state.python->keep(thread);
  plait_tensor *t = state.python->unwrap(result.get());
  if (!t) {
    if (!PyErr_Occurred())
      PyErr_Format(PyExc_TypeError,
                   "saved_tensors_hooks: the unpack hook must return a tensor; got %s",
                   Py_TYPE(result.get())->tp_name);
    return state.python->keep(thread);
  }
  plait_retain(t);
  *out = t;
  return PLAIT_OK;
}

const Watch table{PLAIT_HEADER(Watch), site, describe, failed, pack, unpack};

// For Python.
PyObject *set_callbacks(PyObject *, PyObject *args) {
  PyObject *pack, *failed;
  if (!PyArg_ParseTuple(args, "OO", &pack, &failed)) return nullptr;
  Py_INCREF(pack);
  Py_XSETREF(state.pack, pack);
  Py_INCREF(failed);
  Py_XSETREF(state.failed, failed);
  Py_RETURN_NONE;
}

bool refused(const char *subject) {
  PyErr_Format(PyExc_NotImplementedError,
               "%s: the engine in use has none; plait_autograd's is required", subject);
  return true;
}

PyObject *set_packing(PyObject *, PyObject *depth) {
  const long required = PyLong_AsLong(depth);
  const Introspection *engine = introspection();
  if (PyErr_Occurred() || (required > 0 && !engine && refused("hooks of saved tensors")))
    return nullptr;
  return PyLong_FromLong(engine ? engine->set_packing(int(required)) : 0);
}

PyObject *set_anomaly(PyObject *, PyObject *args) {
  int on = 0, check_nan = 1;
  if (!PyArg_ParseTuple(args, "pp", &on, &check_nan)) return nullptr;
  const Introspection *engine = introspection();
  if (on && !engine && refused("anomaly mode")) return nullptr;
  const plait_status s = engine ? engine->set_anomaly(this_thread(), on, check_nan) : PLAIT_OK;
  if (s < 0) return raise(s);
  Py_RETURN_NONE;
}

PyObject *anomaly_mode(PyObject *, PyObject *) {
  const Introspection *engine = introspection();
  return PyLong_FromLong(engine ? engine->anomaly() : 0);
}

PyObject *site_object(plait_object *held) {
  if (!held) Py_RETURN_NONE;
  PyObject *o = state.python->held(held);
  Py_XINCREF(o);
  plait_release_object(held);
  if (!o) Py_RETURN_NONE;
  return o;
}

PyObject *node_site(PyObject *, PyObject *o) {
  const NodeReference node = node_from(o);
  const Introspection *engine = node ? introspection() : nullptr;
  if (!node) return nullptr;
  return site_object(engine ? engine->site(node.get()) : nullptr);
}

PyObject *node_nan(PyObject *, PyObject *o) {
  const NodeReference node = node_from(o);
  const Introspection *engine = node ? introspection() : nullptr;
  if (!node) return nullptr;
  NanNote note{};
  note.argument = "";
  if (engine) engine->nan(node.get(), &note);
  PyObject *shape = note.shape ? PyTuple_New(note.ndim) : Py_NewRef(Py_None);
  for (int32_t i = 0; shape && note.shape && i < note.ndim; i++) {
    PyObject *size = PyLong_FromLongLong(note.shape[i]);
    if (!size)
      Py_CLEAR(shape);
    else
      PyTuple_SET_ITEM(shape, i, size);
  }
  if (!shape) return nullptr;
  return Py_BuildValue("(IsIIN)", unsigned(note.nan), note.argument, unsigned(note.number),
                       unsigned(note.edge), shape);
}

PyObject *current_site(PyObject *, PyObject *) { return site_object(site()); }

}  // namespace

void add_watch() {
  if (const Introspection *engine = introspection()) engine->set_watch(&table);
}

PyMethodDef watch_functions[] = {
    {"set_callbacks", entry<set_callbacks>, METH_VARARGS,
     "What packs saved tensors, what reports."},
    {"set_packing", entry<set_packing>, METH_O,
     "How many hooks of saved tensors are in force here."},
    {"set_anomaly", entry<set_anomaly>, METH_VARARGS, "Turns anomaly mode on or off."},
    {"anomaly_mode", entry<anomaly_mode>, METH_NOARGS, "0, 1, or 3 if gradients are looked at."},
    {"node_site", entry<node_site>, METH_O, "Where a node was recorded, in anomaly mode."},
    {"node_nan", entry<node_nan>, METH_O, "What a node's call had to do with a NaN."},
    {"here", entry<current_site>, METH_NOARGS, "Where this thread is, as node_site says it."},
    {nullptr, nullptr, 0, nullptr}};

}  // namespace plait::autograd::python
