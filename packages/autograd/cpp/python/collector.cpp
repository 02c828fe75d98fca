// The graph for Python's garbage collector: objects that only one tensor or Node object keeps
// alive. Nothing is visited while a call runs without the GIL, as counts could change meanwhile.
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

// The collector does not track a wrapper that its tensor owns, so its contents are visited instead.
int wrapper(void *o, void *arg) {
  const auto *v = static_cast<const Visit *>(arg);
  auto *self = static_cast<PyObject *>(o);
  const traverseproc engine = Py_TYPE(self)->tp_traverse;
  return engine ? engine(self, v->visit, v->arg) : 0;
}

int look_at(plait_tensor *t, visitproc visit, void *arg) {
  const Introspection *engine = t->slot[0] ? introspection() : nullptr;
  if (!engine) return 0;
  Visit v{visit, arg};
  return engine->traverse(t, held, wrapper, &v);
}

void untie(plait_tensor *t) {
  const Introspection *engine = t->slot[0] ? introspection() : nullptr;
  if (engine) engine->untie(static_cast<plait_object *>(t->slot[0]));
}

}  // namespace

int visit_node(plait_object *node, visitproc visit, void *arg) {
  const Introspection *engine = introspection();
  if (!engine || !node || __atomic_load_n(state.python->unlocked, __ATOMIC_ACQUIRE)) return 0;
  Visit v{visit, arg};
  return engine->traverse_node(node, held, wrapper, &v);
}

void track(PyObject *o) {
  if (PyType_IS_GC(Py_TYPE(o)) && !PyObject_GC_IsTracked(o)) PyObject_GC_Track(o);
}

void add_collector() {
  *state.python->traverse = look_at;
  *state.python->untie = untie;
}

}  // namespace plait::autograd::python
