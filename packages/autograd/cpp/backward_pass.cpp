// A backward pass: discovery counts the gradients that each node will get; then nodes whose
// gradients are complete run, the latest first. Nothing recurses, and no lock is held while an
// operator runs.
#include "backward_pass.hpp"

#include <algorithm>

#include "accumulate.hpp"
#include "derivatives.hpp"
#include "gradient_hooks.hpp"
#include "gradient_places.hpp"
#include "part_gradients.hpp"
#include "record.hpp"
#include "watch.hpp"

namespace plait::autograd {
namespace {

__thread BackwardPass *innermost = nullptr;

constexpr uint32_t kPoll = 256;  // small nodes between two checks for an interrupt

uint32_t weight(const Node *n) {  // a large node counts as so many small ones
  if (!n->n_outs || n->outs[0].ndim < 0) return 1;
  int64_t count = 1;
  for (int32_t i = 0; i < n->outs[0].ndim; i++) count *= n->outs[0].shape[i];
  return 1 + uint32_t(std::min<int64_t>(count >> 12, kPoll));
}

class Observed {  // reports a scope to observers, if there are any
 public:
  template <class F>  // `name` is called if there is an observer
  Observed(uint32_t kind, F &&name, uint64_t a) {
    if (!(__atomic_load_n(engine.runtime->observed, __ATOMIC_RELAXED) & kind)) return;
    name_ = name();
    event_.size = sizeof event_;
    event_.kind = kind;
    event_.name = name_.c_str();
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
  std::string name_;
  plait_event event_{};
  uint64_t tokens_[PLAIT_TOKENS], n_ = 0;
  plait_status status_ = PLAIT_ERROR;
};

// Converts a gradient to the layout of its input. It may still be broadcast, have another
// precision, or be complex for a real input, whose gradient is then the real part; anything else is
// an error.
Tensor fitted(plait_thread *thread, const Node *from, uint32_t position, const Layout &l,
              Tensor g) {
  bool broadcasts = l.ndim <= g.ndim();
  for (int32_t i = 0; broadcasts && i < l.ndim; i++) {
    const int64_t had = g.size(g.ndim() - l.ndim + i);
    broadcasts = l.shape[i] == had || l.shape[i] == 1;
  }
  if (!broadcasts)
    raise(thread, PLAIT_SHAPE_ERROR, node_name(from),
          "the gradient for input %u must have shape %s; got %s%s", static_cast<unsigned>(position),
          text(l.shape, l.ndim).c_str(), shape_text(g.get()).c_str(), made_at(from).c_str());
  if (!differentiable(g.dtype()))
    raise(thread, PLAIT_DTYPE_ERROR, node_name(from),
          "the gradient for input %u must be %s; got %s%s", static_cast<unsigned>(position),
          plait::name(l.dtype), plait::name(g.dtype()), made_at(from).c_str());
  const bool may_move =
      g.ndim() == 0 || (from->kind == Kind::op &&
                        static_cast<const OpNode *>(from)->op->flags & PLAIT_OP_ANY_DEVICE);
  if (!same(l.device, g.device()) && may_move) {  // of a copy, or of a number beside a tensor
    const Tensor moved = empty(thread, g.dtype(), l.device, g.shape(), g.ndim());
    copy_into(thread, moved, g);
    g = moved;
  }
  if (!same(l.device, g.device()))
    raise(thread, PLAIT_VALUE_ERROR, node_name(from),
          "the gradient for input %u must be on device %s; got %s%s",
          static_cast<unsigned>(position), device_text(l.device).c_str(),
          device_text(g.device()).c_str(), made_at(from).c_str());
  g = sum_to(thread, g, l.shape, l.ndim);
  return same(g.dtype(), l.dtype) ? g : cast(thread, g, l.dtype);
}

}  // namespace

BackwardPass *BackwardPass::current() noexcept { return innermost; }

uint64_t BackwardPass::next_number() noexcept {
  static std::atomic<uint64_t> count{0};
  return count.fetch_add(1, std::memory_order_relaxed) + 1;
}

void BackwardPass::root(plait_tensor *tensor, plait_tensor *gradient) {
  roots_.emplace_back(history_of(thread(), tensor), Tensor::share(gradient));
}

void BackwardPass::capture(plait_tensor *tensor, plait_tensor **out) {
  captures_.push_back({history_of(thread(), tensor), out, 0});
}

void BackwardPass::run() {
  const Excluding mode(thread(), evaluation_.create);
  struct Restore {
    BackwardPass *outer;
    ~Restore() { innermost = outer; }
  } const restore{innermost};
  innermost = this;
  Observed whole(PLAIT_EVENT_BACKWARD, [] { return "backward"; }, roots_.size());
  for (const auto &root : roots_) marks_.add_root(root.first.node.get());
  marks_.discover();
  if (!captures_.empty()) marks_.mark_needed(captures_);
  begin_roots();
  parallel_.start(thread(), evaluation_.keep, evaluation_.create || !captures_.empty());
  walk();
  run_callbacks();
  whole.done();
}

void BackwardPass::run_callbacks() {
  for (size_t i = 0; i < callbacks_.size(); i++) {  // a callback may add others
    const Ref<plait_object> callable = callbacks_[i];
    call_host(thread(), callable.get(), nullptr, 0, nullptr, 0);
  }
}

void BackwardPass::begin_roots() {
  for (auto &[edge, gradient] : roots_) {
    Node *n = edge.node.get();
    arrive(marks_.buffers(n) + edge.index, std::move(gradient));
  }
  for (const auto &root : roots_) {
    Node *n = root.first.node.get();
    if (marks_.pending(n) != 0) continue;
    marks_.pending(n) = ~0u;  // the same node may be the root of several results
    ready_.push(n);
  }
}

void BackwardPass::walk() {
  uint32_t count = 0;
  while (Node *n = ready_.pop()) {
    if (parallel_.on() && !ready_.others().empty())
      parallel_.look_ahead(n, ready_.others(), marks_);
    count += weight(n);
    execute(n);
    if (count < kPoll) continue;
    count = 0;
    const plait_host *host = role<plait_host>(thread()->runtime);
    if (host && host->interrupted(host->ctx)) {
      if (thread()->error) throw Error(thread()->error->code);
      raise(thread(), PLAIT_ERROR, "backward", "interrupted");
    }
  }
}

plait_stream *BackwardPass::stream_of(const Node *n, DLDevice d) const {
  if (n->kind != Kind::leaf && same(device_of(n), d)) return n->stream;
  return engine.runtime->stream(thread(), d);
}

void BackwardPass::execute(Node *n) {
  running_ = n;
  Gradients gradients(n->n_outs, marks_.buffers(n));  // the node keeps nothing of this pass
  bool any = false;
  for (uint32_t i = 0; i < n->n_outs; i++) any |= gradients[i] != nullptr;
  const bool extra = n->extra.load(std::memory_order_acquire) != nullptr;
  if (evaluation_.create && any) record(n, extra, gradients);
  if (any && extra) {
    run_arrived_hooks(thread(), n, gradients);
    keep_retained(thread(), n, gradients);
  }
  const bool grows = accumulate_ && n->kind == Kind::leaf && marks_.capture(n);
  if (any && !captures_.empty() && !grows) capture_at(n, gradients);
  bool work = any;
  if (any && !captures_.empty()) {
    work = grows;
    for (uint32_t i = 0; i < n->n_edges && !work; i++) work = wants(n->edges[i]);
  }
  if (work) {
    Observed node(PLAIT_EVENT_NODE, [n] { return node_name(n); }, n->sequence);
    Gradients result(n->n_edges);
    {
      const StreamGuard stream(thread(), device_of(n), stream_of(n, device_of(n)));
      if (extra || watching())
        evaluate_watched(n, gradients, result);
      else
        evaluate_node(n, gradients, result);
    }
    for (uint32_t i = 0; i < n->n_edges; i++) deliver(n, i, result.take(i));
    node.done();
  } else {
    for (uint32_t i = 0; i < n->n_edges; i++) deliver(n, i, Tensor());
  }
  running_ = nullptr;
  marks_.release(n);
}

// Gradients that the program may see are recorded as derivatives. What functions of the host
// language and hooks make of a gradient may depend on values that have no history.
void BackwardPass::record(Node *n, bool extra, Gradients &gradients) {
  const bool known = unknown_.empty() || !unknown_.count(n);
  if (extra || n->kind == Kind::leaf || (!captures_.empty() && marks_.capture(n)))
    record_as_derivatives(thread(), gradients, known);
  const bool hooked = extra && (has_hooks(n, When::arrived) || has_hooks(n, When::before) ||
                                has_hooks(n, When::after));
  if (known && n->kind != Kind::host && !hooked) return;
  for (uint32_t i = 0; i < n->n_edges; i++)
    if (n->edges[i].node) unknown_.insert(n->edges[i].node);
}

void BackwardPass::capture_at(Node *n, Gradients &gradients) {
  for (int32_t i = marks_.capture(n); i; i = captures_[size_t(i) - 1].next) {
    const Capture &c = captures_[size_t(i) - 1];
    plait_tensor *g = gradients[c.edge.index];
    if (!g) continue;
    plait_retain(g);
    *c.out = g;
    const DLDevice d = g->dl.device;
    if (is_accelerator(d))  // the caller continues in its own stream
      check(wait_between(thread(), d, stream_of(n, d), d, engine.runtime->stream(thread(), d)));
  }
}

void BackwardPass::evaluate_node(Node *n, Gradients &gradients, Gradients &result) {
  if (parallel_.take(n, result.data())) return gradients.clear();
  if (n->n_edges == 1 && !n->extra.load(std::memory_order_acquire) && !watching() &&
      wants(n->edges[0])) {
    const Edge &e = n->edges[0];
    const Layout &whole = e.node->outs[e.index];
    if (add_part(evaluation_, n, gradients, whole, marks_.buffers(e.node) + e.index)) return;
  }
  uint64_t need = 0;
  for (uint32_t i = 0; i < n->n_edges; i++)
    if (wants(n->edges[i])) need |= bit_of(i);
  if (!captures_.empty() || evaluation_.create || n->kind != Kind::op)
    return evaluate(evaluation_, n, need, gradients, result);
  GradientPlaces places(thread(), n, marks_);
  Evaluation there = evaluation_;
  there.places = &places;
  evaluate(there, n, need, gradients, result);
  places.clear(result);
}

// Runs a node that has hooks, or any node in anomaly mode.
void BackwardPass::evaluate_watched(Node *n, Gradients &gradients, Gradients &result) {
  if (!run_before_hooks(thread(), n, gradients)) return;
  const bool nan = watching() && anomaly_nan && n->kind != Kind::leaf;
  std::vector<Tensor> arguments;  // copies for hooks, as the node consumes its gradients
  if (nan || has_hooks(n, When::after))
    for (uint32_t i = 0; i < n->n_outs; i++) arguments.push_back(Tensor::share(gradients[i]));
  std::vector<plait_tensor *> shown;
  for (const Tensor &g : arguments) shown.push_back(g.get());
  const Ref<plait_object> site = Ref<plait_object>::share(site_of(n));
  try {
    evaluate_node(n, gradients, result);
    if (n->kind == Kind::leaf && !is_frozen(static_cast<const Leaf *>(n)))
      run_accumulated_hooks(thread(), n);
    if (!shown.empty()) run_after_hooks(thread(), n, shown.data(), result);
    if (nan) check_nan(thread(), marks_.visited(), n, shown.data(), result.data());
  } catch (...) {
    const Watch *w = watch.load(std::memory_order_acquire);
    if (watching() && w) w->failed(node_name(n).c_str(), site.get());
    throw;
  }
}

void BackwardPass::arrive(plait_tensor **slot, Tensor gradient) {
  if (!*slot) {
    *slot = gradient.release();
    return;
  }
  *slot = sum(thread(), Tensor::steal(std::exchange(*slot, nullptr)), std::move(gradient),
              evaluation_.create)
              .release();
}

void BackwardPass::deliver(const Node *from, uint32_t position, Tensor gradient) {
  const Edge &e = from->edges[position];
  if (!e.node) return;
  if (gradient && wants(e)) {
    const Layout &l = e.node->outs[e.index];
    const DLDevice here = gradient.device(), there = l.ndim >= 0 ? l.device : here;
    if (is_accelerator(here) || is_accelerator(there)) {
      deliver_on_device(from, position, here, there, std::move(gradient));
    } else {
      if (l.ndim >= 0 && !fits(l, gradient.get()))
        gradient = fitted(thread(), from, position, l, std::move(gradient));
      arrive(marks_.buffers(e.node) + e.index, std::move(gradient));
    }
  }
  uint32_t &left = marks_.pending(e.node);
  if (--left == 0) ready_.push(e.node);
}

// What a node gets is ready in the node's own stream.
void BackwardPass::deliver_on_device(const Node *from, uint32_t position, DLDevice here,
                                     DLDevice there, Tensor gradient) {
  const Edge &e = from->edges[position];
  const Layout &l = e.node->outs[e.index];
  plait_stream *before = stream_of(from, here), *after = stream_of(e.node, there);
  if (same(here, there)) check(wait_between(thread(), here, before, there, after));
  const StreamGuard source(thread(), here, before), target(thread(), there, after);
  if (l.ndim >= 0 && !fits(l, gradient.get()))
    gradient = fitted(thread(), from, position, l, std::move(gradient));
  arrive(marks_.buffers(e.node) + e.index, std::move(gradient));
}

}  // namespace plait::autograd
