// A backward pass. Every edge leads to a node that is older than its own, so the youngest node that
// a gradient has reached has all of its gradients: no counters and no recursion are needed.
#include <map>
#include <unordered_set>

#include "tape.hpp"

namespace plait::tape {
namespace {

Tensor add(plait_thread *thread, const Tensor &a, const Tensor &b) {
  static const Operator op(engine.runtime, "add");
  return op(thread, a, b);
}
Tensor filled(plait_thread *thread, const Operator &op, const Layout &l) {
  return op(thread, ints(l.shape.data(), l.shape.size()), l.dtype, l.device);
}
Tensor zeros(plait_thread *thread, const Layout &l) {
  static const Operator op(engine.runtime, "zeros");
  return filled(thread, op, l);
}
Tensor ones(plait_thread *thread, const Layout &l) {
  static const Operator op(engine.runtime, "ones");
  return filled(thread, op, l);
}

// [fitted]
// A derivative may leave broadcasting undone, and may answer in another precision or in complex
// numbers for a real input, whose gradient is their real part.
Tensor fitted(plait_thread *thread, const std::string &name, const Layout &l, Tensor g) {
  static const Operator sum(engine.runtime, "sum"), reshape(engine.runtime, "reshape"),
      cast(engine.runtime, "cast");
  const int64_t lead = g.ndim() - int64_t(l.shape.size());
  std::vector<int64_t> dims;
  bool fits = lead >= 0;
  for (int64_t i = 0; fits && i < g.ndim(); i++) {
    const bool extra = i < lead || (l.shape[size_t(i - lead)] == 1 && g.size(i) != 1);
    if (extra) dims.push_back(i);
    fits = extra || l.shape[size_t(i - lead)] == g.size(i);
  }
  if (!fits || !differentiable(g.dtype()))
    raise(thread, PLAIT_SHAPE_ERROR, name, "a gradient must be %s of shape %s; got %s of shape %s",
          plait::name(l.dtype), text(l.shape.data(), int64_t(l.shape.size())).c_str(),
          plait::name(g.dtype()), shape_text(g.get()).c_str());
  if (!dims.empty()) g = sum(thread, g, ints(dims.data(), dims.size()), true);
  if (lead) g = reshape(thread, g, ints(l.shape.data(), l.shape.size()));
  return same(g.dtype(), l.dtype) ? g : cast(thread, g, l.dtype);
}
// [/fitted]

using Gradients = std::vector<Tensor>;  // empty handles where there is none
using Pointers = std::vector<plait_tensor *>;

struct Request {  // the arguments of plait_engine::backward
  plait_thread *thread;
  plait_tensor *const *roots, *const *grads;
  uint32_t n_roots;
  plait_tensor *const *inputs;
  uint32_t n_inputs;
  uint64_t flags;
  plait_tensor **gx;
};

class Pass {
 public:
  explicit Pass(const Request &r)
      : request_(r),
        thread_(r.thread),
        create_(r.flags & PLAIT_BACKWARD_CREATE),
        retain_(create_ || (r.flags & PLAIT_BACKWARD_RETAIN)) {}
  void run();

 private:
  struct Arrived {
    Ref<Node> node;
    Gradients gradients;  // one for each output
  };
  void find_needed();
  bool wanted(const Edge &e) const {
    return e.to.node && (!request_.inputs || needed_.count(e.to.node.get()));
  }
  void arrive(const NodeOutput &, Tensor);
  void step(Node *, Gradients);
  plait_status derivative(Node *, Pointers &gy, Pointers &gx);
  Gradients called(Node *, const Gradients &);
  Gradients windowed(Node *, const Tensor &);
  std::shared_ptr<const Call> take(Node *) const;
  Tensor unpacked(const Node *, const Call &, const Saved &) const;

  const Request &request_;
  plait_thread *thread_;
  const bool create_, retain_;
  std::map<uint64_t, Arrived> waiting_;  // by time of recording
  std::multimap<const Node *, std::pair<uint32_t, plait_tensor **>> captures_;
  std::unordered_set<const Node *> needed_;
};

// [saved]
// What was saved leaves the node with the pass, unless another one may follow.
std::shared_ptr<const Call> Pass::take(Node *n) const {
  const std::lock_guard<std::mutex> lock(n->mutex);
  if (!n->call)
    raise(thread_, PLAIT_ERROR, n->name,
          "backward came here a second time, but what the derivative needs was freed after the "
          "first; call the first backward with retain_graph=True");
  return retain_ || n->call->saved.empty() ? n->call : std::move(n->call);
}

// A saved tensor for the derivative to read. While the pass itself is recorded, the tensor needs
// its history: an input's is what the node's edge leads to, a result's is the node.
Tensor Pass::unpacked(const Node *n, const Call &call, const Saved &s) const {
  const plait_tensor *t = s.bytes.get();
  if (version(t) != s.version)
    raise(thread_, PLAIT_ERROR, call.op->name,
          "`%s` (%s, shape %s), which the derivative needs, was overwritten in place after it was "
          "saved: it is at version %llu, saved at version %llu; use the out-of-place form of the "
          "operator that wrote it, or clone() the tensor first",
          s.result ? "its result" : plait_arg_at(call.op, s.argument)->name,
          plait::name(t->dl.dtype), shape_text(t).c_str(),
          static_cast<unsigned long long>(version(t)), static_cast<unsigned long long>(s.version));
  if (!create_ || !differentiable(t->dl.dtype)) return s.bytes;
  const NodeOutput to = s.result ? NodeOutput{Ref<Node>::share(const_cast<Node *>(n)), s.position}
                                 : n->edges[s.position].to;
  if (!to.node) return s.bytes;
  Tensor with_history = alias(thread_, s.bytes);
  set_history(with_history.get(), to);
  return with_history;
}
// [/saved]

// [derivative]
// Rebuilds the call for the operator's derivative.
plait_status Pass::derivative(Node *n, Pointers &gy, Pointers &gx) {
  const auto call = take(n);
  std::vector<plait_value> in(call->in), out(call->n_results, none());
  std::vector<Pointers> lists(in.size());
  for (size_t i = 0; i < in.size(); i++) {
    if (in[i].tag != PLAIT_TENSORS) continue;
    lists[i].resize(in[i].n);
    in[i].u.ts = lists[i].data();
  }
  Gradients held;
  for (const Saved &s : call->saved) {
    held.push_back(unpacked(n, *call, s));
    plait_tensor *t = held.back().get();
    if (!s.result && in[s.argument].tag == PLAIT_TENSORS)
      lists[s.argument][s.item] = t;
    else
      (s.result ? out : in)[s.argument] = value(t);
  }
  plait_vjp v{};
  v.size = sizeof v;
  v.n_in = uint16_t(in.size());
  v.n_out = uint16_t(gy.size());
  v.op = call->op;
  v.thread = thread_;
  v.in = in.data();
  v.out = out.data();
  v.gy = gy.data();
  v.gx = gx.data();
  for (size_t i = 0; i < n->edges.size(); i++)
    if (wanted(n->edges[i])) v.need |= bit_of(uint32_t(i));
  return call->op->def->vjp(&v);
}
// [/derivative]

// Calls a function of the host language, or the derivative.
Gradients Pass::called(Node *n, const Gradients &gradients) {
  Pointers gy, gx(n->edges.size(), nullptr);
  for (const Tensor &g : gradients) gy.push_back(g.get());
  const plait_host *host = role<plait_host>(thread_->runtime);
  if (n->function && !host)
    raise(thread_, PLAIT_ERROR, n->name, "the function's host language is gone");
  const plait_status s = n->function
                             ? host->apply(host->ctx, thread_, n->function.get(), gy.data(),
                                           uint32_t(gy.size()), gx.data(), uint32_t(gx.size()))
                             : derivative(n, gy, gx);
  Gradients result;
  for (plait_tensor *g : gx) result.push_back(Tensor::steal(g));
  check(s);
  return result;
}

// [windowed]
// With one edge, a view was read: the base's gradient is the view's, and zero elsewhere. With two
// edges, a view was written: the gradient of the old base is 0 there, and the writer gets that
// part.
Gradients Pass::windowed(Node *n, const Tensor &gradient) {
  static const Operator clone(engine.runtime, "clone"), copy(engine.runtime, "copy_"),
      as_strided(engine.runtime, "as_strided");
  const Window &w = *n->window;
  const bool reading = n->edges.size() == 1;
  const auto sizes = [](const std::vector<int64_t> &v) { return ints(v.data(), v.size()); };
  Tensor whole;  // has the base's strides, so that the view's offset holds
  check(engine.runtime->tensor_new(thread_, w.base.dtype, int32_t(w.base.shape.size()),
                                   w.base.shape.data(), w.base_strides.data(), w.base.device,
                                   whole.out()));
  copy(thread_, whole, reading ? zeros(thread_, w.base) : gradient);
  const Tensor part = as_strided(thread_, whole, sizes(w.view.shape), sizes(w.strides), w.offset);
  if (reading) {
    copy(thread_, part, gradient);
    return {whole};
  }
  const Tensor own = clone(thread_, part);
  copy(thread_, part, zeros(thread_, w.view));
  return {whole, own};
}
// [/windowed]

// [step]
void Pass::arrive(const NodeOutput &at, Tensor g) {
  Arrived &a = waiting_[at.node->sequence];
  if (!a.node) a = {at.node, Gradients(at.node->leaf ? 1 : at.node->outputs.size())};
  Tensor &sum = a.gradients[at.index];
  sum = sum ? add(thread_, sum, g) : std::move(g);
}

void Pass::step(Node *n, Gradients gradients) {
  const auto captured = captures_.equal_range(n);
  for (auto it = captured.first; it != captured.second; ++it)
    *it->second.second = Tensor(gradients[it->second.first]).release();
  std::vector<std::pair<uint32_t, std::shared_ptr<Cell>>> retained;
  {
    const std::lock_guard<std::mutex> lock(n->mutex);
    retained = n->retained;
  }
  for (const auto &[index, cell] : retained)
    if (gradients[index]) cell->add(thread_, gradients[index]);
  if (n->leaf) {
    if (!request_.inputs) n->leaf->add(thread_, gradients[0]);
    return;
  }
  bool any = false;
  for (const Edge &e : n->edges) any |= wanted(e);
  if (!any) return;
  if (n->missing)
    raise(thread_, PLAIT_NOT_IMPLEMENTED, n->name,
          "the derivative of %s is not implemented; detach() its inputs if no gradient should pass",
          take(n)->op->name);
  for (size_t i = 0; i < gradients.size(); i++)
    if (!gradients[i] && n->outputs[i].dtype.bits) gradients[i] = zeros(thread_, n->outputs[i]);
  Gradients gx = n->window ? windowed(n, gradients[0]) : called(n, gradients);
  for (size_t i = 0; i < gx.size(); i++)
    if (gx[i] && wanted(n->edges[i]))
      arrive(n->edges[i].to, fitted(thread_, n->name, n->edges[i].layout, std::move(gx[i])));
}
// [/step]

// [run]
// With inputs given, only nodes between them and the roots run: those of which some edge leads to a
// needed node, found from the oldest to the youngest.
void Pass::find_needed() {
  std::map<uint64_t, const Node *> reached;
  std::vector<const Node *> open;
  for (const auto &[_, a] : waiting_) open.push_back(a.node.get());
  while (!open.empty()) {
    const Node *n = open.back();
    open.pop_back();
    if (!reached.emplace(n->sequence, n).second) continue;
    for (const Edge &e : n->edges)
      if (e.to.node) open.push_back(e.to.node.get());
  }
  for (const auto &[_, n] : reached) {
    bool any = captures_.count(n);
    for (const Edge &e : n->edges) any |= e.to.node && needed_.count(e.to.node.get());
    if (any) needed_.insert(n);
  }
}

Tensor seed(const Request &r, uint32_t i);

void Pass::run() {
  const Request &r = request_;
  for (uint32_t i = 0; i < r.n_inputs; i++) {
    const NodeOutput output = output_of(thread_, r.inputs[i]);
    captures_.emplace(output.node.get(), std::make_pair(output.index, r.gx + i));
  }
  const Recording mode(thread_, create_);
  for (uint32_t i = 0; i < r.n_roots; i++) arrive(output_of(thread_, r.roots[i]), seed(r, i));
  if (r.inputs) find_needed();
  const plait_host *host = role<plait_host>(thread_->runtime);
  for (uint32_t count = 1; !waiting_.empty(); count++) {
    const auto youngest = std::prev(waiting_.end());
    Arrived a = std::move(youngest->second);
    waiting_.erase(youngest);
    if (!r.inputs || needed_.count(a.node.get())) step(a.node.get(), std::move(a.gradients));
    if (count % 256 == 0 && host && host->interrupted(host->ctx))  // Ctrl-C
      throw Error(thread_->error ? thread_->error->code : PLAIT_ERROR);
  }
}
// [/run]

void check_request(const Request &r) {
  const char *origin = r.inputs ? "grad" : "backward";
  for (uint32_t i = 0; i < r.n_roots; i++)
    if (!requires_grad(r.roots[i]))
      raise(r.thread, PLAIT_ERROR, origin,
            "result %u of shape %s does not require grad: nothing that was recorded leads to it",
            unsigned(i), shape_text(r.roots[i]).c_str());
  for (uint32_t i = 0; i < r.n_inputs; i++)
    if (!requires_grad(r.inputs[i]))
      raise(r.thread, PLAIT_ERROR, origin, "input %u of shape %s does not require grad",
            unsigned(i), shape_text(r.inputs[i]).c_str());
}

// [seed]
Tensor seed(const Request &r, uint32_t i) {
  const plait_tensor *root = r.roots[i], *gradient = r.grads ? r.grads[i] : nullptr;
  const Layout l = layout_of(root);
  const bool complex = root->dl.dtype.code == kDLComplex;
  if (!gradient) {
    if (numel(root) != 1 || complex)
      raise(r.thread, PLAIT_ERROR, "backward",
            "a gradient can be made up only for a real result of one element; result %u is %s of "
            "shape %s: reduce it first, or pass the gradient",
            unsigned(i), plait::name(root->dl.dtype), shape_text(root).c_str());
    return ones(r.thread, l);
  }
  if (layout_of(gradient).shape != l.shape)
    raise(r.thread, PLAIT_SHAPE_ERROR, "backward",
          "the gradient of result %u must have its shape %s; got %s", unsigned(i),
          shape_text(root).c_str(), shape_text(gradient).c_str());
  if (!differentiable(gradient->dl.dtype) || (gradient->dl.dtype.code == kDLComplex) != complex)
    raise(r.thread, PLAIT_DTYPE_ERROR, "backward", "the gradient of result %u must be %s; got %s",
          unsigned(i), plait::name(root->dl.dtype), plait::name(gradient->dl.dtype));
  return fitted(r.thread, "backward", l, Tensor::share(r.grads[i]));
}
// [/seed]

plait_status run(const Request &r) {
  return border(r.thread, "backward", [&]() -> plait_status {
    check_request(r);
    Pass(r).run();
    for (uint32_t i = 0; i < r.n_inputs && !(r.flags & PLAIT_BACKWARD_ALLOW_UNUSED); i++)
      if (!r.gx[i])
        raise(r.thread, PLAIT_ERROR, "grad",
              "input %u of shape %s was not used to compute the results; pass allow_unused=True "
              "to get None for it",
              unsigned(i), shape_text(r.inputs[i]).c_str());
    return PLAIT_OK;
  });
}

}  // namespace

// [entry]
plait_status backward(void *, plait_thread *thread, plait_tensor *const *roots,
                      plait_tensor *const *grads, uint32_t n_roots, plait_tensor *const *inputs,
                      uint32_t n_inputs, uint64_t flags, plait_tensor **gx) {
  for (uint32_t i = 0; i < n_inputs; i++) gx[i] = nullptr;
  struct Job {
    Request request;
    plait_status status;
  } job{{thread, roots, grads, n_roots, inputs, n_inputs, flags, gx}, PLAIT_OK};
  const auto work = [](void *arg) {
    auto *j = static_cast<Job *>(arg);
    j->status = run(j->request);
  };
  if (const plait_host *host = role<plait_host>(thread->runtime))
    host->unlocked(host->ctx, work, &job);  // other Python threads run meanwhile
  else
    work(&job);
  for (uint32_t i = 0; job.status < 0 && i < n_inputs; i++) {
    plait_release(gx[i]);
    gx[i] = nullptr;
  }
  return job.status;
}
// [/entry]

}  // namespace plait::tape
