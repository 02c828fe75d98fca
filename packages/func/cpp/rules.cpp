// Rules that are data: they stand in operators' definitions and run here, without Python and
// without the GIL, as do a plug-in's rules in C (docs/design/0043).
#include <plait/layer.hpp>

#include <algorithm>
#include <cstring>
#include <vector>

#include "batched.hpp"

namespace plait::func {
namespace {

// What a rule does with an argument: a letter of plait_op_def::batching.
enum Action : char {
  action_none = '.',  // as it is; a batched tensor there is left to Python
  action_some = 's',  // all samples if it is batched, aligned with the dimensions of a sample
  action_all = 'a',  // all samples along dimension 0, repeated if it is not batched
  action_dims = 'd',  // dimensions of a sample; negative ones stay
  action_size = 'z',  // the sizes of a sample
  action_reduced = 'x',  // as `dims`; None or an empty list: all dimensions of a sample
  action_reduced_or_none = 'y',  // as `dims`; None: all dimensions of a sample
  action_rows = 'r',  // the rows of all samples, dimension 0 of a sample, as one list of rows
  action_row_size = 'q',  // the sizes of a sample whose dimension 0 are rows
  action_python = '!',  // the call is left to Python
};
// What kind of rule it is: the first letter. Most rules call the operator itself. Capital letters
// are rules in code: one of plait's own operators.
enum Kind : char {
  kind_pointwise = 'p',
  kind_reduction = 'x',
  kind_leading = 's',  // the samples are one more dimension in front
  kind_rows = 'r',  // so is dimension 0 of each result
  kind_of_dimensions = 'd',  // the first argument must have dimensions
  kind_of_matrices = 'm',  // the first argument must have two dimensions
  kind_new_dimension = 'n',  // dimensions count one more than the first argument has
  kind_code = 'C',  // in Python alone
  kind_code_too = 'S',  // what the letters are not enough for is left to code
  kind_matmul = 'M',  // matrices: `matmul` of all samples
  kind_bmm = 'B',
  kind_mv = 'V',
  kind_dot = 'D',
  kind_view = 'W',
  kind_expand = 'E',
  kind_permute = 'P',
  kind_t = 'T',
  kind_loss = 'L',  // of one row with one class: input, target, weight, reduction, ignored class
  kind_loss_backward = 'K',  // grad, input, lse, target, weight, reduction, ignored class
  kind_linear = 'N',  // of rows, or a product of matrices where weights differ
};
// The rule of an operator's definition that is data; nullptr if there is none.
const char *rule_of(const plait_op *op) {
  const plait_op_def *def = op->def;
  return PLAIT_HAS(plait_op_def, def, batching) ? def->batching : nullptr;
}

// A call on all samples, by a rule that is data.
class Rearranged {
 public:
  // `rule`: nullptr for an operator with a rule in C
  Rearranged(plait_call *c, const char *rule, const Samples &samples)
      : outer_(c),
        kind_(rule ? *rule : 0),
        actions_(rule ? rule + 1 : nullptr),
        samples_(samples) {}
  Rearranged(const Rearranged &) = delete;
  Rearranged &operator=(const Rearranged &) = delete;
  ~Rearranged() {
    for (plait_tensor *t : made_) plait_release(t);
    for (plait_value &v : out_) outer_->thread->runtime->release_value(&v);
  }

  // PLAIT_DECLINE: Python has to do it
  plait_status run() {
    if (samples_.size == 0 || kind_ == kind_code) return PLAIT_DECLINE;
    plait_status s = take_grown();
    if (s == PLAIT_OK) s = actions_ ? computed() : computed_in_c();
    return s == PLAIT_OK ? give() : s;
  }

 private:
  // Makes the samples of tensors whose storages grew.
  plait_status take_grown() {
    plait_status s = PLAIT_OK;
    each_tensor(outer_->in, outer_->n_in, [&](plait_tensor *t) {
      const Batch *b = batch_of(t);
      plait_tensor *rows = nullptr;
      if (s < 0 || !b || !row_of(*b) || b->level != samples_.level) return;
      s = rows_of(outer_->thread, t, *b, &rows);
      if (s < 0) return;
      made_.push_back(rows);
      grown_.emplace_back(t, rows);
    });
    return s;
  }

  // Whether a call has the arguments that a kind in code reads: a plug-in's rule may say anything.
  bool has_arguments(int n, int tensors) const {
    if (outer_->n_in < n) return false;
    return std::all_of(outer_->in, outer_->in + tensors,
                       [](const plait_value &v) { return v.tag == PLAIT_TENSOR; });
  }
  bool has_arguments() const {
    switch (kind_) {
      case kind_matmul:
      case kind_bmm:
      case kind_mv:
      case kind_dot: return has_arguments(2, 2);
      case kind_view:
      case kind_expand:
      case kind_permute: return has_arguments(2, 1);
      case kind_t: return has_arguments(1, 1);
      case kind_linear: return has_arguments(3, 2);
      case kind_loss: return has_arguments(5, 2) && outer_->n_out == 2;
      case kind_loss_backward: return has_arguments(7, 4);
      default: return has_arguments(1, 0);
    }
  }

  plait_status computed() {
    if (!has_arguments()) return PLAIT_DECLINE;
    switch (kind_) {
      case kind_matmul: return matmul(2);
      case kind_bmm: return matmul(3);
      case kind_mv: return mv();
      case kind_dot: return dot();
      case kind_view: return viewed();
      case kind_expand: return expanded();
      case kind_permute: return permuted();
      case kind_t: return transposed();
      case kind_linear:
        if (samples_of(outer_->in[1].u.t)) return linear();
        break;
      case kind_loss: return loss();
      case kind_loss_backward: return loss_backward();
      case kind_pointwise:
      case kind_reduction:
      case kind_leading:
      case kind_code_too:
      case kind_rows:
      case kind_of_dimensions:
      case kind_of_matrices:
      case kind_new_dimension: break;
      default: return PLAIT_DECLINE;  // a kind of a later version
    }
    plait_status s = fill();
    if (s == PLAIT_OK) s = call(outer_->op);
    return s == PLAIT_OK && kind_ == kind_rows ? apart() : s;
  }

  // The operator's own rule, which gets all samples of each tensor.
  plait_status computed_in_c() {
    for (uint16_t i = 0; i < outer_->n_in; i++) {
      const plait_value &v = in_[i] = outer_->in[i];
      const plait_status s = v.tag == PLAIT_TENSOR ? all(v.u.t, in_ + i) : plain(v);
      if (s != PLAIT_OK) return s;
    }
    plait_call c = inner_call(outer_->op);
    const InsideLayer inside(c.thread, layer_bit);
    return outer_->op->def->batch(&c);
  }

  plait_call inner_call(const plait_op *op) {
    plait_call c{};
    c.size = sizeof c;
    c.op = op;
    c.n_in = op->n_args;
    c.n_out = op->n_results;
    c.in = in_;
    c.out = out_;
    c.thread = outer_->thread;
    c.device = outer_->device;
    return c;
  }

  // Calls an operator with `in_`, which has all its arguments.
  plait_status call(const plait_op *op) {
    plait_call c = inner_call(op);
    const InsideLayer inside(c.thread, layer_bit);
    return c.thread->runtime->call(&c);
  }
  plait_status call(const char *name, std::initializer_list<plait_value> in) {
    const plait_op *op = outer_->thread->runtime->op(name);
    if (!op) return PLAIT_DECLINE;
    uint16_t n = 0;
    for (const plait_value &v : in) in_[n++] = v;
    for (; n < op->n_args; n++) in_[n] = plait_arg_at(op, n)->value;
    return call(op);
  }

  plait_status give() {
    plait_status s = PLAIT_OK;
    const plait_runtime *runtime = outer_->thread->runtime;
    for (uint16_t i = 0; s >= 0 && i < outer_->n_out; i++) {
      if (out_[i].tag != PLAIT_TENSOR) continue;
      const DLTensor &dl = out_[i].u.t->dl;
      if (dl.ndim < 1 || dl.shape[0] != samples_.size) {
        s = runtime->fail(outer_, PLAIT_ERROR,
                          "vmap: the operator's batching rule gave a result without the %lld "
                          "samples along dimension 0",
                          static_cast<long long>(samples_.size));
        break;
      }
      plait_tensor *t = nullptr;
      s = make_batched(outer_->thread, std::exchange(out_[i], none()).u.t, samples_.level, &t);
      if (s >= 0) outer_->out[i] = value(t);
    }
    if (s < 0)
      for (uint16_t i = 0; i < outer_->n_out; i++) runtime->release_value(outer_->out + i);
    return s;
  }

  // A view in the place of a result.
  void set_result(uint16_t i, plait_value made) {
    plait_retain(made.u.t);
    if (const plait_value old = std::exchange(out_[i], made); old.tag == PLAIT_TENSOR)
      plait_release(old.u.t);
  }

  // The rows of results, as samples of rows.
  plait_status apart() {
    for (uint16_t i = 0; i < outer_->n_out; i++) {
      if (out_[i].tag != PLAIT_TENSOR) continue;
      plait_tensor *rows = out_[i].u.t;
      const DLTensor &dl = rows->dl;
      int64_t shape[PLAIT_MAX_DIMS], strides[PLAIT_MAX_DIMS];
      if (!is_plain(rows) || dl.ndim < 1 || dl.ndim + 1 > PLAIT_MAX_DIMS) return PLAIT_DECLINE;
      shape[0] = samples_.size;
      shape[1] = dl.shape[0] / samples_.size;
      strides[0] = dl.strides[0] * shape[1];
      strides[1] = dl.strides[0];
      for (int k = 1; k < dl.ndim; k++) {
        shape[k + 1] = dl.shape[k];
        strides[k + 1] = dl.strides[k];
      }
      plait_value made;
      if (const plait_status s = view(rows, dl.ndim + 1, shape, strides, &made); s < 0) return s;
      set_result(i, made);
    }
    return PLAIT_OK;
  }

  // Products. A matrix or vector is batched or not; views are only made of plain samples.

  plait_value either(uint16_t i) const {
    plait_tensor *t = outer_->in[i].u.t, *all = samples_of(t);
    return value(all ? all : t);
  }
  bool has_dimensions(int first, int second) const {
    return outer_->in[0].u.t->dl.ndim == first && outer_->in[1].u.t->dl.ndim == second;
  }
  plait_status matmul(int ndim) {
    if (!has_dimensions(ndim, ndim)) return PLAIT_DECLINE;
    return call("matmul", {either(0), either(1)});
  }

  plait_status mv() {
    if (!has_dimensions(2, 1)) return PLAIT_DECLINE;
    plait_tensor *matrix = outer_->in[0].u.t, *vectors = samples_of(outer_->in[1].u.t);
    if (!vectors) return call("matmul", {either(0), either(1)});
    if (!samples_of(matrix)) return call("linear", {value(vectors), value(matrix)});
    return columns(either(0));
  }

  // one row or several of each sample, with its own weight and bias
  plait_status linear() {
    plait_tensor *x = outer_->in[0].u.t, *weight = samples_of(outer_->in[1].u.t);
    const plait_value &bias = outer_->in[2];
    plait_tensor *added = bias.tag == PLAIT_TENSOR ? samples_of(bias.u.t) : nullptr;
    const int n = x->dl.ndim;
    if (n < 1 || n > 2 || weight->dl.ndim != 3 || !is_plain(weight)) return PLAIT_DECLINE;
    if (bias.tag != PLAIT_NONE && (!added || added->dl.ndim != 2 || !is_plain(added)))
      return PLAIT_DECLINE;
    const int64_t *shape = weight->dl.shape, *strides = weight->dl.strides;
    if (!samples_of(x) && is_plain(x) && (n == 1 || x->dl.shape[0] <= most_shared_rows) &&
        strides[0] == shape[1] * strides[1] &&
        (!added || (added->dl.strides[0] == shape[1] && added->dl.strides[1] == 1)))
      return one_layer(weight, added);
    plait_value rows, across, columns;
    plait_status s = all(x, &rows);
    if (s == PLAIT_OK && !is_plain(rows.u.t)) return PLAIT_DECLINE;
    if (s == PLAIT_OK && n == 1) s = with_row(rows.u.t, &rows);
    const int64_t turned[]{shape[0], shape[2], shape[1]},
        steps[]{strides[0], strides[2], strides[1]};
    if (s == PLAIT_OK) s = view(weight, 3, turned, steps, &across);
    if (s == PLAIT_OK) s = call("matmul", {rows, across});
    if (s == PLAIT_OK && added) {
      s = with_row(added, &columns);
      if (s == PLAIT_OK) s = call("add", {owned_result(), columns});
    }
    if (s != PLAIT_OK || n == 2) return s;
    plait_tensor *made = out_[0].u.t;
    const int64_t flat[]{made->dl.shape[0], made->dl.shape[2]},
        flat_steps[]{made->dl.strides[0], made->dl.strides[2]};
    s = view(made, 2, flat, flat_steps, &columns);
    if (s == PLAIT_OK) set_result(0, columns);
    return s;
  }

  // Few rows that the samples share: their layers as one, whose outputs lie side by side.
  static constexpr int64_t most_shared_rows = 8;
  plait_status one_layer(plait_tensor *weight, plait_tensor *bias) {
    const int64_t *shape = weight->dl.shape, outputs = shape[0] * shape[1], step = 1;
    const int64_t flat[]{outputs, shape[2]},
        flat_steps[]{weight->dl.strides[1], weight->dl.strides[2]};
    plait_value weights, biases = none(), made;
    plait_status s = view(weight, 2, flat, flat_steps, &weights);
    if (s == PLAIT_OK && bias) s = view(bias, 1, &outputs, &step, &biases);
    if (s == PLAIT_OK) s = call("linear", {outer_->in[0], weights, biases});
    if (s != PLAIT_OK) return s;
    const DLTensor &all = out_[0].u.t->dl;
    const int64_t apart[]{shape[0], all.shape[0], shape[1]},
        apart_steps[]{shape[1], all.strides[0], 1};
    const int64_t row[]{shape[0], shape[1]}, row_steps[]{shape[1], 1};
    s = all.ndim == 1 ? view(out_[0].u.t, 2, row, row_steps, &made)
                      : view(out_[0].u.t, 3, apart, apart_steps, &made);
    if (s == PLAIT_OK) set_result(0, made);
    return s;
  }

  // Vectors of samples as matrices of one row.
  plait_status with_row(plait_tensor *t, plait_value *to) {
    const int64_t shape[]{t->dl.shape[0], 1, t->dl.shape[1]},
        strides[]{t->dl.strides[0], 1, t->dl.strides[1]};
    return view(t, 3, shape, strides, to);
  }

  // matrices @ vectors, as products of matrices with one column
  plait_status columns(plait_value matrices) {
    plait_tensor *vectors = samples_of(outer_->in[1].u.t);
    if (!is_plain(vectors)) return PLAIT_DECLINE;
    const DLTensor &dl = vectors->dl;
    const int64_t shape[]{dl.shape[0], dl.shape[1], 1};
    const int64_t strides[]{dl.strides[0], dl.strides[1], 1};
    plait_value columns;
    plait_status s = view(vectors, 3, shape, strides, &columns);
    if (s >= 0) s = call("matmul", {matrices, columns});
    if (s < 0) return s;
    plait_tensor *made = out_[0].u.t;
    if (!is_plain(made)) return PLAIT_DECLINE;
    s = view(made, 2, made->dl.shape, made->dl.strides, &columns);
    if (s >= 0) set_result(0, columns);
    return s;
  }

  plait_status dot() {
    if (!has_dimensions(1, 1)) return PLAIT_DECLINE;
    plait_tensor *x = samples_of(outer_->in[0].u.t), *y = samples_of(outer_->in[1].u.t);
    if (!x || !y) return call("matmul", {value(x ? x : y), x ? outer_->in[1] : outer_->in[0]});
    const DLDataType d = x->dl.dtype;
    // of integers and halves a sum of products has another dtype, or loses digits
    if (d.code != kDLFloat || d.bits < 32 || key(d) != key(y->dl.dtype) ||
        x->dl.shape[1] != y->dl.shape[1])
      return PLAIT_DECLINE;
    plait_status s = call("mul", {value(x), value(y)});
    if (s < 0) return s;
    const plait_value product = std::exchange(out_[0], none());
    made_.push_back(product.u.t);
    const int64_t last = -1;
    return call("sum", {product, ints(&last, 1)});
  }

  // Losses of a row of scores: the samples are the rows of one call.

  // Takes the arguments up to `reduction`, at index `at`, as rows; PLAIT_DECLINE for several rows
  // of each sample, and with weights.
  plait_status take_rows(uint16_t at) {
    const plait_value &weight = outer_->in[at - 1], &reduction = outer_->in[at];
    if (weight.tag != PLAIT_NONE || reduction.tag != PLAIT_STRING) return PLAIT_DECLINE;
    const auto is = [&](const char *name) { return strcmp(reduction.u.s, name) == 0; };
    if (!is("mean") && !is("sum") && !is("none")) return PLAIT_DECLINE;
    for (uint16_t i = 0; i < outer_->n_in; i++) in_[i] = outer_->in[i];
    for (uint16_t i = 0; i + 1 < at; i++)
      if (const plait_status s = all(outer_->in[i].u.t, in_ + i); s != PLAIT_OK) return s;
    in_[at].u.s = "none";
    in_[at].n = 4;
    return PLAIT_OK;
  }

  // For a mean, `x` divided by how many rows of each sample count: one, or none of an ignored
  // class.
  plait_status mean(plait_value x, plait_value classes, uint16_t at, plait_value *to) {
    *to = x;
    if (strcmp(outer_->in[at].u.s, "mean") != 0) return PLAIT_OK;
    plait_value kept[PLAIT_MAX_ARGS];
    std::copy(in_, in_ + outer_->n_in, kept);
    plait_status s = call("ne", {classes, outer_->in[at + 1]});
    if (s == PLAIT_OK) s = call("true_divide", {x, owned_result()});
    if (s == PLAIT_OK) *to = owned_result();
    std::copy(kept, kept + outer_->n_in, in_);
    return s;
  }

  // The result of the last call, which is needed no longer than this rule.
  plait_value owned_result() {
    const plait_value v = std::exchange(out_[0], none());
    made_.push_back(v.u.t);
    return v;
  }

  plait_status loss() {
    if (!has_dimensions(1, 0)) return PLAIT_DECLINE;
    plait_status s = take_rows(3);
    if (s == PLAIT_OK) s = call(outer_->op);
    if (s != PLAIT_OK) return s;
    const plait_value losses = owned_result(), second = std::exchange(out_[1], none());
    plait_value made;
    s = mean(losses, in_[1], 3, &made);
    out_[1] = second;
    if (s == PLAIT_OK) set_result(0, made);
    return s;
  }

  plait_status loss_backward() {
    if (outer_->in[1].u.t->dl.ndim != 1 || outer_->in[0].u.t->dl.ndim != 0) return PLAIT_DECLINE;
    plait_status s = take_rows(5);
    if (s == PLAIT_OK) s = mean(in_[0], in_[3], 5, in_);
    return s == PLAIT_OK ? call(outer_->op) : s;
  }

  // Views.

  plait_value ints(const int64_t *list, size_t n) const {
    plait_value v{};
    v.tag = PLAIT_INTS;
    v.n = uint32_t(n);
    v.u.is = list;
    return v;
  }

  plait_status viewed() {
    plait_tensor *x = outer_->in[0].u.t, *all = samples_of(x);
    const plait_value &size = outer_->in[1];
    if (!all || size.tag != PLAIT_INTS || !is_contiguous(all)) return PLAIT_DECLINE;
    int64_t known = 1, open = 0, *list = room(size.n + 1);
    list[0] = samples_.size;
    for (uint32_t i = 0; i < size.n; i++) size.u.is[i] == -1 ? open++ : known *= size.u.is[i];
    if (open > 1 || (open && known == 0)) return PLAIT_DECLINE;
    for (uint32_t i = 0; i < size.n; i++)
      list[i + 1] = size.u.is[i] != -1 ? size.u.is[i] : numel(x) / known;
    return call("view", {value(all), ints(list, size.n + 1)});
  }

  plait_status expanded() {
    plait_tensor *x = outer_->in[0].u.t;
    const plait_value &size = outer_->in[1];
    if (!samples_of(x) || size.tag != PLAIT_INTS || int(size.n) < x->dl.ndim) return PLAIT_DECLINE;
    for (uint32_t i = 0; int(i) < int(size.n) - x->dl.ndim; i++)
      if (size.u.is[i] == -1) return PLAIT_DECLINE;
    ndim_ = int(size.n);
    plait_value aligned = outer_->in[0];
    if (const plait_status s = some(x, &aligned); s != PLAIT_OK) return s;
    int64_t *list = room(size.n + 1);
    list[0] = samples_.size;
    for (uint32_t i = 0; i < size.n; i++) list[i + 1] = size.u.is[i];
    return call("expand", {aligned, ints(list, size.n + 1)});
  }

  plait_status permuted() {
    plait_tensor *x = outer_->in[0].u.t, *all = samples_of(x);
    const plait_value &dims = outer_->in[1];
    if (!all || dims.tag != PLAIT_INTS) return PLAIT_DECLINE;
    int64_t *list = room(dims.n + 1);
    list[0] = 0;
    for (uint32_t i = 0; i < dims.n; i++)
      list[i + 1] = dims.u.is[i] + (dims.u.is[i] < 0 ? x->dl.ndim : 0) + 1;
    return call("permute", {value(all), ints(list, dims.n + 1)});
  }

  plait_status transposed() {
    plait_tensor *all = samples_of(outer_->in[0].u.t);
    if (!all || all->dl.ndim != 3) return PLAIT_DECLINE;
    plait_value one{}, two{};
    one.tag = two.tag = PLAIT_INT;
    one.u.i = 1;
    two.u.i = 2;
    return call("transpose", {value(all), one, two});
  }

  // The value of a tensor if it is batched here; a tensor of another level is left to Python where
  // views of it would be needed, as these are operators for the rules of that level.
  static bool is_plain(const plait_tensor *t) { return !(t->layers & layer_bit); }
  plait_tensor *samples_of(const plait_tensor *t) const {
    const Batch *b = batch_of(t);
    if (!b || b->level != samples_.level) return nullptr;
    if (!row_of(*b)) return marked(b->value);
    for (const auto &[handle, rows] : grown_)
      if (handle == t) return rows;
    return marked(b->value);  // another thread has let it be rows since
  }

  plait_status fill() {
    const plait_op *op = outer_->op;
    for (uint16_t i = 0; i < outer_->n_out; i++)
      if (plait_result_at(op, i)->kind != PLAIT_KIND_TENSOR) return PLAIT_DECLINE;
    if (outer_->in[0].tag == PLAIT_TENSOR) first_ = outer_->in[0].u.t->dl.ndim;
    const bool has_rows = kind_ == kind_of_dimensions || kind_ == kind_linear;
    if (has_rows && first_ < 1) return PLAIT_DECLINE;
    if (kind_ == kind_of_matrices && first_ < 2) return PLAIT_DECLINE;
    if (const plait_status s = align(); s != PLAIT_OK) return s;
    for (uint16_t i = 0; i < outer_->n_in; i++)
      if (const plait_status s = fill_one(i); s != PLAIT_OK) return s;
    return PLAIT_OK;
  }

  // How many dimensions a sample of the result of a pointwise operator has. A tensor without
  // dimensions does not decide the dtype, but all its samples would: Python casts them.
  plait_status align() {
    DLDataType dtype{};
    bool several = false, number = false, has = false;
    for (uint16_t i = 0; i < outer_->n_in; i++) {
      if (actions_[i] != action_some || outer_->in[i].tag != PLAIT_TENSOR) continue;
      const DLTensor &dl = outer_->in[i].u.t->dl;
      if (dl.ndim > ndim_) ndim_ = dl.ndim;
      if (dl.dtype.code == kDLBool) continue;
      several |= has && key(dl.dtype) != key(dtype);
      number |= dl.ndim == 0;
      dtype = dl.dtype;
      has = true;
    }
    return several && number ? PLAIT_DECLINE : PLAIT_OK;
  }

  plait_status fill_one(uint16_t i) {
    const plait_value &v = outer_->in[i];
    in_[i] = v;
    switch (actions_[i]) {
      case action_some: return v.tag == PLAIT_TENSOR ? some(v.u.t, in_ + i) : plain(v);
      case action_all: return v.tag == PLAIT_TENSOR ? all(v.u.t, in_ + i) : plain(v);
      case action_dims:
      case action_reduced:
      case action_reduced_or_none: return dims(i);
      case action_size: return size(i);
      case action_rows: return v.tag == PLAIT_TENSOR ? rows(v.u.t, in_ + i) : plain(v);
      case action_row_size: return row_size(i);
      case action_none: return plain(v);
      default: return PLAIT_DECLINE;
    }
  }

  plait_status plain(const plait_value &v) const {
    bool batched = false;
    each_tensor(&v, 1, [&](const plait_tensor *t) { batched |= samples_of(t) != nullptr; });
    return batched ? PLAIT_DECLINE : PLAIT_OK;
  }

  plait_status view(plait_tensor *t, int32_t n, const int64_t *shape, const int64_t *strides,
                    plait_value *to) {
    plait_tensor *made = nullptr;
    const plait_status s = outer_->thread->runtime->tensor_on(
        outer_->thread, t->storage, t->dl.data, t->dl.dtype, n, shape, strides, &made);
    if (s < 0) return s;
    made_.push_back(made);
    *to = value(made);
    return PLAIT_OK;
  }

  plait_status some(plait_tensor *t, plait_value *to) {
    plait_tensor *all = samples_of(t);
    if (!all) return PLAIT_OK;
    const int missing = ndim_ - t->dl.ndim;
    *to = value(all);
    if (missing == 0) return PLAIT_OK;
    if (!is_plain(all)) return PLAIT_DECLINE;
    int64_t shape[PLAIT_MAX_DIMS], strides[PLAIT_MAX_DIMS];
    if (ndim_ + 1 > PLAIT_MAX_DIMS) return PLAIT_DECLINE;
    for (int k = 0; k <= ndim_; k++) {
      const int from = k == 0 ? 0 : k - missing;
      const bool added = k > 0 && k <= missing;
      shape[k] = added ? 1 : all->dl.shape[from];
      strides[k] = added ? 1 : all->dl.strides[from];
    }
    return view(all, ndim_ + 1, shape, strides, to);
  }

  plait_status all(plait_tensor *t, plait_value *to) {
    if (plait_tensor *samples = samples_of(t)) {
      *to = value(samples);
      return PLAIT_OK;
    }
    const int n = t->dl.ndim;
    if (!is_plain(t) || n + 1 > PLAIT_MAX_DIMS) return PLAIT_DECLINE;
    int64_t shape[PLAIT_MAX_DIMS], strides[PLAIT_MAX_DIMS];
    shape[0] = samples_.size;
    strides[0] = 0;
    for (int k = 0; k < n; k++) {
      shape[k + 1] = t->dl.shape[k];
      strides[k + 1] = t->dl.strides[k];
    }
    return view(t, n + 1, shape, strides, to);
  }

  plait_status rows(plait_tensor *t, plait_value *to) {
    plait_tensor *all = samples_of(t);
    if (!all || all->dl.ndim < 2 || !is_plain(all) || !is_contiguous(all)) return PLAIT_DECLINE;
    int64_t shape[PLAIT_MAX_DIMS], strides[PLAIT_MAX_DIMS];
    for (int k = 1; k < all->dl.ndim; k++) {
      shape[k - 1] = all->dl.shape[k];
      strides[k - 1] = all->dl.strides[k];
    }
    shape[0] *= samples_.size;
    return view(all, all->dl.ndim - 1, shape, strides, to);
  }

  plait_status row_size(uint16_t i) {
    const plait_value &v = outer_->in[i];
    if (v.tag != PLAIT_INTS || v.n == 0) return PLAIT_DECLINE;
    int64_t *list = room(v.n);
    for (uint32_t k = 0; k < v.n; k++) list[k] = v.u.is[k];
    list[0] *= samples_.size;
    in_[i].u.is = list;
    return PLAIT_OK;
  }

  int64_t *room(size_t n) {
    lists_.emplace_back(n);
    return lists_.back().data();
  }

  // How many dimensions of a sample those of a call count: of the input whose gradient it gives,
  // or of the first argument. Another one would be that of the samples, so Python serves such
  // calls.
  int counted() const {
    for (uint16_t i = 0; i < outer_->n_in; i++)
      if (actions_[i] == action_size && outer_->in[i].tag == PLAIT_INTS)
        return int(outer_->in[i].n);
    return first_ + (kind_ == kind_new_dimension);
  }

  plait_status dims(uint16_t i) {
    const plait_value &v = outer_->in[i];
    const auto shifted = [](int64_t dim) { return dim >= 0 ? dim + 1 : dim; };
    const int n = counted();
    const auto is_dimension = [n](int64_t dim) { return dim >= -n && dim < n; };
    const bool is_empty = v.tag == PLAIT_INTS && v.n == 0;
    if (is_empty && actions_[i] == action_reduced_or_none) return PLAIT_OK;
    const bool reduces = actions_[i] != action_dims;
    if (v.tag == PLAIT_NONE || is_empty) {
      if (!reduces) return PLAIT_OK;
      if (plait_arg_at(outer_->op, i)->kind != PLAIT_KIND_INTS || first_ < 1) return PLAIT_DECLINE;
      int64_t *list = room(size_t(first_));
      for (int k = 0; k < first_; k++) list[k] = k + 1;
      in_[i].tag = PLAIT_INTS;
      in_[i].n = uint32_t(first_);
      in_[i].u.is = list;
      return PLAIT_OK;
    }
    if (reduces && first_ < 1) return PLAIT_DECLINE;
    if (v.tag == PLAIT_INT) {
      if (!is_dimension(v.u.i)) return PLAIT_DECLINE;
      in_[i].u.i = shifted(v.u.i);
      return PLAIT_OK;
    }
    if (v.tag != PLAIT_INTS || !std::all_of(v.u.is, v.u.is + v.n, is_dimension))
      return PLAIT_DECLINE;
    int64_t *list = room(v.n);
    for (uint32_t k = 0; k < v.n; k++) list[k] = shifted(v.u.is[k]);
    in_[i].u.is = list;
    return PLAIT_OK;
  }

  plait_status size(uint16_t i) {
    const plait_value &v = outer_->in[i];
    if (v.tag == PLAIT_NONE) return PLAIT_OK;
    if (v.tag != PLAIT_INTS) return PLAIT_DECLINE;
    int64_t *list = room(v.n + 1);
    list[0] = samples_.size;
    for (uint32_t k = 0; k < v.n; k++) list[k + 1] = v.u.is[k];
    in_[i].n = v.n + 1;
    in_[i].u.is = list;
    return PLAIT_OK;
  }

  plait_call *outer_;
  const char kind_;
  const char *const actions_;
  const Samples &samples_;
  int first_ = -1, ndim_ = 0;
  plait_value in_[PLAIT_MAX_ARGS], out_[PLAIT_MAX_RESULTS]{};
  std::vector<plait_tensor *> made_;
  std::vector<std::pair<const plait_tensor *, plait_tensor *>> grown_;
  std::vector<std::vector<int64_t>> lists_;
};

}  // namespace

plait_status rearrange(plait_call *c, const Samples &samples) {
  // what draws is Python's: `randomness` decides
  if (c->form != PLAIT_FUNCTION || c->op->flags & PLAIT_OP_RANDOM) return PLAIT_DECLINE;
  const bool in_c = c->op->def->batch != nullptr;
  const char *rule = in_c ? nullptr : rule_of(c->op);
  return rule || in_c ? Rearranged(c, rule, samples).run() : PLAIT_DECLINE;
}

}  // namespace plait::func
