// Node: the Python type of `grad_fn`.
#include <vector>

#include "binding.hpp"

namespace plait::autograd::python {
namespace {

struct NodeObject {
  PyObject_HEAD plait_object *node;
};
plait_object *&node_in(PyObject *o) { return reinterpret_cast<NodeObject *>(o)->node; }

void dealloc(PyObject *self) {
  PyTypeObject *type = Py_TYPE(self);
  PyObject_GC_UnTrack(self);
  plait_release_object(std::exchange(node_in(self), nullptr));
  PyObject_GC_Del(self);
  Py_DECREF(type);
}

int traverse(PyObject *self, visitproc visit, void *arg) {
  Py_VISIT(Py_TYPE(self));
  return visit_node(node_in(self), visit, arg);
}
int clear(PyObject *self) {
  if (const Introspection *engine = introspection()) engine->untie(node_in(self));
  return 0;
}

const char *name_of(PyObject *self) {
  const plait_engine *e = role<plait_engine>(state.runtime);
  const char *name = e ? e->node_name(e->ctx, node_in(self)) : nullptr;
  return name ? name : "Node";
}
// The name that programs expect: that of the table, or "Backward" with a number as PyTorch has it.
PyObject *expected_name(plait_object *node) {
  const Introspection *engine = introspection();
  const plait_engine *e = role<plait_engine>(state.runtime);
  const char *own = engine ? engine->step_name(node) : e ? e->node_name(e->ctx, node) : nullptr;
  if (!own) own = "Node";
  const Object key(PyUnicode_FromString(own));
  if (!key) return nullptr;
  if (PyObject *entry = PyDict_GetItemWithError(state.node_names, key.get())) {
    if (PyCallable_Check(entry)) {  // the name depends on the arguments
      char letters[PLAIT_MAX_ARGS + 64] = "";
      const int ndim = engine ? engine->arguments(node, letters, sizeof letters) : 0;
      return PyObject_CallFunction(entry, "si", letters, ndim);
    }
    Py_INCREF(entry);
    return entry;
  }
  if (PyErr_Occurred()) return nullptr;
  const size_t n = std::strlen(own);
  const bool numbered = n > 8 && std::strcmp(own + n - 8, "Backward") == 0;
  return PyUnicode_FromFormat(numbered ? "%s0" : "%s", own);
}
PyObject *name(PyObject *self, PyObject *) {
  if (state.node_names) return expected_name(node_in(self));
  return PyUnicode_FromString(name_of(self));
}
PyObject *repr(PyObject *self) {
  if (!state.node_names) return PyUnicode_FromFormat("<%s at %p>", name_of(self), node_in(self));
  const Object shown(name(self, nullptr));
  return shown ? PyUnicode_FromFormat("<%U object at %p>", shown.get(), node_in(self)) : nullptr;
}

// The type of a node: with a table of names, a type for each name.
PyTypeObject *type_of(plait_object *node) {
  if (!state.node_names) {
    Py_INCREF(state.node_type);
    return state.node_type;
  }
  const Object name(expected_name(node));
  if (!name) return nullptr;
  PyObject *type = PyDict_GetItemWithError(state.node_types, name.get());
  if (!type && PyErr_Occurred()) return nullptr;
  if (type) {
    Py_INCREF(type);
    return reinterpret_cast<PyTypeObject *>(type);
  }
  const Object members(state.node_members ? PyObject_CallOneArg(state.node_members, name.get())
                                          : PyDict_New());
  const Object slots(PyTuple_New(0)), module(PyUnicode_FromString("builtins"));
  if (!members || !slots || !module ||
      PyDict_SetItemString(members.get(), "__slots__", slots.get()) < 0 ||
      PyDict_SetItemString(members.get(), "__module__", module.get()) < 0)
    return nullptr;
  type = PyObject_CallFunction(reinterpret_cast<PyObject *>(&PyType_Type), "O(O)O", name.get(),
                               state.node_type, members.get());
  if (type && PyDict_SetItem(state.node_types, name.get(), type) < 0) Py_CLEAR(type);
  return reinterpret_cast<PyTypeObject *>(type);
}

// show_node_names(table, members=None): a dict, or None for the engine's own names; the members
// that the type for a name has.
PyObject *show_node_names(PyObject *, PyObject *args) {
  PyObject *names, *members = Py_None;
  if (!PyArg_ParseTuple(args, "O|O", &names, &members)) return nullptr;
  if (names != Py_None && !PyDict_Check(names))
    return PyErr_Format(PyExc_TypeError, "show_node_names: a dict or None is required, got %s",
                        Py_TYPE(names)->tp_name);
  if (!state.node_types && !(state.node_types = PyDict_New())) return nullptr;
  PyObject *before = state.node_names;
  state.node_names = names == Py_None ? nullptr : names;
  Py_XINCREF(state.node_names);
  Py_XDECREF(before);
  before = state.node_members;
  state.node_members = members == Py_None ? nullptr : members;
  Py_XINCREF(state.node_members);
  Py_XDECREF(before);
  Py_RETURN_NONE;
}

// name_steps(names): operators of several steps name the node of their last one; empty: none does.
PyObject *name_steps(PyObject *, PyObject *names) {
  const Introspection *engine = introspection();
  const Object list(PySequence_List(names));
  if (!list) return nullptr;
  std::vector<const char *> texts;
  for (Py_ssize_t i = 0; i < PyList_GET_SIZE(list.get()); i++) {
    texts.push_back(PyUnicode_AsUTF8(PyList_GET_ITEM(list.get(), i)));
    if (!texts.back()) return nullptr;
  }
  const plait_status s =
      engine ? engine->set_steps(this_thread(), texts.data(), texts.size()) : PLAIT_OK;
  if (s < 0) return raise(s);
  Py_RETURN_NONE;
}

PyObject *edges_of(plait_object *node, PyObject *(*object)(plait_object *)) {
  const Introspection *engine = introspection();
  if (!engine)
    return PyErr_SetString(PyExc_NotImplementedError,
                           "next_functions: the engine in use does not show its graph; "
                           "plait_autograd's is required"),
           nullptr;
  const uint32_t n = engine->edges(node);
  Object all(PyTuple_New(n));
  for (uint32_t i = 0; all && i < n; i++) {
    uint32_t index = 0;
    Object next(object(engine->edge(node, i, &index)));
    PyObject *pair = next ? Py_BuildValue("(OI)", next.get(), unsigned(index)) : nullptr;
    if (!pair) return nullptr;
    PyTuple_SET_ITEM(all.get(), i, pair);
  }
  return all.release();
}
PyObject *next_functions(PyObject *self, void *) { return edges_of(node_in(self), shown_node); }
PyObject *sequence(PyObject *self, void *) {
  const Introspection *engine = introspection();
  return PyLong_FromUnsignedLongLong(engine ? engine->sequence(node_in(self)) : 0);
}

// A dict that lives as long as the node.
PyObject *metadata(PyObject *self, void *) {
  const Introspection *engine = introspection();
  if (!engine) return PyDict_New();
  plait_object *held = engine->metadata(node_in(self), nullptr);
  if (!held) {
    Object result(PyDict_New());
    plait_object *hold = result ? state.python->hold(result.get()) : nullptr;
    if (!hold) return nullptr;
    held = engine->metadata(node_in(self), hold);
    plait_release_object(hold);
  }
  PyObject *dict = state.python->held(held);
  Py_XINCREF(dict);
  plait_release_object(held);
  if (!dict) PyErr_SetString(PyExc_RuntimeError, "metadata: the node has none");
  return dict;
}

Py_hash_t hash(PyObject *self) {
  return Py_hash_t(reinterpret_cast<uintptr_t>(node_in(self)) >> 4);
}
PyObject *compare(PyObject *a, PyObject *b, int op) {
  if (!PyObject_TypeCheck(b, state.node_type) || (op != Py_EQ && op != Py_NE))
    Py_RETURN_NOTIMPLEMENTED;
  return PyBool_FromLong((node_in(a) == node_in(b)) == (op == Py_EQ));
}

PyMethodDef methods[] = {{"name", entry<name>, METH_NOARGS,
                          "name($self, /)\n--\n\nWhat made the tensor, as in MulBackward."},
                         {nullptr, nullptr, 0, nullptr}};
PyGetSetDef getters[] = {
    {"next_functions", entry<next_functions>, nullptr,
     "(node, output number) for each input; (None, 0) where no gradient goes.", nullptr},
    {"metadata", entry<metadata>, nullptr, "A dict of your own that lives as long as the node.",
     nullptr},
    {"sequence", entry<sequence>, nullptr, "Grows with the time of recording.", nullptr},
    {nullptr, nullptr, nullptr, nullptr, nullptr}};
constexpr char kDoc[] =
    "A node of the graph that backward walks: what made a tensor, and what that was made from.\n\n"
    "Nodes are equal if they are the same one. `register_hook` and `register_prehook` hang\n"
    "functions on it.\n\n"
    "Example:\n"
    "    >>> import plait_core as pc\n"
    "    >>> y = (pc.ones(2, requires_grad=True) * 3).exp()\n"
    "    >>> y.grad_fn.name(), [node.name() for node, _ in y.grad_fn.next_functions]\n"
    "    ('ExpBackward', ['MulBackward'])";
PyType_Slot slots[] = {{Py_tp_dealloc, reinterpret_cast<void *>(dealloc)},
                       {Py_tp_traverse, reinterpret_cast<void *>(traverse)},
                       {Py_tp_clear, reinterpret_cast<void *>(clear)},
                       {Py_tp_repr, reinterpret_cast<void *>(entry<repr>)},
                       {Py_tp_hash, reinterpret_cast<void *>(entry<hash>)},
                       {Py_tp_richcompare, reinterpret_cast<void *>(entry<compare>)},
                       {Py_tp_methods, methods},
                       {Py_tp_getset, getters},
                       {Py_tp_doc, const_cast<char *>(kDoc)},
                       {0, nullptr}};
PyType_Spec spec{"plait_autograd.Node", sizeof(NodeObject), 0,
                 Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC | Py_TPFLAGS_DISALLOW_INSTANTIATION |
                     Py_TPFLAGS_BASETYPE,
                 slots};

// Functions.

constexpr const char *kWeak = "plait_autograd.weak_node";

void drop_weak(PyObject *capsule) {
  plait_release_object(static_cast<plait_object *>(PyCapsule_GetPointer(capsule, kWeak)));
}

// The context of a Function if the node is a call of it (a new reference), or NULL.
PyObject *context_of(plait_object *node) {
  const Introspection *engine = introspection();
  plait_object *callable = engine ? engine->callable(node) : nullptr;
  PyObject *o = callable ? state.python->held(callable) : nullptr;
  PyObject *context = o ? PyObject_GetAttrString(o, "_context") : nullptr;
  if (!context) PyErr_Clear();  // another callable
  return context;
}

PyObject *node_of(PyObject *, PyObject *o) {
  NodeReference node = node_from(o);
  if (!node) return nullptr;
  plait_retain_object(node.get());
  return node_object(node.get());
}
PyObject *shown(PyObject *, PyObject *o) {
  if (o == Py_None) Py_RETURN_NONE;
  NodeReference node = node_from(o);
  if (!node) return nullptr;
  plait_retain_object(node.get());
  return shown_node(node.get());
}
PyObject *edges(PyObject *, PyObject *o) {
  const NodeReference node = node_from(o);
  return node ? edges_of(node.get(), node_object) : nullptr;
}

}  // namespace

PyMethodDef node_functions[] = {
    {"node", entry<node_of>, METH_O, "The Node that a Node or a Function's context stands for."},
    {"shown", entry<shown>, METH_O,
     "What programs see of a Node: a Function's context, or itself."},
    {"edges", entry<edges>, METH_O, "`next_functions` with Nodes alone."},
    {"name_steps", entry<name_steps>, METH_O,
     "name_steps(names, /)\n--\n\nLet operators of several steps name the node of their last one."},
    {"show_node_names", entry<show_node_names>, METH_VARARGS,
     "show_node_names(names, members=None, /)\n--\n\nLet nodes have other names, by their own "
     "ones, and a type for each, with the members that `members(name)` returns; None ends it."},
    {nullptr, nullptr, 0, nullptr}};

bool add_node(PyObject *module) {
  state.node_type = reinterpret_cast<PyTypeObject *>(PyType_FromSpec(&spec));
  return state.node_type &&
         PyModule_AddObjectRef(module, "Node", reinterpret_cast<PyObject *>(state.node_type)) == 0;
}

PyObject *node_object(plait_object *node) {
  if (!node) Py_RETURN_NONE;
  PyTypeObject *type = type_of(node);
  auto *o = type ? PyObject_GC_New(NodeObject, type) : nullptr;  // refers to the type
  Py_XDECREF(type);
  if (!o) {
    plait_release_object(node);
    return nullptr;
  }
  o->node = node;
  PyObject_GC_Track(o);
  return reinterpret_cast<PyObject *>(o);
}

PyObject *shown_node(plait_object *node) {
  PyObject *context = node ? context_of(node) : nullptr;
  if (!context) return node_object(node);
  plait_release_object(node);
  return context;
}

PyObject *weak_node(plait_object *node) {
  const Introspection *engine = introspection();
  plait_object *weak = nullptr;
  const plait_status s = engine ? engine->weak(this_thread(), node, &weak) : PLAIT_OK;
  if (s < 0) return raise(s);
  if (!weak) Py_RETURN_NONE;
  PyObject *capsule = PyCapsule_New(weak, kWeak, drop_weak);
  if (!capsule) plait_release_object(weak);
  return capsule;
}

NodeReference node_from(PyObject *o) {
  if (PyObject_TypeCheck(o, state.node_type)) {
    plait_retain_object(node_in(o));
    return NodeReference(node_in(o));
  }
  Object weak(PyObject_GetAttrString(o, "_node"));
  const Introspection *engine = introspection();
  if (weak && engine && PyCapsule_IsValid(weak.get(), kWeak)) {
    NodeReference node(
        engine->locked(static_cast<plait_object *>(PyCapsule_GetPointer(weak.get(), kWeak))));
    if (!node)
      PyErr_Format(PyExc_RuntimeError,
                   "%s: the call's results are gone, and its node in the graph with them; keep a "
                   "result",
                   Py_TYPE(o)->tp_name);
    return node;
  }
  PyErr_Format(PyExc_TypeError, "a Node is required, got %s", Py_TYPE(o)->tp_name);
  return NodeReference(nullptr);
}

}  // namespace plait::autograd::python
