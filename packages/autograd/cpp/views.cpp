#include "views.hpp"

namespace plait::autograd {
namespace {

struct Geometry {  // of a view and its base; borrowed
  Layout view, base;
  const int64_t *view_strides, *base_strides;
  int64_t offset;
};

Layout layout_of(const plait_tensor *t) {
  return {t->dl.dtype, t->dl.ndim, t->dl.device, t->dl.shape};
}
Geometry geometry(const plait_tensor *view, const plait_tensor *base) {
  return {layout_of(view), layout_of(base), view->dl.strides, base->dl.strides,
          static_cast<const char *>(view->dl.data) - static_cast<const char *>(base->dl.data)};
}

int64_t *copied(int64_t *room, const int64_t *from, int32_t n) {
  std::memcpy(room, from, size_t(n) * sizeof *room);
  return room;
}

ViewNode *view_node(const Geometry &g, Kind kind, uint32_t n_edges) {
  const auto lay = [&](Pieces &at, ViewNode **n, Edge **edges, plait_tensor ***buffers,
                       Layout **outs, int64_t **dims) {
    *n = at.take<ViewNode>(1);
    *edges = at.take<Edge>(n_edges);
    *buffers = at.take<plait_tensor *>(1);
    *outs = at.take<Layout>(1);
    *dims = at.take<int64_t>(2 * size_t(g.view.ndim) + 2 * size_t(g.base.ndim));
  };
  ViewNode *n;
  Edge *edges;
  plait_tensor **buffers;
  Layout *outs;
  int64_t *dims;
  Pieces size;
  lay(size, &n, &edges, &buffers, &outs, &dims);
  Pieces at(allocate(size.size()));
  lay(at, &n, &edges, &buffers, &outs, &dims);
  start(new (n) ViewNode, kind, size.size());
  n->edges = edges;
  n->n_edges = n_edges;
  for (uint32_t i = 0; i < n_edges; i++) edges[i] = {nullptr, 0, 0};
  n->buffers = buffers;
  buffers[0] = nullptr;
  n->inner = nullptr;
  n->outs = outs;
  n->n_outs = 1;
  n->view = g.view;
  n->view.shape = copied(dims, g.view.shape, g.view.ndim);
  n->view_strides = copied(dims += g.view.ndim, g.view_strides, g.view.ndim);
  n->base_strides = copied(dims += g.view.ndim, g.base_strides, g.base.ndim);
  n->outs[0] = g.base;
  n->outs[0].shape = copied(dims += g.base.ndim, g.base.shape, g.base.ndim);
  n->offset = g.offset;
  return n;
}

// The sizes with 1 for expanded dimensions, whose elements all have one address.
void without_expanded(int32_t ndim, const int64_t *shape, const int64_t *strides, int64_t *out) {
  for (int32_t i = 0; i < ndim; i++) out[i] = strides[i] == 0 && shape[i] ? 1 : shape[i];
}

[[noreturn]] void refuse(plait_thread *thread, const plait_tensor *view, const char *reason) {
  raise(thread, PLAIT_ERROR, "autograd",
        "a view of shape %s of a tensor with history is written in place, or its base was, and %s; "
        "clone() the view before it "
        "is written",
        shape_text(view).c_str(), reason);
}

// Complex numbers and their parts are views of each other.
DType real(DType d) {
  if (d.code == kDLComplex) return {kDLFloat, uint8_t(d.bits / 2), d.lanes};
  return d;
}

void check_geometry(plait_thread *thread, const plait_tensor *view, const plait_tensor *base) {
  if (!same(real(view->dl.dtype), real(base->dl.dtype)))
    refuse(thread, view, "the view has another dtype than its base");
  if (view->storage != base->storage)
    refuse(thread, view, "one of them was since pointed at other memory");
  if (!distinct(base->dl.ndim, base->dl.shape, base->dl.strides))
    refuse(thread, view, "elements of the base share their memory");
}

// The bytes from a tensor's first element to its lowest one, and past its highest one.
void bounds(const plait_tensor *t, int64_t *low, int64_t *high) {
  const int64_t size = itemsize(t->dl.dtype);
  *low = 0, *high = size;
  for (int32_t i = 0; i < t->dl.ndim; i++)
    (t->dl.strides[i] < 0 ? *low : *high) += (t->dl.shape[i] - 1) * t->dl.strides[i] * size;
}

// `as_strided` reaches beyond the tensor it is called on.
void check_within(plait_thread *thread, const plait_tensor *view, const plait_tensor *base) {
  if (numel(view) == 0 || numel(base) == 0) return;
  const auto *first = static_cast<const char *>(view->dl.data);
  const int64_t at = first - static_cast<const char *>(base->dl.data);
  int64_t low = 0, high = 0, lowest = 0, highest = 0;
  bounds(view, &low, &high);
  bounds(base, &lowest, &highest);
  if (at + low < lowest || at + high > highest)
    raise(thread, PLAIT_ERROR, "autograd",
          "a view of shape %s has elements outside the tensor of shape %s whose history it would "
          "continue, and they have no gradient; detach() that tensor or clone() what it is a view "
          "of before as_strided()",
          shape_text(view).c_str(), shape_text(base).c_str());
}

}  // namespace

void check_writable(plait_thread *thread, const plait_tensor *view) {
  check_geometry(thread, view, base_of(view));
  int64_t shape[PLAIT_MAX_DIMS];
  without_expanded(view->dl.ndim, view->dl.shape, view->dl.strides, shape);
  if (!distinct(view->dl.ndim, shape,
                view->dl.strides))  // for expanded views the runtime raises an error
    refuse(thread, view, "elements of the view share their memory");
}

Ref<Node> strided_node(plait_thread *thread, plait_tensor *view, plait_tensor *base) {
  check_geometry(thread, view, base);
  check_within(thread, view, base);
  GradientEdge edge = history_of(thread, base);
  ViewNode *n = view_node(geometry(view, base), Kind::strided, 1);
  // its output has the view's layout, its input the base's
  std::swap(n->outs[0], n->view);
  n->edges[0] = {edge.node.release(), edge.index, 0};
  stamp(thread, n);
  n->view_version = history_version(view);
  return Ref<Node>::steal(n);
}

Ref<Node> written_part(plait_thread *thread, ViewNode *assigned) {
  const Geometry g{assigned->view, assigned->outs[0], assigned->view_strides,
                   assigned->base_strides, assigned->offset};
  ViewNode *n = view_node(g, Kind::strided, 1);
  std::swap(n->outs[0], n->view);
  n->edges[0] = {Ref<Node>::share(assigned).release(), 0, 0};
  stamp(thread, n);
  return Ref<Node>::steal(n);
}

void write_view(plait_thread *thread, plait_tensor *view, Ref<Node> writer, uint32_t index) {
  plait_tensor *base = base_of(view);
  if (writer->kind != Kind::op ||
      index != 0) {  // no derivative: gradients of the base fail with the same text
    set_history(base, std::move(writer), index);
  } else {
    check_geometry(thread, view, base);
    auto *inner = static_cast<OpNode *>(writer.get());
    const uint32_t n_edges = inner->n_edges ? inner->n_edges : 1;
    ViewNode *n = view_node(geometry(view, base), Kind::assigned, n_edges);
    const Ref<Node> owner = Ref<Node>::steal(n);
    for (uint32_t i = 1; i < n_edges; i++) {
      n->edges[i] = inner->edges[i];
      if (n->edges[i].node) plait_retain(n->edges[i].node);
    }
    if (has_bit(base)) {
      GradientEdge edge = history_of(thread, base);
      n->edges[0] = {edge.node.release(), edge.index, 0};
    }
    stamp(thread, n);
    n->inner = inner;
    writer.release();
    set_history(base, owner, 0);
  }
  set_history(view, strided_node(thread, view, base), 0);
}

// The derivatives of views.
BaseGradient::BaseGradient(plait_thread *thread, const ViewNode *n, bool zeroed)
    : thread_(thread), node_(n) {
  const Layout &base = n->kind == Kind::strided ? n->view : n->outs[0];
  int64_t low = 0, high = 0, count = 1;
  for (int32_t i = 0; i < base.ndim; i++) {
    count *= base.shape[i];
    const int64_t span = (base.shape[i] - 1) * n->base_strides[i];
    (span < 0 ? low : high) += span;
  }
  const int64_t size = count ? high - low + 1 : 0;
  first_ = count ? -low : 0;
  if (zeroed || size > count)  // a view may have elements between those of the base
    memory_ = zeros(thread, base.dtype, base.device, &size, 1);
  else
    check(engine.runtime->tensor_new(thread, base.dtype, 1, &size, nullptr, base.device,
                                     memory_.out()));
}

Window BaseGradient::whole_window() const {
  const Layout &base = node_->kind == Kind::strided ? node_->view : node_->outs[0];
  return {base.dtype, base.ndim, base.shape, node_->base_strides, first_};
}

Window BaseGradient::part_window(const int64_t *shape) const {
  const Layout &view = node_->kind == Kind::strided ? node_->outs[0] : node_->view;
  const int64_t bytes = first_ * itemsize(memory_.dtype()) + node_->offset;
  return {view.dtype, view.ndim, shape, node_->view_strides, bytes / itemsize(view.dtype)};
}

Tensor BaseGradient::at(const Window &w) const {
  if (!has_own_bytes(memory_.get())) return strided(thread_, memory_, w);
  return view_of(thread_, memory_, w.dtype, w.ndim, w.shape, w.strides,
                 w.offset * itemsize(w.dtype));
}

void BaseGradient::set(const Window &w, const Tensor &values) {
  if (has_own_bytes(memory_.get()) && has_own_bytes(values.get()))
    copy_into(thread_, at(w), values);
  else
    memory_ = with_strided(thread_, memory_, w, values);
}

Tensor BaseGradient::whole() const { return at(whole_window()); }
void BaseGradient::set_whole(const Tensor &values) { set(whole_window(), values); }
Tensor BaseGradient::part(const int64_t *shape) const { return at(part_window(shape)); }
void BaseGradient::set_part(const Tensor &values, const int64_t *shape) {
  set(part_window(shape), values);
}

void BaseGradient::add(const Tensor &values, const int64_t *shape) {
  const Window w = part_window(shape);
  memory_ = add_at(thread_, memory_, w.ndim, w.shape, w.strides, w.offset, values);
}

Tensor spread(plait_thread *thread, const ViewNode *n, const Tensor &gradient) {
  const Layout &view = n->outs[0];
  int64_t shape[PLAIT_MAX_DIMS];
  without_expanded(view.ndim, view.shape, n->view_strides, shape);
  BaseGradient base(thread, n, true);
  const Tensor summed = sum_to(thread, gradient, shape, view.ndim);
  if (distinct(view.ndim, shape, n->view_strides))
    base.set_part(summed, shape);
  else if (same(view.dtype, n->view.dtype))
    base.add(summed, shape);
  else
    raise(thread, PLAIT_NOT_IMPLEMENTED, "autograd",
          "a view of the parts of complex numbers whose elements share their memory has no "
          "derivative after its base was written; clone() it before");
  return base.whole();
}

}  // namespace plait::autograd
