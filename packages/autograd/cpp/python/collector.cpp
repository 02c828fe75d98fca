// What Python's collector sees of a graph: objects that nothing but one tensor or Node object keeps
// alive. Nothing is shown while a call runs without the GIL: counts could change in between.
#include "binding.hpp"

namespace plait::autograd::python {
namespace {

struct Visit {
  visitproc visit;
  void *arg;
};

int held(plait_object *o, void *arg) {
  const auto *v = static_cast<const Visit *>(arg);
  PyObject *object = state.python->held(o);
  return object ? v->visit(object, v->arg) : 0;
}

// A wrapper that its tensor owns is not on the collector's lists: what it holds is shown in its
// stead.
int wrapper(void *o, void *arg) {
  const auto *v = static_cast<const Visit *>(arg);
  auto *self = static_cast<PyObject *>(o);
  const traverseproc look = Py_TYPE(self)->tp_traverse;
  return look ? look(self, v->visit, v->arg) : 0;
}

int look_at(plait_tensor *t, visitproc visit, void *arg) {
  const Introspection *look = t->slot[0] ? introspection() : nullptr;
  if (!look) return 0;
  Visit v{visit, arg};
  return look->traverse(t, held, wrapper, &v);
}

void untie(plait_tensor *t) {
  const Introspection *look = t->slot[0] ? introspection() : nullptr;
  if (look) look->untie(static_cast<plait_object *>(t->slot[0]));
}

}  // namespace

int visit_node(plait_object *node, visitproc visit, void *arg) {
  const Introspection *look = introspection();
  if (!look || !node || __atomic_load_n(state.python->unlocked, __ATOMIC_ACQUIRE)) return 0;
  Visit v{visit, arg};
  return look->traverse_node(node, held, wrapper, &v);
}

void track(PyObject *o) {
  if (PyType_IS_GC(Py_TYPE(o)) && !PyObject_GC_IsTracked(o)) PyObject_GC_Track(o);
}

void add_collector() {
  *state.python->traverse = look_at;
  *state.python->untie = untie;
}

}  // namespace plait::autograd::python
