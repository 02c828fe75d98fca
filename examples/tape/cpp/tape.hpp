// A second engine for plait: what a graph is made of.
//
// Recording (record.cpp) leaves one node behind for every operator call, a pass (backward.cpp)
// walks from results back to leaves, and role.cpp offers both to tensors. The derivatives are
// not here: they belong to the operators.
#pragma once
#include <plait/plait.hpp>

#include <memory>
#include <mutex>
#include <vector>

namespace plait::tape {

struct Engine {
  const plait_runtime *runtime = nullptr;
  uint64_t bit = 0;  // of the layer: set in `layers` of every tensor that requires grad
};
extern Engine engine;

struct Layout {  // of a tensor that is not kept
  DType dtype;
  DLDevice device;
  std::vector<int64_t> shape;
};

// [graph]
struct Node;
struct NodeOutput {  // where gradients of a tensor go: an output of the node that made it
  Ref<Node> node;
  uint32_t index = 0;
};
struct Edge {  // one for each input of a node that may be a tensor
  NodeOutput to;  // empty where no gradient is wanted
  Layout layout;  // of the gradient, and of the input
};

struct Node {
  plait_object o;  // counted: by the tensors it made and by the nodes that follow
  uint64_t sequence;  // the time of recording: edges lead to smaller ones
  std::string name;
  std::vector<Edge> edges;
  std::vector<Layout> outputs;
  // What happens to a gradient that arrives:
  std::shared_ptr<class Cell> leaf;  // it is added to this leaf's gradient;
  std::shared_ptr<const struct Call> call;  // the derivative of this call takes it;
  Ref<plait_object> function;  // a function of the host language takes it;
  std::shared_ptr<const struct Window> window;  // it belongs to a view and its base;
  bool missing = false;  // or the operator has no derivative: an error
  std::vector<std::pair<uint32_t, std::shared_ptr<Cell>>> retained;  // by outputs: retain_grad()
  std::mutex mutex;  // of `call`, which a pass may take, and `retained`
  Node *next = nullptr;  // in the list of nodes to destroy
};
// [/graph]

// [call]
struct Saved {  // a tensor that a derivative will read
  Tensor bytes;  // another handle on the same memory: it has no history, so there are no cycles
  uint64_t version = 0;  // of its storage; every write raises it
  uint32_t argument = 0, item = 0;  // of the call, or of its results
  uint32_t position = 0;  // of its edge; of a result: the index of the output
  bool result = false;
};
struct Call {  // what the derivative of an operator call will read
  const plait_op *op = nullptr;
  std::vector<plait_value> in;  // numbers, sizes and strings; tensors come from `saved`
  uint16_t n_results = 0;
  std::vector<Saved> saved;
  std::vector<std::unique_ptr<char[]>> memory;  // what values of `in` point to
  std::vector<Ref<plait_object>> objects;
};
// [/call]

// [window]
struct Window {  // the elements of its base that a view shows
  Layout view, base;
  std::vector<int64_t> strides, base_strides;
  int64_t offset = 0;  // all three in elements
};
// [/window]

// [history]
class Cell {  // a gradient that stays with a tensor: `x.grad`
 public:
  Tensor read();
  void write(Tensor gradient);
  void add(plait_thread *, const Tensor &gradient);  // several passes may add at once

 private:
  std::mutex mutex_;
  Tensor gradient_;
};

struct History {  // slot[0] of a tensor
  plait_object o;
  NodeOutput output;  // empty if nothing was recorded
  uint64_t base = 0;  // of a view: the sequence of its base's node when it was made,
  uint64_t version = 0;  // and the version of the storage
  std::shared_ptr<Cell> cell;  // of a leaf, or after retain_grad() or an assignment to `grad`
};
// [/history]

Ref<Node> new_node(std::string name);
Node *as_node(plait_object *);  // NULL if it is something else
History *history(const plait_tensor *);  // NULL if there is none
void put(plait_tensor *, History);  // replaces the tensor's history
void set_history(plait_tensor *, NodeOutput);  // the tensor requires grad from here on
void check_ours(const plait_tensor *);  // throws if it has the history of another engine
NodeOutput output_of(plait_thread *, plait_tensor *);  // renewed if a view's base was written
uint64_t base_sequence(const plait_tensor *);
std::shared_ptr<Window> window_of(
    const plait_tensor *view);  // throws where a write has no derivative
NodeOutput read_node(plait_thread *, const plait_tensor *view);
void write_base(plait_tensor *view, NodeOutput old, const NodeOutput &writer);
bool requires_grad(const plait_tensor *);
bool is_leaf(const plait_tensor *);
Layout layout_of(const plait_tensor *);
inline bool has_bit(const plait_tensor *t) { return t->layers & engine.bit; }
inline bool differentiable(DType d) {
  return d.code == kDLFloat || d.code == kDLBfloat || d.code == kDLComplex;
}
inline uint64_t version(const plait_tensor *t) {
  return __atomic_load_n(&t->storage->version, __ATOMIC_RELAXED);
}
Tensor alias(plait_thread *, const Tensor &);

template <class... A>
[[noreturn]] void raise(plait_thread *thread, plait_status code, const std::string &origin,
                        const char *format, A... args) {
  throw Error(engine.runtime->raise(thread, code, origin.c_str(), format, args...));
}

class Recording {  // whether this thread records, for a scope
 public:
  Recording(plait_thread *thread, bool on) : thread_(thread), before_(thread->excluded) {
    thread->excluded = on ? before_ & ~engine.bit : before_ | engine.bit;
  }
  ~Recording() { thread_->excluded = before_; }
  Recording(const Recording &) = delete;
  Recording &operator=(const Recording &) = delete;

 private:
  plait_thread *thread_;
  uint64_t before_;
};

// [positions]
// Derivatives number tensors by position: an argument that may be a tensor counts one whatever it
// is, a list its length; positions from 63 on share a bit. Calls f(tensor, argument, item,
// position) and returns how many positions there are.
inline uint64_t bit_of(uint32_t position) { return uint64_t(1) << (position < 63 ? position : 63); }
template <auto at, class F>
uint32_t each_tensor(const plait_op *op, const plait_value *values, uint32_t n, F &&f) {
  uint32_t position = 0;
  for (uint32_t i = 0; i < n; i++) {
    if (values[i].tag == PLAIT_TENSORS) {
      for (uint32_t k = 0; k < values[i].n; k++, position++)
        if (values[i].u.ts[k]) f(values[i].u.ts[k], i, k, position);
    } else if (values[i].tag == PLAIT_TENSOR) {
      f(values[i].u.t, i, 0u, position++);
    } else {
      const uint8_t kind = at(op, i)->kind;
      position += kind == PLAIT_KIND_TENSOR || kind == PLAIT_KIND_OPERAND;
    }
  }
  return position;
}
// [/positions]

plait_status layer(plait_call *);  // record.cpp
plait_status record(void *, plait_thread *, const char *name, plait_object *callable,
                    plait_tensor *const *inputs, uint32_t n_in, plait_tensor *const *outputs,
                    uint32_t n_out, plait_object **node);
plait_status backward(void *, plait_thread *, plait_tensor *const *roots,
                      plait_tensor *const *grads, uint32_t n_roots, plait_tensor *const *inputs,
                      uint32_t n_inputs, uint64_t flags, plait_tensor **gx);  // backward.cpp

}  // namespace plait::tape
