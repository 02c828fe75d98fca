// A pass: discovery counts how many gradients each node will get, the loop runs nodes whose
// gradients are complete, youngest first. Nothing recurses, and nothing is locked while an operator
// runs.
#include "task.hpp"

#include <algorithm>

#include "accumulate.hpp"
#include "ahead.hpp"
#include "watch.hpp"

namespace plait::autograd {
namespace {

__thread Task *innermost = nullptr;

constexpr uint32_t kPoll = 256;  // small nodes between two looks for an interrupt

uint32_t weight(const Node *n) {  // of a large one that many small ones have
  if (!n->n_outs || n->outs[0].ndim < 0) return 1;
  int64_t count = 1;
  for (int32_t i = 0; i < n->outs[0].ndim; i++) count *= n->outs[0].shape[i];
  return 1 + uint32_t(std::min<int64_t>(count >> 12, kPoll));
}

bool older(const Node *a, const Node *b) { return a->sequence < b->sequence; }

class Observed {  // tells observers of a scope, if there are any
 public:
  Observed(uint32_t kind, const char *name, uint64_t a) {
    if (!(__atomic_load_n(engine.runtime->observed, __ATOMIC_RELAXED) & kind)) return;
    event_.size = sizeof event_;
    event_.kind = kind;
    event_.name = name_ = name;
    event_.a = a;
    n_ = engine.runtime->begin(&event_, tokens_, PLAIT_TOKENS);
    on_ = true;
  }
  void done() { status_ = PLAIT_OK; }
  ~Observed() {
    if (on_) engine.runtime->end(&event_, tokens_, n_, status_);
  }
  Observed(const Observed &) = delete;
  Observed &operator=(const Observed &) = delete;

 private:
  bool on_ = false;
  const char *name_ = nullptr;
  plait_event event_{};
  uint64_t tokens_[PLAIT_TOKENS], n_ = 0;
  plait_status status_ = PLAIT_ERROR;
};

const char *event_name(const Node *n) {
  switch (n->kind) {
    case Kind::op: return static_cast<const OpNode *>(n)->op->name;
    case Kind::host: return static_cast<const HostNode *>(n)->name;
    case Kind::leaf: return "accumulate";
    case Kind::strided: return "strided view";
    case Kind::assigned: return "assigned view";
    case Kind::missing: return static_cast<const MissingNode *>(n)->op->name;
  }
  return "node";
}

}  // namespace

Task *Task::current() noexcept { return innermost; }

uint64_t Task::next_number() noexcept {
  static std::atomic<uint64_t> count{0};
  return count.fetch_add(1, std::memory_order_relaxed) + 1;
}

Task::~Task() {
  for (Node *n : visited_)
    if (mine(n)) leave(n);
  for (auto &[node, marks] : foreign_)
    for (plait_tensor *t : marks->buffers) plait_release(t);
}

void Task::root(plait_tensor *tensor, plait_tensor *gradient) {
  roots_.emplace_back(history_of(thread_, tensor), Tensor::share(gradient));
}

void Task::capture(plait_tensor *tensor, plait_tensor **out) {
  captures_.push_back({history_of(thread_, tensor), out, 0});
}

// ---- discovery
// -----------------------------------------------------------------------------------------------------
// True the first time that this pass sees the node.
bool Task::claim(Node *n) {
  // a node that belonged to another pass when this one came by may be free by now, but its marks
  // are here
  if (!foreign_.empty() && elsewhere(n)) return false;
  Task *owner = nullptr;
  if (n->owner.compare_exchange_strong(owner, this, std::memory_order_acquire,
                                       std::memory_order_relaxed)) {
    n->pending = 0;
    n->capture = 0;
    n->needed = true;
    return true;
  }
  if (owner == this) return false;
  auto &marks = foreign_[n];
  if (marks) return false;
  marks = std::make_unique<Marks>();
  marks->buffers.resize(n->n_outs, nullptr);
  return true;
}

void Task::leave(Node *n) noexcept {
  for (uint32_t i = 0; i < n->n_outs; i++) {
    plait_release(n->buffers[i]);
    n->buffers[i] = nullptr;
  }
  n->owner.store(nullptr, std::memory_order_release);
}

void Task::discover() {
  const auto see = [this](Node *n) {
    // listed before it is claimed, so that a failure between the two leaves no mark behind
    visited_.push_back(n);
    if (!claim(n)) visited_.pop_back();
  };
  for (const auto &root : roots_) see(root.first.node.get());
  for (size_t at = 0; at < visited_.size(); at++) {
    Node *n = visited_[at];
    for (uint32_t i = 0; i < n->n_edges; i++) {
      Node *to = n->edges[i].node;
      if (!to) continue;
      see(to);
      pending(to)++;
    }
  }
}

// With inputs given, only nodes on a path to one of them do any work.
void Task::mark_needed() {
  for (Node *n : visited_) needed(n) = false;
  for (size_t i = 0; i < captures_.size(); i++) {
    Node *n = captures_[i].place.node.get();
    if (!n || (!mine(n) && !elsewhere(n))) continue;  // not reached from the roots
    captures_[i].next = captures(n);
    captures(n) = int32_t(i) + 1;
    needed(n) = true;
  }
  std::vector<Node *> order(visited_);
  std::sort(order.begin(), order.end(), older);  // edges lead to older nodes
  for (Node *n : order) {
    bool any = needed(n);
    for (uint32_t i = 0; i < n->n_edges && !any; i++)
      any = n->edges[i].node && needed(n->edges[i].node);
    needed(n) = any;
  }
}

// ---- the loop
// ------------------------------------------------------------------------------------------------------
void Task::ready(Node *n) {
  if (!next_) {
    next_ = n;
    return;
  }
  if (older(next_, n)) std::swap(next_, n);
  heap_.push_back(n);
  std::push_heap(heap_.begin(), heap_.end(), older);
}

void Task::begin_roots() {
  for (auto &[place, gradient] : roots_) {
    Node *n = place.node.get();
    arrive(buffers(n) + place.index, std::move(gradient));
  }
  for (const auto &root : roots_) {
    Node *n = root.first.node.get();
    if (pending(n) != 0) continue;
    pending(n) = ~0u;  // the same node may be the root of several results
    ready(n);
  }
}

void Task::loop() {
  uint32_t count = 0;
  while (Node *n = next_) {
    next_ = nullptr;
    if (!heap_.empty() && older(n, heap_.front())) {
      std::pop_heap(heap_.begin(), heap_.end(), older);
      std::swap(n, heap_.back());
      std::push_heap(heap_.begin(), heap_.end(), older);
    }
    if (width_ > 1 && !heap_.empty()) look_ahead(n);
    count += weight(n);
    execute(n);
    if (!next_ && !heap_.empty()) {
      std::pop_heap(heap_.begin(), heap_.end(), older);
      next_ = heap_.back();
      heap_.pop_back();
    }
    if (count < kPoll) continue;
    count = 0;
    const plait_host *host = PLAIT_ROLE(thread_->roles->host);
    if (host && host->interrupted(host->ctx)) {
      if (thread_->error) throw Error(thread_->error->code);
      raise(thread_, PLAIT_ERROR, "backward", "interrupted");
    }
  }
}

void Task::run() {
  const Excluding mode(thread_, create_);
  struct Restore {
    Task *outer;
    ~Restore() { innermost = outer; }
  } const restore{innermost};
  innermost = this;
  Observed whole(PLAIT_EVENT_BACKWARD, "backward", roots_.size());
  discover();
  if (!captures_.empty()) mark_needed();
  begin_roots();
  width_ = threads_for(thread_, create_ || !captures_.empty());
  loop();
  whole.done();
}

void Task::execute(Node *n) {
  plait_tensor **slots = buffers(n);
  plait_tensor *few[8];
  std::vector<plait_tensor *> many;
  plait_tensor **gradients = few;
  if (n->n_outs > 8) {
    many.resize(n->n_outs);
    gradients = many.data();
  }
  bool any = false;
  for (uint32_t i = 0; i < n->n_outs; i++) {  // from here on nothing of this pass stays in the node
    gradients[i] = slots[i];
    slots[i] = nullptr;
    any |= gradients[i] != nullptr;
  }
  struct Release {
    plait_tensor **t;
    uint32_t n;
    ~Release() {
      for (uint32_t i = 0; i < n; i++) plait_release(t[i]);
    }
  } const release{gradients, n->n_outs};
  const bool extra = n->extra.load(std::memory_order_acquire) != nullptr;
  if (any && extra) {
    arrived_at(n, gradients);
    retain_at(n, gradients);
  }
  const bool grows = accumulate_ && n->kind == Kind::leaf && captures(n);
  if (any && !captures_.empty() && !grows) capture_at(n, gradients);
  bool work = any;
  if (any && !captures_.empty()) {
    work = grows;
    for (uint32_t i = 0; i < n->n_edges && !work; i++) work = wants(n->edges[i]);
  }
  if (work) {
    running_ = n;
    Observed node(PLAIT_EVENT_NODE, event_name(n), n->sequence);
    if (extra || watching())
      evaluate_watched(n, gradients);
    else
      evaluate(n, gradients);
    node.done();
  } else {
    for (uint32_t i = 0; i < n->n_edges; i++) deliver(n, i, Tensor());
  }
  if (mine(n)) n->owner.store(nullptr, std::memory_order_release);
}

void Task::capture_at(Node *n, plait_tensor **gradients) {
  for (int32_t i = captures(n); i; i = captures_[size_t(i) - 1].next) {
    const Capture &c = captures_[size_t(i) - 1];
    plait_tensor *g = gradients[c.place.index];
    if (!g) continue;
    plait_retain(g);
    *c.out = g;
  }
}

// ---- gradients on their way
// ----------------------------------------------------------------------------------------
void Task::arrive(plait_tensor **slot, Tensor gradient) {
  if (!*slot) {
    *slot = gradient.release();
    return;
  }
  *slot = sum(thread_, Tensor::steal(std::exchange(*slot, nullptr)), std::move(gradient), create_)
              .release();
}

void Task::deliver(const Node *from, uint32_t position, Tensor gradient) {
  if (gathering_ == from) {
    gathered_[position] = std::move(gradient);
    return;
  }
  const Edge &e = from->edges[position];
  if (!e.node) return;
  if (gradient && wants(e)) {
    const Layout &l = e.node->outs[e.index];
    if (l.ndim >= 0 && !fits(l, gradient.get()))
      gradient = fitted(from, position, l, std::move(gradient));
    arrive(buffers(e.node) + e.index, std::move(gradient));
  }
  uint32_t &left = pending(e.node);
  if (--left == 0) ready(e.node);
}

// A derivative may leave broadcasting undone, and may answer in another precision or in complex
// numbers for a real input, whose gradient is then their real part; nothing else passes.
Tensor Task::fitted(const Node *from, uint32_t position, const Layout &l, Tensor g) {
  bool broadcasts = l.ndim <= g.ndim();
  for (int32_t i = 0; broadcasts && i < l.ndim; i++) {
    const int64_t had = g.size(g.ndim() - l.ndim + i);
    broadcasts = l.shape[i] == had || l.shape[i] == 1;
  }
  if (!broadcasts)
    raise(thread_, PLAIT_SHAPE_ERROR, node_name(from),
          "the gradient for input %u must have shape %s; got %s%s", static_cast<unsigned>(position),
          text(l.shape, l.ndim).c_str(), shape_text(g.get()).c_str(), made_at(from).c_str());
  if (!differentiable(g.dtype()))
    raise(thread_, PLAIT_DTYPE_ERROR, node_name(from),
          "the gradient for input %u must be %s; got %s%s", static_cast<unsigned>(position),
          plait::name(l.dtype), plait::name(g.dtype()), made_at(from).c_str());
  if (!same_device(l.device, g.device()))
    raise(thread_, PLAIT_VALUE_ERROR, node_name(from),
          "the gradient for input %u must be on device %s; got %s%s",
          static_cast<unsigned>(position), device_text(l.device).c_str(),
          device_text(g.device()).c_str(), made_at(from).c_str());
  g = sum_to(thread_, g, l.shape, l.ndim);
  return same(g.dtype(), l.dtype) ? g : cast(thread_, g, l.dtype);
}

}  // namespace plait::autograd
