// Declarations that the files of plait_autograd._autograd share.
#pragma once
#include <plait/python.h>

#include <plait/entry.hpp>
#include <plait/plait.hpp>

#include <vector>

#include "introspection.hpp"
#include "watch.hpp"

namespace plait::autograd::python {

using plait::python::Object;

struct State {
  const plait_python *python = nullptr;
  const plait_runtime *runtime = nullptr;
  PyTypeObject *node_type = nullptr;
  PyObject *pack = nullptr;    // tensor -> (unpack, packed)
  PyObject *failed = nullptr;  // (name, site or None) -> None
};
extern State state;

inline plait_thread *this_thread() { return state.runtime->thread(); }
const plait_engine *engine();                 // NULL with an exception
const Introspection *introspection();  // NULL without an exception if the engine isn't ours
plait_tensor *tensor_from(PyObject *, const char *what);  // borrowed; NULL with an exception
// Sequences of tensors, None allowed where `optional`; pointers are borrowed from the objects.
bool tensors_from(PyObject *, const char *what, bool optional, std::vector<plait_tensor *> &);
inline PyObject *raise(plait_status s) { return state.python->raise(this_thread(), s); }
PyObject *wrap_new(plait_tensor *);  // takes a new reference, or None for NULL

bool add_node(PyObject *module);
PyObject *node_object(plait_object *);  // steals; None for NULL
plait_object *node_from(PyObject *);  // borrowed; NULL with an exception

// The garbage collector's functions for tensors and nodes (collector.cpp), and callbacks of the
// engine (watch.cpp).
void add_collector();
void add_watch();
int visit_node(plait_object *, visitproc, void *);
// Makes the garbage collector track a plain tensor's wrapper: its history holds Python objects.
void track(PyObject *);

// frames.cpp: the position of this thread's Python code; false without the GIL.
bool position_of_caller(plait_object **code, int64_t *offset);
bool is_ours(const char *path);  // whether a frame is in plait's own packages

extern PyMethodDef mode_functions[], pass_functions[], function_functions[], element_functions[],
    hook_functions[], watch_functions[], dual_functions[];

}  // namespace plait::autograd::python
