// The graph: a node is one recorded operator call in one block of memory. Edges point to the
// history of its inputs.
#pragma once
#include <plait/fork.hpp>
#include <plait/plait.hpp>

#include <atomic>
#include <mutex>

#include "memory.hpp"

namespace plait::autograd {

class PassMarks;

enum class Kind : uint8_t {
  op,         // an operator with a vjp
  leaf,       // where gradients end: slot[0] of a leaf
  host,       // a callable of the host language
  missing,    // an operator without a derivative: a gradient is an error
  constant,   // a gradient that depends on nothing: its derivative is zero
  strided,    // a view of a base whose history changed after the view was made
  assigned,   // a base of which a view was written to
};

struct Edge {  // the gradient of one input goes to output `index` of `node`; node NULL: it is not
               // needed
  Node *node;
  uint32_t index, reserved;
};

struct Layout {  // the layout of a tensor that is not kept; the sizes are in the node's block
  DLDataType dtype;
  int32_t ndim;
  DLDevice device;
  int64_t *shape;
};

struct Saved {  // a tensor that the derivative reads
  plait_tensor *tensor;
  uint64_t version;  // of its storage, when the tensor was saved
  uint32_t argument;  // of the call, or of its results if `result`
  uint32_t item : 30, packed : 1, result : 1;  // packed: `tensor` is the result of a pack hook
};

struct Shape {  // a tensor of which the derivative reads the layout only
  Layout layout;
  uint32_t argument, item;
};

// The gradient of a non-leaf tensor with retain_grad. The tensor and the node both own it, but not
// each other through it, so that there is no cycle.
struct Cell {
  plait_object o;
  plait_tensor *grad;
  uint32_t spin, reserved;
};

// Whether a node's result is a gradient that a recorded pass handed out; unknown: functions of the
// host language took part, and what they read may have no history.
enum class Derivative : uint8_t { no, yes, unknown };

struct Extra;  // hooks and other data that few nodes have (extra.hpp)

enum : uint8_t { kHolding = 0, kReading = 1, kTaken = 2 };  // Node::values

struct Node {
  plait_object o;
  std::atomic<PassMarks *> owner;  // the backward pass whose marks these are
  Node *link;  // in the list of nodes that wait to be destroyed
  // grows with time: an edge leads to a node with a smaller number, or to a leaf, which has the
  uint64_t sequence;
  // largest number
  uint64_t view_version;  // the version of the storage for which this is the history of a view
  Edge *edges;
  Layout *outs;
  plait_tensor **buffers;  // gradients that have arrived, one for each output; used by `owner`
  std::atomic<Extra *> extra;
  plait_object *code;  // where the call was made: the host's code object, or NULL
  int32_t offset;  // of the instruction within it
  std::atomic<Derivative> derivative;
  plait_stream *stream;  // of the forward call, on the device of the first output; owned, or NULL
  uint32_t bytes, n_edges, n_outs;
  uint32_t pending;  // edges whose gradients have not arrived
  int32_t capture;  // index + 1 of the first capture of the pass
  Kind kind;
  std::atomic<uint8_t> values;  // whether the saved tensors are still here
  bool needed;  // lies on a path to the inputs of the pass
  uint8_t form;
};

// The device that a node's work is done on.
inline DLDevice device_of(const Node *n) {
  return n->n_outs ? n->outs[0].device : DLDevice{kDLCPU, 0};
}

inline bool older(const Node *a, const Node *b) { return a->sequence < b->sequence; }

struct OpNode : Node {
  const plait_op *op;
  // the function of several steps whose last one this is, for names that programs expect; or NULL
  std::atomic<const char *> step;
  plait_value *in;  // arguments that are not tensors; lists of tensors keep their length
  Saved *saved;
  Shape *shapes;
  uint32_t n_in, n_results, n_saved, n_shapes;
};

struct Leaf : Node {
  plait_tensor *grad;
  plait_tensor *place;  // where a new gradient lies, or NULL: memory that its owner set aside
  // held while a backward pass adds to the gradient, by threads that hold no other lock
  ProcessLock accumulating;
  uint32_t spin;  // guards the pointer `grad`; never held during a call
  // the tensor does not require grad any more: gradients of older graphs are dropped
  uint32_t frozen;
  Layout layout;
  Edge no_edge;
  plait_tensor *buffer;
};

inline bool is_frozen(const Leaf *leaf) noexcept {
  return __atomic_load_n(&leaf->frozen, __ATOMIC_RELAXED);
}
inline void freeze(Leaf *leaf, bool on) noexcept {
  __atomic_store_n(&leaf->frozen, on, __ATOMIC_RELAXED);
}

// A node as seen from what must not keep it alive. It is counted; the node has a reference too.
struct WeakNode {
  plait_object o;
  Node *node;  // NULL once the node is being destroyed; guarded by `spin`
  uint32_t spin, reserved;
};

struct HostNode : Node {
  plait_object *callable;
  std::atomic<WeakNode *> weak;  // NULL until it is requested
  char *name;
  uint64_t
      // versions of the storage of each output; an output that is a view becomes invalid when its
      // version changes
      *versions;
  bool sparse;  // missing gradients are not replaced by zeros
};

struct ViewNode : Node {  // strided and assigned: the view of a base
  OpNode *inner;  // assigned: the call that wrote
  Layout view;
  int64_t *view_strides, *base_strides;
  int64_t offset;  // in bytes, of the view's first element from the base's
};

struct MissingNode : Node {
  const plait_op *op;
};

// slot[0] of a tensor is a Node (its output 0), a Leaf, or one of these.
struct History {
  plait_object o;
  Node *node;
  Cell *cell;
  uint64_t index;
};

extern const plait_type node_type, history_type, cell_type, weak_type;

inline bool is_node(const void *slot) {
  return slot && static_cast<const plait_object *>(slot)->type == &node_type;
}
inline Leaf *as_leaf(void *slot) {
  return is_node(slot) && static_cast<Node *>(slot)->kind == Kind::leaf ? static_cast<Leaf *>(slot)
                                                                        : nullptr;
}
inline History *as_history(void *slot) {
  return slot && static_cast<plait_object *>(slot)->type == &history_type
             ? static_cast<History *>(slot)
             : nullptr;
}

// Fills in the members that all nodes have; the caller has laid out the block.
void start(Node *node, Kind kind, size_t bytes) noexcept;
// Numbers a node once its edges are there: finding the history of a view may have made a node.
uint64_t next_sequence() noexcept;  // the number of the next node to be recorded
void number(plait_thread *, Node *node) noexcept;
// Notes the stream of the call, once the layouts of the outputs are there: they name the device.
void note_stream(plait_thread *, Node *node) noexcept;
void stamp(plait_thread *, Node *node) noexcept;  // both
Leaf *new_leaf(const plait_tensor *tensor);
WeakNode *weak_of(HostNode *node);  // a new reference
Node *locked(WeakNode *weak) noexcept;  // a new reference, or NULL
Cell *new_cell();
void lay_out(Layout &layout, int64_t *room, const plait_tensor *tensor) noexcept;
std::string device_text(DLDevice);  // "cpu", "meta"
bool fits(const Layout &layout, const plait_tensor *tensor) noexcept;
// The operator's name as the user wrote it: `add_` for the in-place form.
std::string written_name(const plait_op *op, uint32_t form);
// What an error of a backward pass begins with: that name, but a user has not called a part of
// other operators, so "backward" for one.
std::string error_name(const plait_op *op, uint32_t form);
std::string node_name(const Node *node);
// The name by the function of which the node is the last step, else `node_name`.
std::string step_name(const Node *node);

struct Spin {  // a lock for a few instructions
  explicit Spin(uint32_t &flag) noexcept : flag_(flag) { take_word(flag_); }
  ~Spin() { give_word(flag_); }
  Spin(const Spin &) = delete;
  Spin &operator=(const Spin &) = delete;

 private:
  uint32_t &flag_;
};

// Hands out consecutive pieces of a block whose size was computed with the same calls on a null
// base.
class Pieces {
 public:
  explicit Pieces(void *base = nullptr, size_t at = 0)
      : base_(static_cast<char *>(base)), at_(at) {}
  template <class T>
  T *take(size_t n) {
    at_ = (at_ + alignof(T) - 1) / alignof(T) * alignof(T);
    T *p = base_ ? reinterpret_cast<T *>(base_ + at_) : nullptr;
    at_ += n * sizeof(T);
    return p;
  }
  size_t size() const { return at_; }

 private:
  char *base_;
  size_t at_;
};

}  // namespace plait::autograd
