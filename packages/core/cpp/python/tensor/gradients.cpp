// Attributes and methods that the engine implements: requires_grad, grad, backward. The engine is
// loaded at its first use.
#include <vector>

#include "tensor/batched.hpp"
#include "tensor/overriding.hpp"

namespace plait::core {
namespace {

const plait_engine *present() { return role<plait_engine>(state.runtime); }
bool requires_grad(plait_tensor *t) {
  const plait_engine *e = present();
  // also a view whose base was written to by an operator with a history
  const uint64_t layers = __atomic_load_n(&t->layers, __ATOMIC_RELAXED);
  return e && ((layers >> e->layer & 1) || (t->base && !e->is_leaf(e->ctx, t)));
}

// Nodes of the graph, to be inspected.

struct NodeObject {
  PyObject_HEAD plait_object *node;
};
plait_object *node_of(PyObject *o) { return reinterpret_cast<NodeObject *>(o)->node; }
const char *node_name(PyObject *self) {
  const plait_engine *e = present();
  const char *name = e ? e->node_name(e->ctx, node_of(self)) : nullptr;
  return name ? name : "Node";
}
void node_dealloc(PyObject *self) {
  PyTypeObject *type = Py_TYPE(self);
  plait_release_object(node_of(self));
  PyObject_Free(self);
  Py_DECREF(type);
}
PyObject *node_repr(PyObject *self) {
  return PyUnicode_FromFormat("<%s at %p>", node_name(self), node_of(self));
}
PyObject *get_node_name(PyObject *self, PyObject *) {
  return PyUnicode_FromString(node_name(self));
}
Py_hash_t node_hash(PyObject *self) {
  return Py_hash_t(reinterpret_cast<uintptr_t>(node_of(self)) >> 4);
}
PyObject *node_compare(PyObject *a, PyObject *b, int op) {
  if (Py_TYPE(a) != Py_TYPE(b) || (op != Py_EQ && op != Py_NE)) Py_RETURN_NOTIMPLEMENTED;
  return PyBool_FromLong((node_of(a) == node_of(b)) == (op == Py_EQ));
}
PyMethodDef node_methods[] = {{"name", entry<get_node_name>, METH_NOARGS,
                               "name($self, /)\n--\n\nThe operator's name with Backward."},
                              {nullptr, nullptr, 0, nullptr}};
PyType_Slot node_slots[] = {
    {Py_tp_dealloc, reinterpret_cast<void *>(node_dealloc)},
    {Py_tp_repr, reinterpret_cast<void *>(entry<node_repr>)},
    {Py_tp_hash, reinterpret_cast<void *>(entry<node_hash>)},
    {Py_tp_richcompare, reinterpret_cast<void *>(entry<node_compare>)},
    {Py_tp_methods, node_methods},
    {Py_tp_doc, const_cast<char *>("A node of the graph that backward walks.")},
    {0, nullptr}};
PyType_Spec node_spec{"plait_core.Node", sizeof(NodeObject), 0,
                      Py_TPFLAGS_DEFAULT | Py_TPFLAGS_DISALLOW_INSTANTIATION, node_slots};

// The returned object belongs to this tensor's history, and the program may attach objects to it
// that refer to this tensor: the garbage collector must track it.
void track(PyObject *self) {
  if (!PyObject_GC_IsTracked(self)) PyObject_GC_Track(self);
}

// Properties of tensors.

int fail(plait_thread *thread, plait_status s) {
  raise(thread, s);
  return -1;
}

PyObject *get_requires_grad(PyObject *self, void *) {
  return PyBool_FromLong(requires_grad(handle_of(self)));
}

int set_flag(PyObject *self, int on) {
  if (!on && !requires_grad(handle_of(self))) return 0;  // without an engine the default may be set
  const plait_engine *e = state.python->engine();
  if (!e) return -1;
  plait_thread *thread = state.runtime->thread();
  const plait_status s = e->set_requires_grad(e->ctx, thread, handle_of(self), on);
  return s < 0 ? fail(thread, s) : 0;
}
int set_requires_grad(PyObject *self, PyObject *o, void *) {
  const int on = o ? PyObject_IsTrue(o) : 0;
  return on < 0 ? -1 : set_flag(self, on);
}

// Python code decides on the warning, as the engine's package knows more than its role; it is
// rarely called.
PyObject *no_gradient(PyObject *self) {
  Object module(PyImport_ImportModule("plait_core._tensor._graph_attributes"));
  if (!module) return nullptr;
  return PyObject_CallMethod(module.get(), "no_gradient", "O", self);
}
PyObject *get_grad(PyObject *self, void *) {
  const plait_engine *e = present();
  if (!e) Py_RETURN_NONE;
  plait_thread *thread = state.runtime->thread();
  plait_tensor *g = nullptr;
  const plait_status s = e->grad(e->ctx, thread, handle_of(self), &g);
  if (s < 0) return raise(thread, s);
  if (!g && requires_grad(handle_of(self)) && !e->is_leaf(e->ctx, handle_of(self)))
    return no_gradient(self);
  if (!g) Py_RETURN_NONE;
  track(self);
  return wrap(g);
}
int set_grad(PyObject *self, PyObject *o, void *) {
  if (!o) o = Py_None;
  const bool sparse = is_sparse(o);
  if (o != Py_None && !sparse && !is_tensor(o)) {
    PyErr_Format(PyExc_TypeError, "grad: a Tensor or None is required, got %s",
                 Py_TYPE(o)->tp_name);
    return -1;
  }
  if (o == Py_None && !present()) return 0;
  const plait_engine *e = state.python->engine();
  if (!e) return -1;
  plait_thread *thread = state.runtime->thread();
  plait_tensor *gradient = o == Py_None ? nullptr : sparse ? sparse_handle(o) : handle_of(o);
  if (sparse && !gradient) return -1;
  const plait_status s = e->set_grad(e->ctx, thread, handle_of(self), gradient);
  return s < 0 ? fail(thread, s) : 0;
}

PyObject *get_is_leaf(PyObject *self, void *) {
  const plait_engine *e = present();
  return PyBool_FromLong(!e || e->is_leaf(e->ctx, handle_of(self)));
}
PyObject *get_grad_fn(PyObject *self, void *) {
  const plait_engine *e = present();
  plait_object *node = e ? e->node(e->ctx, handle_of(self)) : nullptr;
  if (!node) Py_RETURN_NONE;
  track(self);
  if (*state.python->node_object) return (*state.python->node_object)(node);
  auto *o = PyObject_New(NodeObject, state.node_type);
  if (o)
    o->node = node;
  else
    plait_release_object(node);
  return reinterpret_cast<PyObject *>(o);
}

PyObject *requires_grad_(PyObject *self, PyObject *args, PyObject *kwargs) {
  int on = 1;
  static const char *names[] = {"requires_grad", nullptr};
  if (!PyArg_ParseTupleAndKeywords(args, kwargs, "|p:requires_grad_", const_cast<char **>(names),
                                   &on))
    return nullptr;
  return set_flag(self, on) < 0 ? nullptr : new_reference(self);
}

PyObject *retain_grad(PyObject *self, PyObject *) {
  const plait_engine *e = state.python->engine();
  if (!e) return nullptr;
  plait_thread *thread = state.runtime->thread();
  const plait_status s = e->retain_grad(e->ctx, thread, handle_of(self));
  if (s < 0) return raise(thread, s);
  Py_RETURN_NONE;
}

PyObject *detach_in_place(PyObject *self, PyObject *) {
  const plait_engine *e = present();
  plait_thread *thread = state.runtime->thread();
  const plait_status s = e ? e->detach_(e->ctx, thread, handle_of(self)) : plait_status(PLAIT_OK);
  return s < 0 ? raise(thread, s) : new_reference(self);
}

bool take_inputs(PyObject *o, Object &list, std::vector<plait_tensor *> &out) {
  if (!o || o == Py_None) return true;
  if (!Py_TYPE(o)->tp_iter && !PySequence_Check(o))
    return PyErr_Format(PyExc_TypeError,
                        "backward: `inputs` must be a Tensor or a sequence of Tensors, got %s",
                        Py_TYPE(o)->tp_name),
           false;
  list = Object(is_tensor(o) ? PyTuple_Pack(1, o) : PySequence_Tuple(o));
  if (!list) return false;
  for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(list.get()); i++) {
    PyObject *t = PyTuple_GET_ITEM(list.get(), i);
    if (!is_tensor(t))
      return PyErr_Format(PyExc_TypeError, "backward: `inputs` must be Tensors, got %s",
                          Py_TYPE(t)->tp_name),
             false;
    out.push_back(handle_of(t));
  }
  if (out.empty()) PyErr_SetString(PyExc_ValueError, "backward: `inputs` must not be empty");
  return !out.empty();
}

// adds the gradients of backward(inputs=) to those that exist
plait_status accumulate(const plait_engine *e, plait_thread *thread, plait_tensor *t,
                        plait_tensor *g) {
  plait_tensor *old = nullptr;
  plait_status s = e->grad(e->ctx, thread, t, &old);
  if (s < 0 || !old) return s < 0 ? s : e->set_grad(e->ctx, thread, t, g);
  plait_tensor *sum = call(op_add, {value(old), value(g)});
  plait_release(old);
  if (!sum) return state.python->keep(thread);
  s = e->set_grad(e->ctx, thread, t, sum);
  plait_release(sum);
  return s;
}

PyObject *backward(PyObject *self, PyObject *args, PyObject *kwargs) {
  PyObject *gradient = Py_None, *retain = Py_None, *inputs = nullptr;
  int create = 0;
  static const char *names[] = {"gradient", "retain_graph", "create_graph", "inputs", nullptr};
  if (!PyArg_ParseTupleAndKeywords(args, kwargs, "|OOpO:backward", const_cast<char **>(names),
                                   &gradient, &retain, &create, &inputs))
    return nullptr;
  if (!may_call_backward()) return nullptr;
  if (gradient != Py_None && !is_tensor(gradient))
    return PyErr_Format(PyExc_TypeError, "backward: `gradient` must be a Tensor or None, got %s",
                        Py_TYPE(gradient)->tp_name);
  const int keep_graph = retain == Py_None ? create : PyObject_IsTrue(retain);
  Object list;
  std::vector<plait_tensor *> required;
  const plait_engine *e =
      keep_graph < 0 || !take_inputs(inputs, list, required) ? nullptr : state.python->engine();
  if (!e) return nullptr;
  std::vector<plait_tensor *> gradients(required.size(), nullptr);
  plait_thread *thread = state.runtime->thread();
  for (plait_tensor *t : required) {  // what is no leaf gets its gradient during the pass
    if (e->is_leaf(e->ctx, t)) continue;
    const plait_status s = e->retain_grad(e->ctx, thread, t);
    if (s < 0) return raise(thread, s);
  }
  plait_tensor *root = handle_of(self), *grad = gradient == Py_None ? nullptr : handle_of(gradient);
  const uint64_t flags = (keep_graph ? PLAIT_BACKWARD_RETAIN : 0) |
                         (create ? PLAIT_BACKWARD_CREATE : 0) | PLAIT_BACKWARD_ALLOW_UNUSED |
                         PLAIT_BACKWARD_ACCUMULATE;
  plait_status s =  // releases the GIL itself
      e->backward(e->ctx, thread, &root, &grad, 1, required.empty() ? nullptr : required.data(),
                  uint32_t(required.size()), flags, gradients.empty() ? nullptr : gradients.data());
  for (size_t i = 0; i < gradients.size(); i++) {
    if (s >= 0 && gradients[i] && e->is_leaf(e->ctx, required[i]))
      s = accumulate(e, thread, required[i], gradients[i]);
    plait_release(gradients[i]);
  }
  if (s < 0) return raise(thread, s);
  Py_RETURN_NONE;
}

}  // namespace

PyGetSetDef gradient_attributes[] = {
    {"requires_grad", asking<get_requires_grad>, asking<set_requires_grad>,
     "Whether operators on this tensor are recorded."
     "\n\nExample:\n"
     "    >>> import plait_core as pc\n"
     "    >>> pc.zeros(2).requires_grad\n"
     "    False",
     nullptr},
    {"grad", asking<get_grad>, asking<set_grad>,
     "What backward accumulated, or None."
     "\n\nExample:\n"
     "    >>> import plait_core as pc\n"
     "    >>> import plait_autograd\n"
     "    >>> x = pc.tensor([1.0, 2.0], requires_grad=True)\n"
     "    >>> (x * x).sum().backward()\n"
     "    >>> x.grad\n"
     "    tensor([2., 4.])",
     nullptr},
    {"is_leaf", asking<get_is_leaf>, nullptr,
     "Whether no recorded operator made this tensor."
     "\n\nExample:\n"
     "    >>> import plait_core as pc\n"
     "    >>> pc.zeros(2).is_leaf\n"
     "    True",
     nullptr},
    {"grad_fn", asking<get_grad_fn>, nullptr,
     "The node that made this tensor, or None."
     "\n\nExample:\n"
     "    >>> import plait_core as pc\n"
     "    >>> pc.zeros(2).grad_fn is None\n"
     "    True",
     nullptr},
    {nullptr, nullptr, nullptr, nullptr, nullptr}};

PyMethodDef gradient_methods[] = {
    {"backward", function(asking<backward>), METH_VARARGS | METH_KEYWORDS,
     "backward($self, /, gradient=None, retain_graph=None, create_graph=False, inputs=None)\n--\n\n"
     "Add the derivatives of this tensor to the .grad of the leaves that it depends on."
     "\n\nArgs:\n"
     "    gradient: The derivative by this tensor, of its shape; None is 1 for a single element.\n"
     "    retain_graph: Keep what is needed for another pass; None is `create_graph`.\n"
     "    create_graph: Record the pass itself, for derivatives of higher order.\n"
     "    inputs: The tensors whose .grad is added to; None is all leaves."
     "\n\nExample:\n"
     "    >>> import plait_core as pc\n"
     "    >>> import plait_autograd\n"
     "    >>> x = pc.tensor(3.0, requires_grad=True)\n"
     "    >>> (x * x).backward()\n"
     "    >>> x.grad\n"
     "    tensor(6.)"},
    {"requires_grad_", function(asking<requires_grad_>), METH_VARARGS | METH_KEYWORDS,
     "requires_grad_($self, /, requires_grad=True)\n--\n\nSet `requires_grad` and return self."
     "\n\nExample:\n"
     "    >>> import plait_core as pc\n"
     "    >>> import plait_autograd\n"
     "    >>> pc.zeros(2).requires_grad_()\n"
     "    tensor([0., 0.], requires_grad=True)"},
    {"retain_grad", asking<retain_grad>, METH_NOARGS,
     "retain_grad($self, /)\n--\n\nKeep .grad although this is no leaf."
     "\n\nExample:\n"
     "    >>> import plait_core as pc\n"
     "    >>> import plait_autograd\n"
     "    >>> y = pc.tensor(3.0, requires_grad=True) * 2\n"
     "    >>> y.retain_grad()\n"
     "    >>> y.backward()\n"
     "    >>> y.grad\n"
     "    tensor(1.)"},
    {"detach_", asking<detach_in_place>, METH_NOARGS,
     "detach_($self, /)\n--\n\nForget the history of this tensor."
     "\n\nExample:\n"
     "    >>> import plait_core as pc\n"
     "    >>> x = pc.zeros(2)\n"
     "    >>> x.detach_() is x, x.requires_grad\n"
     "    (True, False)"},
    {nullptr, nullptr, 0, nullptr}};

bool add_node(PyObject *module) {
  state.node_type = reinterpret_cast<PyTypeObject *>(PyType_FromSpec(&node_spec));
  return state.node_type &&
         PyModule_AddObjectRef(module, "Node", reinterpret_cast<PyObject *>(state.node_type)) == 0;
}

}  // namespace plait::core
