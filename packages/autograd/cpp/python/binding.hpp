// Declarations that the files of plait_autograd._autograd share.
#pragma once
#include <plait/python.h>

#include <plait/entry.hpp>
#include <plait/plait.hpp>

#include <utility>
#include <vector>

#include "introspection.hpp"
#include "watch.hpp"

namespace plait::autograd::python {

using plait::python::Object;

struct State {
  const plait_python *python = nullptr;
  const plait_runtime *runtime = nullptr;
  PyTypeObject *node_type = nullptr;
  PyObject *node_names = nullptr;  // names that programs expect: a dict, or NULL
  PyObject *node_types = nullptr;  // the types of nodes that have such a name, by the name
  PyObject *node_members = nullptr;  // (name) -> the dict of such a type's members, or NULL
  PyObject *pack = nullptr;    // tensor -> (unpack, packed)
  PyObject *failed = nullptr;  // (name, site or None) -> None
};
extern State state;

inline plait_thread *this_thread() { return state.runtime->thread(); }
const plait_engine *engine();                 // NULL with an exception
const Introspection *introspection();  // NULL without an exception if the engine isn't ours
plait_tensor *tensor_from(PyObject *, const char *subject);  // borrowed; NULL with an exception
// Sequences of tensors, None allowed where `optional`; pointers are borrowed from the objects.
bool tensors_from(PyObject *, const char *subject, bool optional, std::vector<plait_tensor *> &);
inline PyObject *raise(plait_status s) { return state.python->raise(this_thread(), s); }
PyObject *wrap_new(plait_tensor *);  // takes a new reference, or None for NULL

bool add_node(PyObject *module);
PyObject *node_object(plait_object *);  // a Node; steals; None for NULL
// What programs see of a node: a Node, or the context of the Function whose call it is. Steals;
// None for NULL.
PyObject *shown_node(plait_object *);

class NodeReference {  // a node that a Python object stands for
 public:
  explicit NodeReference(plait_object *node) : node_(node) {}  // steals
  NodeReference(NodeReference &&other) noexcept : node_(std::exchange(other.node_, nullptr)) {}
  NodeReference(const NodeReference &) = delete;
  NodeReference &operator=(const NodeReference &) = delete;
  ~NodeReference() { plait_release_object(node_); }
  plait_object *get() const { return node_; }
  explicit operator bool() const { return node_; }

 private:
  plait_object *node_;
};
// Of a Node, or of the context of a Function's call; empty with an exception.
NodeReference node_from(PyObject *);
// What a context knows its node by (WeakNode): a capsule.
PyObject *weak_node(plait_object *);

// The garbage collector's functions for tensors and nodes (collector.cpp), and callbacks of the
// engine (watch.cpp).
void add_collector();
void add_watch();
int visit_node(plait_object *, visitproc, void *);
// Makes the garbage collector track a plain tensor's wrapper: its history holds Python objects.
void track(PyObject *);

extern PyMethodDef mode_functions[], pass_functions[], function_functions[], element_functions[],
    hook_functions[], watch_functions[], dual_functions[], node_functions[], saved_functions[];

}  // namespace plait::autograd::python
