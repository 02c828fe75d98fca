// Where in the program an event happens: the module whose forward runs, and the stack of Python.
#include "binding.hpp"

#include <frameobject.h>  // PyFrame_GetBack, in Python.h itself only from 3.11

#include <plait/gil.hpp>

#include <map>
#include <string>
#include <vector>

#include "text.hpp"

namespace plait::profiler::python {
namespace {

using plait::python::HostGuard;
using plait::python::HostLock;
using plait::python::new_reference;
using plait::python::sequence_of;
using plait::python::SharedReference;

// Modules. A module's path depends on the one that called it.

struct Named {
  uint32_t number;
  PyObject *path;
};
struct Open {
  PyObject *module;  // borrowed: it runs
  Named name;
  uint32_t outer;
};

std::map<std::pair<uint32_t, PyObject *>, Named> names;  // keeps the modules and paths alive
uint64_t naming = 0;  // grows when `names` is emptied
HostLock names_lock;  // guards both
SharedReference describe;  // (path of the outer one, outer module, module) -> (path, type)

// The modules that run on this thread. Those of an earlier naming may have ended unseen.
std::vector<Open> &open_here() {
  static thread_local std::vector<Open> open;
  static thread_local uint64_t of_naming = 0;
  const HostGuard guard(names_lock);
  if (of_naming != naming) {
    of_naming = naming;
    open.clear();
    plait_profiler_set_module(0);
  }
  return open;
}

// The name of a module that `outer` calls; number 0 with an exception.
Named name_of(const Open *outer, PyObject *module) {
  const auto key = std::make_pair(outer ? outer->name.number : 0, module);
  Object around;
  uint64_t begun = 0;
  {
    const HostGuard guard(names_lock);
    if (const auto known = names.find(key); known != names.end()) return known->second;
    begun = naming;
    around = Object(new_reference(outer ? outer->name.path : Py_None));
  }
  const Object function(describe.get());
  if (!function) return {};
  Object pair(PyObject_CallFunction(function.get(), "OOO", around.get(),
                                    outer ? outer->module : Py_None, module));
  const char *path = nullptr, *type = nullptr;
  if (!pair || !PyArg_ParseTuple(pair.get(), "ss", &path, &type)) return {};
  const std::string json = "[" + quoted(path) + "," + quoted(type) + "]";
  const uint32_t number =
      plait_profiler_add('m', hash_of(json.data(), json.size(), 0), json.c_str());
  const HostGuard guard(names_lock);
  if (begun != naming) return {};  // the recording ended meanwhile
  const auto [at, is_new] = names.emplace(key, Named{number, PyTuple_GET_ITEM(pair.get(), 0)});
  if (is_new) {
    Py_INCREF(module);
    Py_INCREF(at->second.path);
  }
  return at->second;
}

PyObject *enter_module(PyObject *, PyObject *const *args, Py_ssize_t n) {
  if (n < 1 || !plait_profiler_is_recording()) Py_RETURN_NONE;
  std::vector<Open> &open = open_here();
  const Named name = name_of(open.empty() ? nullptr : &open.back(), args[0]);
  if (!name.number && PyErr_Occurred()) return nullptr;
  if (!name.number) Py_RETURN_NONE;
  open.push_back({args[0], name, plait_profiler_set_module(name.number)});
  Py_RETURN_NONE;
}

PyObject *leave_module(PyObject *, PyObject *const *args, Py_ssize_t n) {
  // inner ones that were left by an exception go as well
  std::vector<Open> &open = open_here();
  for (size_t i = n < 1 ? 0 : open.size(); i-- > 0;) {
    if (open[i].module != args[0]) continue;
    plait_profiler_set_module(open[i].outer);
    open.resize(i);
    break;
  }
  Py_RETURN_NONE;
}

// Sets what describes modules; None forgets all of them.
PyObject *name_modules(PyObject *, PyObject *function) {
  std::vector<PyObject *> last;  // a module's end may run any code, so `names` is empty by then
  {
    const HostGuard guard(names_lock);
    naming++;
    for (const auto &[key, name] : names) {
      last.push_back(key.second);
      last.push_back(name.path);
    }
    names.clear();
  }
  for (PyObject *object : last) Py_DECREF(object);
  Py_XDECREF(describe.exchange(function == Py_None ? nullptr : new_reference(function)));
  Py_RETURN_NONE;
}

// Stacks.

constexpr int most_frames = 64;

int offset_in(PyFrameObject *frame) {
#if PY_VERSION_HEX >= 0x030B0000
  return PyFrame_GetLasti(frame);
#else
  Object offset(PyObject_GetAttrString(reinterpret_cast<PyObject *>(frame), "f_lasti"));
  return offset ? int(PyLong_AsLong(offset.get())) : -1;
#endif
}

std::string text_or(PyObject *o, const char *otherwise) {
  const char *text = PyUnicode_AsUTF8(o);
  if (text) return text;
  PyErr_Clear();
  return otherwise;
}

struct Line {
  PyCodeObject *code;
  int offset;
};

std::string stack_text(const Line *lines, int n) {
  std::string text = "[";
  for (int i = 0; i < n; i++) {
    PyCodeObject *code = lines[i].code;
    text += (i ? ",[" : "[") + quoted(text_or(code->co_filename, "?").c_str()) + "," +
            std::to_string(PyCode_Addr2Line(code, lines[i].offset)) + "," +
            quoted(text_or(code->co_name, "?").c_str()) + "]";
    Py_INCREF(code);  // its address names it for ever
  }
  return text + "]";
}

// The number of this thread's stack, innermost line first.
uint32_t current_stack() {
  if (!Py_IsInitialized() || !PyGILState_GetThisThreadState()) return 0;
  const PyGILState_STATE gil = PyGILState_Ensure();
  PyObject *type, *value, *trace;
  PyErr_Fetch(&type, &value, &trace);
  Line lines[most_frames];
  int n = 0;
  uint64_t hash = 3;
  PyFrameObject *frame = PyThreadState_GetFrame(PyThreadState_Get());
  while (frame) {
    if (n < most_frames) {
      lines[n] = {PyFrame_GetCode(frame), offset_in(frame)};
      hash = mix(mix(hash, reinterpret_cast<uintptr_t>(lines[n].code)), uint64_t(lines[n].offset));
      n++;
    }
    PyFrameObject *back = n < most_frames ? PyFrame_GetBack(frame) : nullptr;
    Py_DECREF(frame);
    frame = back;
  }
  uint32_t number = 0;
  try {
    if (n) number = plait_profiler_find('k', hash);
    if (n && !number) number = plait_profiler_add('k', hash, stack_text(lines, n).c_str());
  } catch (const std::bad_alloc &) {
  }
  for (int i = 0; i < n; i++) Py_DECREF(lines[i].code);
  PyErr_Restore(type, value, trace);
  PyGILState_Release(gil);
  return number;
}

// Other functions.

PyObject *texts(PyObject *, PyObject *letter) {
  const char *name = PyUnicode_AsUTF8(letter);
  if (!name) return nullptr;
  Object list(PyList_New(0));
  if (!list) return nullptr;
  plait_profiler_texts(
      name[0],
      [](void *to, const char *text, uint64_t n) {
        Object item(PyUnicode_DecodeUTF8(text, Py_ssize_t(n), "replace"));
        if (item) PyList_Append(static_cast<PyObject *>(to), item.get());
      },
      list.get());
  return PyErr_Occurred() ? nullptr : list.release();
}

PyObject *mark_storages(PyObject *, PyObject *const *args, Py_ssize_t n) {
  if (n != 2) return PyErr_Format(PyExc_TypeError, "mark(tensors, category)");
  const unsigned long category = PyLong_AsUnsignedLong(args[1]);
  if (PyErr_Occurred()) return nullptr;
  Object items(sequence_of(args[0], "a list of tensors is required"));
  if (!items) return nullptr;
  for (Py_ssize_t i = 0; i < PySequence_Fast_GET_SIZE(items.get()); i++) {
    const plait_tensor *t = host->unwrap(PySequence_Fast_GET_ITEM(items.get(), i));
    if (t && t->storage->data) plait_profiler_mark(t->storage, uint32_t(category));
    if (PyErr_Occurred()) return nullptr;
  }
  Py_RETURN_NONE;
}

PyObject *journal_to(PyObject *, PyObject *path) {
  const char *text = PyUnicode_AsUTF8(path);
  if (!text) return nullptr;
  plait_profiler_set_journal(text);
  Py_RETURN_NONE;
}

PyObject *watch_stacks(PyObject *, PyObject *) {
  plait_profiler_set_stack_function(current_stack);
  Py_RETURN_NONE;
}

PyObject *recording(PyObject *, PyObject *) {
  return PyBool_FromLong(plait_profiler_is_recording());
}

}  // namespace

PyMethodDef context_functions[] = {
    {"enter_module", function(entry<enter_module>), METH_FASTCALL,
     "enter_module(module, *ignored): its forward begins on this thread."},
    {"leave_module", function(entry<leave_module>), METH_FASTCALL,
     "leave_module(module, *ignored): its forward has ended."},
    {"name_modules", entry<name_modules>, METH_O, "name_modules(function or None)"},
    {"texts", entry<texts>, METH_O, "texts(letter): a table, in the order of its numbers."},
    {"mark", function(entry<mark_storages>), METH_FASTCALL, "mark(tensors, category)"},
    {"journal_to", entry<journal_to>, METH_O, "journal_to(folder): where children write."},
    {"watch_stacks", entry<watch_stacks>, METH_NOARGS, "Let sessions record Python's stacks."},
    {"recording", entry<recording>, METH_NOARGS, "Whether a session runs."},
    {nullptr, nullptr, 0, nullptr}};

}  // namespace plait::profiler::python
