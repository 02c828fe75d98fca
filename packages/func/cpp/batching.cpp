// Tensors of all samples of a batch that look like the tensor of one sample, and the layer that
// serves operators on them (docs/design/0043). Rules that only rearrange arguments are data and run
// here, without the GIL; all others are one function of Python.
#include "batching.hpp"

#include <plait/layer.hpp>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <numeric>
#include <unordered_map>
#include <vector>


namespace plait::func {
namespace {

// What a batched tensor's storage stands for. Its own memory has the size of a sample, and nobody
// reads it: other handles on it, which engines make, are batched tensors, too.
//
// Most such storages are made for a result. Others held a tensor that a call of vmap had made, and
// *grew* when a value that differs between samples was written to it: their value is rows of bytes,
// one for each sample. Every handle on such a storage, views too, stands for the same part of all
// rows. The value of a result becomes such rows when a view of it is taken: so views have a base,
// from which engines find their histories after a write. A sample has the strides of the value,
// without the common factor that they have where other samples lie between its elements.
struct Batch {
  plait_tensor *value;  // all samples, along dimension 0
  int64_t level;  // the call of vmap that they belong to
  void *memory;
  int64_t scale = 1;  // strides of the value for one of a sample; 0: a sample is in C order instead
  int64_t row = 0;  // the bytes from one row to the next one; 0 if the value is not rows of bytes
  const plait_allocator *allocator = nullptr;  // and who frees `memory`, with what it wants
  void *block = nullptr;
};

void drop_batch(void *block) {
  auto *b = static_cast<Batch *>(block);
  plait_release(b->value);
  std::free(b->memory);
  delete b;
}

void drop_grown(void *, void *data, uint64_t nbytes, void *block) {
  auto *b = static_cast<Batch *>(block);
  if (b->allocator) b->allocator->free(b->allocator->ctx, data, nbytes, b->block);
  plait_release(b->value);
  delete b;
}
// It only frees: observers hear of the memory of such a storage as they did before.
const plait_allocator grown_memory{PLAIT_HEADER(plait_allocator),
                                   "vmap",
                                   nullptr,
                                   nullptr,
                                   drop_grown,
                                   nullptr,
                                   nullptr,
                                   0,
                                   nullptr,
                                   nullptr};

// Derivatives that run at the same time on several threads may see a value become rows.
int64_t row_of(const Batch &b) { return __atomic_load_n(&b.row, __ATOMIC_ACQUIRE); }

const Batch *batch_of(const plait_tensor *t) {
  if (__builtin_expect(t->storage->release != drop_batch, 1)) return nullptr;
  const auto *b = static_cast<const Batch *>(t->storage->block);
  return row_of(*b) || t->dl.data == b->memory ? b : nullptr;
}

constexpr uint32_t position = 9;  // above "python", below "autograd" and "forward"
uint64_t layer_bit;  // 0: there is no layer yet
constexpr uint32_t sharing_position = 33;  // above "autograd"
uint64_t sharing_bit;

// Lets the layers see a handle whose storage has grown.
plait_tensor *marked(plait_tensor *t) {
  const uint64_t bits = layer_bit | sharing_bit;
  if (t->storage->release == drop_batch &&
      (__atomic_load_n(&t->layers, __ATOMIC_RELAXED) & bits) != bits)
    __atomic_fetch_or(&t->layers, bits, __ATOMIC_RELAXED);
  return t;
}

// Lets the value of a batched tensor be rows of bytes. Returns whether it is such rows then: it
// is not if its samples lie in the same memory, or backwards.
bool has_rows(const plait_tensor *t) {
  constexpr uint64_t layers_of_bytes = 0xffff;  // those below 16: plait_runtime::tensor_alias
  if (t->storage->release != drop_batch)
    return !(t->layers & layers_of_bytes) && !t->slot[3] && t->dl.device.device_type == kDLCPU;
  const Batch *b = batch_of(t);
  if (!b) return false;
  if (row_of(*b)) return true;
  const DLTensor &dl = b->value->dl;
  if (!b->scale || !has_rows(b->value)) return false;
  constexpr int64_t any = 16;  // of one sample or none: a multiple of all item sizes
  const int64_t row = dl.shape[0] > 1 && numel(t) ? dl.strides[0] * itemsize(dl.dtype) : any;
  if (row <= 0) return false;
  __atomic_store_n(&const_cast<Batch *>(b)->row, row, __ATOMIC_RELEASE);
  return true;
}

// The layout of a sample of a value.
struct SampleLayout {
  int64_t count = 1, scale = 0;  // elements of its memory; see Batch
  int64_t strides[PLAIT_MAX_DIMS];

  explicit SampleLayout(const DLTensor &value) {
    for (int i = 1; i < value.ndim; i++) count *= value.shape[i];
    if (!value.strides || !count) return;
    int64_t factor = 0;
    for (int i = 1; i < value.ndim; i++) {
      if (value.shape[i] == 1) continue;
      if (value.strides[i] < 0) return;
      factor = std::gcd(factor, value.strides[i]);
    }
    scale = std::max<int64_t>(factor, 1);
    count = 1;
    for (int i = value.ndim - 1; i > 0; i--) {
      strides[i - 1] = value.shape[i] == 1 ? count : value.strides[i] / scale;
      count += (value.shape[i] - 1) * strides[i - 1];
    }
  }
};

// All samples of a handle on a storage whose value is rows: the same part of each row.
plait_status rows_of(plait_thread *thread, const plait_tensor *t, const Batch &b,
                     plait_tensor **out) {
  const DLTensor &dl = t->dl;
  int64_t shape[PLAIT_MAX_DIMS + 1], strides[PLAIT_MAX_DIMS + 1];
  shape[0] = b.value->dl.shape[0];
  strides[0] = row_of(b) / itemsize(dl.dtype);
  for (int i = 0; i < dl.ndim; i++) {
    shape[i + 1] = dl.shape[i];
    strides[i + 1] = dl.strides[i] * b.scale;
  }
  auto *first = static_cast<char *>(b.value->dl.data);
  if (first && dl.data)
    first += (static_cast<char *>(dl.data) - static_cast<char *>(b.memory)) * b.scale;
  const plait_status s = thread->runtime->tensor_on(thread, b.value->storage, first, dl.dtype,
                                                    dl.ndim + 1, shape, strides, out);
  if (s >= 0) marked(*out);
  return s;
}
plait::python::SharedReference serve_function, loop_function, sum_function, enter_function,
    leave_function;

// What a rule does with an argument.
enum Action : uint8_t {
  action_none,  // as it is; a batched tensor there is left to Python
  action_some,  // all samples if it is batched, aligned with the dimensions of a sample
  action_all,  // all samples along dimension 0, repeated if it is not batched
  action_dims,  // dimensions of a sample; negative ones stay
  action_size,  // the sizes of a sample
  action_reduced,  // as `dims`; None or an empty list: all dimensions of a sample
  action_rows,  // the rows of all samples, which are dimension 0 of a sample, as one list of rows
  action_row_size,  // the sizes of a sample whose dimension 0 are rows
};
// What kind of rule it is: most call the operator itself.
enum Kind : uint8_t {
  kind_same,
  kind_rows,  // so is dimension 0 of each result
  kind_of_dimensions,  // the first argument must have dimensions
  kind_matmul,  // matrices: `matmul` of all samples
  kind_mv,
  kind_dot,
  kind_view,
  kind_expand,
  kind_permute,
  kind_t,
  kind_loss,  // of one row with one class: input, target, weight, reduction, ignored class
  kind_loss_backward,  // grad, input, lse, target, weight, reduction, ignored class
  kind_linear,  // of rows, or a product of matrices where weights differ
  kind_bmm,
  kind_of_matrices,  // the first argument must have two dimensions
  kind_new_dimension,  // dimensions count one more than the first argument has
};
struct Rule {
  Action action[PLAIT_MAX_ARGS];
  Kind kind;
};
using Rules = std::unordered_map<const plait_op *, Rule>;
const Rules *rules;  // replaced, never changed or freed: calls on other threads may read it

// A call's batched tensors.
struct Samples {
  int64_t level = 0, size = 0;  // of the innermost call of vmap
  bool any = false;

  void see(const plait_tensor *t) {
    const Batch *b = t ? batch_of(t) : nullptr;
    if (!b || (any && b->level <= level)) return;
    any = true;
    level = b->level;
    size = b->value->dl.shape[0];
  }
};

template <class F>
void each_tensor(const plait_value *values, uint32_t n, F &&f) {
  for (uint32_t i = 0; i < n; i++) {
    if (values[i].tag == PLAIT_TENSOR) f(values[i].u.t);
    if (values[i].tag != PLAIT_TENSORS) continue;
    for (uint32_t k = 0; k < values[i].n; k++)
      if (values[i].u.ts[k]) f(values[i].u.ts[k]);
  }
}

// A call on all samples, by a rule that is data.
class Rearranged {
 public:
  Rearranged(plait_call *c, const Rule &rule, const Samples &samples)
      : outer_(c), rule_(rule), samples_(samples) {}
  Rearranged(const Rearranged &) = delete;
  Rearranged &operator=(const Rearranged &) = delete;
  ~Rearranged() {
    for (plait_tensor *t : made_) plait_release(t);
    for (plait_value &v : out_) outer_->thread->runtime->release_value(&v);
  }

  // PLAIT_DECLINE: Python has to do it
  plait_status run() {
    if (samples_.size == 0) return PLAIT_DECLINE;
    plait_status s = take_grown();
    if (s == PLAIT_OK) s = computed();
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

  plait_status computed() {
    switch (rule_.kind) {
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
      default: break;
    }
    plait_status s = fill();
    if (s == PLAIT_OK) s = call(outer_->op);
    return s == PLAIT_OK && rule_.kind == kind_rows ? apart() : s;
  }

  // Calls an operator with `in_`, which has all its arguments.
  plait_status call(const plait_op *op) {
    plait_call c{};
    c.size = sizeof c;
    c.op = op;
    c.n_in = op->n_args;
    c.n_out = op->n_results;
    c.in = in_;
    c.out = out_;
    c.thread = outer_->thread;
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
    const bool has_rows = rule_.kind == kind_of_dimensions || rule_.kind == kind_linear;
    if (has_rows && first_ < 1) return PLAIT_DECLINE;
    if (rule_.kind == kind_of_matrices && first_ < 2) return PLAIT_DECLINE;
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
      if (rule_.action[i] != action_some || outer_->in[i].tag != PLAIT_TENSOR) continue;
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
    switch (rule_.action[i]) {
      case action_some: return v.tag == PLAIT_TENSOR ? some(v.u.t, in_ + i) : plain(v);
      case action_all: return v.tag == PLAIT_TENSOR ? all(v.u.t, in_ + i) : plain(v);
      case action_dims:
      case action_reduced: return dims(i);
      case action_size: return size(i);
      case action_rows: return v.tag == PLAIT_TENSOR ? rows(v.u.t, in_ + i) : plain(v);
      case action_row_size: return row_size(i);
      default: return plain(v);
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
      if (rule_.action[i] == action_size && outer_->in[i].tag == PLAIT_INTS)
        return int(outer_->in[i].n);
    return first_ + (rule_.kind == kind_new_dimension);
  }

  plait_status dims(uint16_t i) {
    const plait_value &v = outer_->in[i];
    const auto shifted = [](int64_t dim) { return dim >= 0 ? dim + 1 : dim; };
    const int n = counted();
    const auto is_dimension = [n](int64_t dim) { return dim >= -n && dim < n; };
    const bool reduces = rule_.action[i] == action_reduced;
    if (v.tag == PLAIT_NONE || (v.tag == PLAIT_INTS && v.n == 0)) {
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
  const Rule &rule_;
  const Samples &samples_;
  int first_ = -1, ndim_ = 0;
  plait_value in_[PLAIT_MAX_ARGS], out_[PLAIT_MAX_RESULTS]{};
  std::vector<plait_tensor *> made_;
  std::vector<std::pair<const plait_tensor *, plait_tensor *>> grown_;
  std::vector<std::vector<int64_t>> lists_;
};

// The levels at which a tensor is batched, or all of several.
class Levels {
 public:
  void add(const plait_tensor *t) {
    for (const Batch *b = batch_of(t); b; b = batch_of(b->value))
      if (!has(b->level)) levels_.push_back(b->level);
  }
  bool has(int64_t level) const {
    return std::find(levels_.begin(), levels_.end(), level) != levels_.end();
  }
  bool empty() const { return levels_.empty(); }
  bool within(const Levels &other) const {
    return std::all_of(levels_.begin(), levels_.end(), [&](int64_t l) { return other.has(l); });
  }
  // a list of them
  PyObject *list() const {
    Object made(PyList_New(Py_ssize_t(levels_.size())));
    for (size_t i = 0; made && i < levels_.size(); i++) {
      PyObject *number = PyLong_FromLongLong(levels_[i]);
      if (!number) return nullptr;
      PyList_SET_ITEM(made.get(), Py_ssize_t(i), number);
    }
    return made.release();
  }

 private:
  std::vector<int64_t> levels_;
};

bool has_history(const plait_tensor *t, const plait_engine *e) { return t->layers >> e->layer & 1; }

// An input with history: its index, as the derivative counts inputs, and its levels before the
// call, which may write to it. A view may have its history from a write to its base.
struct Input {
  long index;
  Levels levels;
};

std::vector<Input> inputs_with_history(const plait_call *c, const plait_engine *e) {
  std::vector<Input> found;
  long index = 0;
  const auto see = [&](const plait_tensor *t) {
    if (t && (has_history(t, e) || (t->base && has_history(t->base, e)))) {
      found.push_back({index, {}});
      found.back().levels.add(t);
    }
    index++;
  };
  for (uint16_t i = 0; i < c->n_in; i++) {
    const plait_value &v = c->in[i];
    const uint8_t kind = plait_arg_at(c->op, i)->kind;
    if (v.tag == PLAIT_TENSORS)
      for (uint32_t k = 0; k < v.n; k++) see(v.u.ts[k]);
    else if (v.tag == PLAIT_TENSOR || kind == PLAIT_KIND_TENSOR || kind == PLAIT_KIND_OPERAND)
      see(v.tag == PLAIT_TENSOR ? v.u.t : nullptr);
  }
  return found;
}

// The inputs that samples share: pairs of the index and the levels. nullptr with an exception.
Object shared_inputs(const std::vector<Input> &inputs, const Levels &levels) {
  Object found(PyList_New(0));
  for (const Input &each : inputs) {
    if (levels.within(each.levels)) continue;
    const Object numbers(each.levels.list());
    const Object pair(numbers ? Py_BuildValue("lO", each.index, numbers.get()) : nullptr);
    if (!found || !pair || PyList_Append(found.get(), pair.get()) < 0) return Object();
  }
  return found;
}

// A tensor with the node that the call has recorded. A write to a view is recorded by its base.
plait_tensor *first_recorded(const plait_call *c, const plait_engine *e) {
  plait_tensor *first = nullptr;
  each_tensor(c->out, c->n_out, [&](plait_tensor *t) {
    if (first || !has_history(t, e)) return;
    const bool view = t->base && !(c->op->flags & PLAIT_OP_VIEW) && has_history(t->base, e);
    first = view ? t->base : t;
  });
  return first;
}

// The derivative of a call on batched tensors gives a gradient of each sample for inputs that the
// samples share, too: Python sums these before they meet others of the same input. `levels` are
// those of all inputs; what is written may have more of them after the call.
plait_status sum_shared(plait_call *c, const plait_engine *e, const std::vector<Input> &inputs,
                        Levels levels) {
  const plait_status s = c->thread->runtime->call_below(c);
  plait_tensor *result = s < 0 ? nullptr : first_recorded(c, e);
  if (!result) return s;
  each_tensor(c->out, c->n_out, [&](const plait_tensor *t) { levels.add(t); });
  const auto is_single = [&](const Input &each) { return levels.within(each.levels); };
  if (std::all_of(inputs.begin(), inputs.end(), is_single)) return s;
  const plait::python::Gil gil;
  plait_retain(result);
  const Object wrapped(wrap(result)), sum(sum_function.get()),
      shared(shared_inputs(inputs, levels));
  const Object done(wrapped && shared ? PyObject_CallFunctionObjArgs(sum.get(), wrapped.get(),
                                                                     shared.get(), nullptr)
                                      : nullptr);
  if (done) return s;
  const plait_status kept = state.python->keep(c->thread);
  if (c->form == PLAIT_FUNCTION)
    for (uint16_t i = 0; i < c->n_out; i++) c->thread->runtime->release_value(c->out + i);
  return kept;
}

bool has_samples(const plait_call *c) {
  bool found = false;
  each_tensor(c->in, c->n_in, [&](const plait_tensor *t) { found |= batch_of(t) != nullptr; });
  return found;
}

// An operator that is made of others, of which one may need the values of each sample, or results
// of a shape that depends on them: then it is called for each sample, with its history.
plait_status taken_apart(plait_call *c) {
  const plait_status s = c->thread->runtime->call_below(c);
  if (s >= 0) return s;
  {
    const plait::python::Gil gil;
    state.python->raise(c->thread, s);
    if (!PyErr_ExceptionMatches(PyExc_Exception) || PyErr_ExceptionMatches(PyExc_MemoryError))
      return state.python->keep(c->thread);
    PyErr_Clear();
  }
  return state.python->serve(c, [] { return loop_function.get(); }, sharing_bit);
}

// The layer above the engine's. A call that the engine takes apart comes again in its parts.
plait_status share(plait_call *c) {
  const plait_engine *e = role<plait_engine>(c->thread->runtime);
  const plait_runtime *runtime = c->thread->runtime;
  if (!c->op->def->vjp && c->op->def->decompose && has_samples(c)) return taken_apart(c);
  if (!e || !c->op->def->vjp || c->form == PLAIT_OUT || !e->enabled(e->ctx, c->thread))
    return runtime->call_below(c);
  Levels levels;
  each_tensor(c->in, c->n_in, [&](const plait_tensor *t) { levels.add(t); });
  if (levels.empty()) return runtime->call_below(c);
  const std::vector<Input> inputs = inputs_with_history(c, e);
  return inputs.empty() ? runtime->call_below(c) : sum_shared(c, e, inputs, std::move(levels));
}

// Whether others hold the memory that a batched tensor stands for, as the caller of `vmap` does
// with that of an argument.
bool is_held_elsewhere(const Batch &b) {
  const auto owners = [](const auto *o) { return __atomic_load_n(&o->o.refs, __ATOMIC_ACQUIRE); };
  if (owners(b.value) > 1 || owners(b.value->storage) > 1) return true;
  const Batch *outer = batch_of(b.value);
  return outer && is_held_elsewhere(*outer);
}

// The engine would not find the histories of those again after a write.
plait_status refuse_lost_history(plait_call *c) {
  const plait_engine *e = role<plait_engine>(c->thread->runtime);
  if (!e || !e->enabled(e->ctx, c->thread)) return PLAIT_OK;
  bool recorded = false;
  each_tensor(c->in, c->n_in,
              [&](const plait_tensor *t) { recorded |= t->layers >> e->layer & 1; });
  for (uint16_t i = 0; recorded && i < c->n_in; i++) {
    const bool written =
        (c->form == PLAIT_INPLACE && i == 0) || (plait_arg_at(c->op, i)->flags & PLAIT_ARG_WRITES);
    const Batch *b = written && c->in[i].tag == PLAIT_TENSOR ? batch_of(c->in[i].u.t) : nullptr;
    if (b && is_held_elsewhere(*b))
      return c->thread->runtime->raise(
          c->thread, PLAIT_NOT_IMPLEMENTED, c->op->name,
          "vmap: `%s` shares its memory with a tensor outside of the function, or with a view that "
          "has no base, and would be written in place: the gradients of the others would not "
          "include the write; clone() it before, or use the out-of-place form",
          plait_arg_at(c->op, i)->name);
  }
  return PLAIT_OK;
}

// ---- tensors that a call has made --------------------------------------------------------------

// The calls of vmap that this thread is in, and operators on batched tensors of calls that have
// ended, of which the parts of a decomposition are seen.
thread_local std::vector<Scope> scopes;
// The storages that were made in them, each with the innermost level that it was made in. Others
// may take the address of one that was freed; it was made within the call all the same.
thread_local std::unordered_map<const plait_storage *, int64_t> fresh;
// The level whose rule runs, and the level below which tensors may grow.
thread_local int64_t served_level = INT64_MAX, growth_bound = INT64_MAX;

// The storage of a tensor and those that it stands for, with the level that each belongs to less
// than.
template <class F>
void each_storage(plait_tensor *t, F &&f) {
  int64_t below = INT64_MAX;
  for (const Batch *b; t; t = b ? marked(b->value) : nullptr) {
    b = batch_of(t);
    f(t->storage, below);
    if (b) below = b->level;
  }
}

// Notes the results of a call, but for those on the memory of its arguments.
void note_results(const plait_call *c) {
  if (scopes.empty()) return;
  std::vector<const plait_storage *> given;
  bool any = false;
  each_tensor(c->out, c->n_out,
              [&](const plait_tensor *t) { any |= scopes.size() > 1 || !batch_of(t); });
  if (!any) return;
  each_tensor(c->in, c->n_in, [&](plait_tensor *t) {
    each_storage(t, [&](const plait_storage *s, int64_t) { given.push_back(s); });
  });
  each_tensor(c->out, c->n_out, [&](plait_tensor *t) {
    each_storage(t, [&](const plait_storage *s, int64_t below) {
      if (std::find(given.begin(), given.end(), s) == given.end())
        fresh[s] = std::min(scopes.back().level, below - 1);
    });
  });
}

// Lets a storage stand for one of each sample: copies of what it holds. PLAIT_DECLINE if its
// memory is not plain memory of the host, which only tensors use.
constexpr uint64_t foreign = PLAIT_STORAGE_READONLY | PLAIT_STORAGE_EXTERNAL |
                             PLAIT_STORAGE_SHARED | PLAIT_STORAGE_MAPPED | PLAIT_STORAGE_EXPORTED |
                             PLAIT_STORAGE_PINNED;
plait_status grow(plait_thread *thread, plait_storage *storage, const Scope &to,
                  plait_storage **rows) {
  if (storage->device.device_type != kDLCPU || storage->release || storage->flags & foreign)
    return PLAIT_DECLINE;
  constexpr int64_t step = 16;  // a multiple of all item sizes
  const auto nbytes = int64_t(storage->nbytes);
  const int64_t shape[]{to.size, std::max((nbytes + step - 1) / step * step, step)};
  plait_tensor *value = nullptr;
  const plait_status s =
      thread->runtime->tensor_new(thread, dtype::uint8, 2, shape, nullptr, storage->device, &value);
  if (s < 0) return s;
  for (int64_t i = 0; i < shape[0] && nbytes; i++)
    std::memcpy(static_cast<char *>(value->dl.data) + i * shape[1], storage->data, size_t(nbytes));
  storage->block =
      new Batch{value, to.level, storage->data, 1, shape[1], storage->allocator, storage->block};
  storage->allocator = &grown_memory;
  storage->release = drop_batch;
  *rows = value->storage;
  return PLAIT_OK;
}

bool has_ended(int64_t level) {
  return std::none_of(scopes.begin(), scopes.end(),
                      [&](const Scope &each) { return each.level == level && !each.ended; });
}

// Lets a tensor that a call of vmap has made stand for one of each sample, at this level and at
// those within that it was made in. PLAIT_DECLINE if it was not made within the level. Behind the
// call only derivatives write what differs between its samples, to what their formulas have made.
plait_status become_batched(plait_thread *thread, plait_tensor *t, const Scope &to) {
  const auto it = fresh.find(t->storage);
  const int64_t made_in = has_ended(to.level) ? to.level : it == fresh.end() ? -1 : it->second;
  if (made_in < to.level) return PLAIT_DECLINE;
  std::vector<Scope> levels{to};
  for (const Scope &each : scopes)
    if (each.level > levels.back().level && each.level <= made_in && each.level < growth_bound)
      levels.push_back(each);
  plait_storage *storage = t->storage;
  for (; !levels.empty(); levels.pop_back()) {
    const plait_status s = grow(thread, storage, levels.back(), &storage);
    if (s != PLAIT_OK) return s;
    fresh[storage] = levels.back().level - 1;
  }
  marked(t);
  return PLAIT_OK;
}

// A call on batched tensors for a scope, of which the parts are seen.
class Serving {
 public:
  Serving(plait_thread *thread, const Samples &samples)
      : thread_(thread), included_(thread->included), level_(served_level), bound_(growth_bound) {
    growth_bound = included_ & layer_bit ? INT64_MAX : level_;
    served_level = samples.level;
    const auto is_open = [&](const Scope &each) { return each.level == samples.level; };
    if (std::any_of(scopes.begin(), scopes.end(), is_open)) return;
    alone_ = true;
    open_scope(samples.level, samples.size, true);
    thread->included |= layer_bit;
  }
  Serving(const Serving &) = delete;
  Serving &operator=(const Serving &) = delete;
  ~Serving() {
    served_level = level_;
    growth_bound = bound_;
    if (!alone_) return;
    thread_->included = included_;
    close_scope();
  }

 private:
  plait_thread *thread_;
  uint64_t included_;
  int64_t level_, bound_;
  bool alone_ = false;
};

plait_status serve_in_python(plait_call *c) {
  const plait_status s = state.python->serve(c, [] { return serve_function.get(); }, layer_bit);
  if (s < 0) return s;
  // a rule writes to the samples: the storages that stand for them were written, too
  for (uint16_t i = 0; i < c->n_in; i++)
    if ((c->form == PLAIT_INPLACE && i == 0) || plait_arg_at(c->op, i)->flags & PLAIT_ARG_WRITES)
      each_tensor(c->in + i, 1, [](const plait_tensor *t) { wrote(t); });
  if (c->form == PLAIT_OUT) each_tensor(c->out, c->n_out, [](const plait_tensor *t) { wrote(t); });
  return s;
}

// A view of a sample of a storage whose value is rows is a view of all rows: it needs no rule.
// PLAIT_DECLINE if the rows do not begin at whole elements of the view's dtype.
plait_status view_of_rows(plait_call *c) {
  const plait_status s = c->thread->runtime->call_below(c);
  if (s < 0) return s;
  bool whole = true;
  each_tensor(c->out, c->n_out, [&](plait_tensor *t) {
    const int64_t size = itemsize(t->dl.dtype);
    for (const plait_tensor *each = marked(t); const Batch *b = batch_of(each); each = b->value)
      whole &= row_of(*b) % size == 0 && (b->scale == 1 || size == itemsize(b->value->dl.dtype));
  });
  if (whole) return s;
  for (uint16_t i = 0; i < c->n_out; i++) c->thread->runtime->release_value(c->out + i);
  return PLAIT_DECLINE;
}

plait_status run_batched(plait_call *c, const Samples &samples) {
  if (const plait_status s = refuse_lost_history(c); s < 0) return s;
  if ((c->op->flags & PLAIT_OP_VIEW) && c->in[0].tag == PLAIT_TENSOR && has_rows(c->in[0].u.t) &&
      is_batched(c->in[0].u.t))
    if (const plait_status s = view_of_rows(c); s != PLAIT_DECLINE) return s;
  const Rules *known = __atomic_load_n(&rules, __ATOMIC_ACQUIRE);
  if (known && c->form == PLAIT_FUNCTION) {
    if (const auto it = known->find(c->op); it != known->end()) {
      const plait_status s = Rearranged(c, it->second, samples).run();
      if (s != PLAIT_DECLINE) return s;
    }
  }
  const Serving serving(c->thread, samples);
  return serve_in_python(c);
}

plait_status run(plait_call *c) {
  Samples samples;
  const auto see = [&](plait_tensor *t) { samples.see(marked(t)); };
  each_tensor(c->in, c->n_in, see);
  if (c->form == PLAIT_OUT) each_tensor(c->out, c->n_out, see);
  const plait_status s = samples.any                      ? run_batched(c, samples)
                         : c->op->flags & PLAIT_OP_RANDOM ? serve_in_python(c)
                                                          : c->thread->runtime->call_below(c);
  if (s >= 0) note_results(c);
  return s;
}

const plait_plugin plugin{PLAIT_HEADER(plait_plugin), "batching", PY_VERSION, 0, nullptr, nullptr};

bool register_layer() {
  plait_thread *thread = state.runtime->thread();
  uint32_t bit = 0, sharing = 0;
  plait_status s = state.runtime->attach(thread, &plugin);
  if (s >= 0) s = state.runtime->layer(thread, "batching", position, &bit);
  if (s >= 0) s = state.runtime->layer(thread, "sharing", sharing_position, &sharing);
  if (s >= 0)
    s = state.runtime->implement(thread, nullptr, PLAIT_SLOT_LAYER + bit, run, nullptr, &plugin,
                                 nullptr);
  if (s >= 0)
    s = state.runtime->implement(thread, nullptr, PLAIT_SLOT_LAYER + sharing, share, nullptr,
                                 &plugin, nullptr);
  if (s < 0) return state.python->raise(thread, s), false;
  layer_bit = uint64_t(1) << bit;
  sharing_bit = uint64_t(1) << sharing;
  return true;
}

bool add_rule(Rules *to, PyObject *name, PyObject *actions, int kind) {
  const char *text = PyUnicode_AsUTF8(name);
  if (!text || !PyBytes_Check(actions)) return false;
  const plait_op *op = state.runtime->op(text);
  if (!op) return true;  // of a package that is not loaded
  Rule rule{};
  rule.kind = Kind(kind);
  for (Py_ssize_t i = 0; i < PyBytes_GET_SIZE(actions) && i < op->n_args; i++)
    rule.action[i] = Action(PyBytes_AS_STRING(actions)[i]);
  (*to)[op] = rule;
  return true;
}

PyObject *set_batching(PyObject *, PyObject *args) {
  PyObject *serve, *loop, *sum, *enter, *leave, *dict;
  if (!PyArg_ParseTuple(args, "OOOOOO!:set_batching", &serve, &loop, &sum, &enter, &leave,
                        &PyDict_Type, &dict))
    return nullptr;
  auto *fresh = new Rules;
  PyObject *name, *rule;
  Py_ssize_t at = 0;
  while (PyDict_Next(dict, &at, &name, &rule)) {
    PyObject *actions;
    int kind;
    if (PyArg_ParseTuple(rule, "Oi", &actions, &kind) && add_rule(fresh, name, actions, kind))
      continue;
    delete fresh;
    return nullptr;
  }
  if (!layer_bit && !register_layer()) return nullptr;
  Py_XDECREF(serve_function.exchange(new_reference(serve)));
  Py_XDECREF(loop_function.exchange(new_reference(loop)));
  Py_XDECREF(sum_function.exchange(new_reference(sum)));
  Py_XDECREF(enter_function.exchange(new_reference(enter)));
  Py_XDECREF(leave_function.exchange(new_reference(leave)));
  __atomic_store_n(&rules, fresh, __ATOMIC_RELEASE);
  Py_RETURN_NONE;
}

PyObject *batch(PyObject *, PyObject *const *args, Py_ssize_t n) {
  if (n != 2 || !is_tensor(args[0]) || handle_of(args[0])->dl.ndim < 1 || !layer_bit)
    return PyErr_Format(PyExc_TypeError, "batch: (tensor with a dimension, level) is required");
  const int64_t level = PyLong_AsLongLong(args[1]);
  if (level == -1 && PyErr_Occurred()) return nullptr;
  plait_thread *thread = state.runtime->thread();
  plait_tensor *value = handle_of(args[0]), *made = nullptr;
  plait_retain(value);
  const plait_status s = make_batched(thread, value, level, &made);
  return s < 0 ? state.python->raise(thread, s) : wrap(made);
}

PyObject *samples(PyObject *, PyObject *o) {
  int64_t number = 0;
  plait_tensor *all = is_tensor(o) ? all_samples(handle_of(o), &number) : nullptr;
  if (!all) return PyErr_Occurred() ? nullptr : new_reference(Py_None);
  const Object value(wrap(all)), level(PyLong_FromLongLong(number));
  return value && level ? PyTuple_Pack(2, value.get(), level.get()) : nullptr;
}

PyObject *become(PyObject *, PyObject *const *args, Py_ssize_t n) {
  if (n != 3 || !is_tensor(args[0]))
    return PyErr_Format(PyExc_TypeError, "become_batched: (tensor, level, size) is required");
  const Scope to{PyLong_AsLongLong(args[1]), PyLong_AsLongLong(args[2]), false};
  if (PyErr_Occurred()) return nullptr;
  plait_thread *thread = state.runtime->thread();
  const plait_status s = become_batched(thread, handle_of(args[0]), to);
  return s < 0 ? state.python->raise(thread, s), nullptr : PyBool_FromLong(s == PLAIT_OK);
}

PyMethodDef functions[] = {
    {"set_batching", entry<set_batching>, METH_VARARGS,
     "set_batching(serve, loop, sum_gradients, enter, leave, rules, /)\n--\n\nSet who serves "
     "operators on batched tensors, and makes and reads those with history."},
    {"batch", function(entry<batch>), METH_FASTCALL,
     "batch(value, level, /)\n--\n\nA tensor of one sample that stands for all of them."},
    {"samples", entry<samples>, METH_O,
     "samples(tensor, /)\n--\n\n(value, level) of a batched tensor; None for others."},
    {"become_batched", function(entry<become>), METH_FASTCALL,
     "become_batched(tensor, level, size, /)\n--\n\nLet a tensor that a call of vmap has made "
     "stand for one of each sample; False if it was not made within the call."},
    {nullptr, nullptr, 0, nullptr}};

}  // namespace

plait_status make_batched(plait_thread *thread, plait_tensor *value, int64_t level,
                          plait_tensor **out) {
  const plait_runtime *runtime = thread->runtime;
  const SampleLayout layout(value->dl);
  const auto nbytes = uint64_t(layout.count * itemsize(value->dl.dtype));
  auto *b = new Batch{value, level, std::malloc(nbytes ? nbytes : 1), layout.scale};
  plait_storage *storage = nullptr;
  plait_status s = b->memory ? runtime->storage_wrap(thread, b->memory, nbytes, value->dl.device, 0,
                                                     drop_batch, b, &storage)
                             : runtime->raise(thread, PLAIT_MEMORY_ERROR, "vmap", "out of memory");
  if (s < 0) {
    drop_batch(b);
    return s;
  }
  s = runtime->tensor_on(thread, storage, b->memory, value->dl.dtype, value->dl.ndim - 1,
                         value->dl.shape + 1, layout.scale ? layout.strides : nullptr, out);
  plait_release(storage);
  if (s >= 0) (*out)->layers |= layer_bit | sharing_bit;
  return s;
}

uint64_t batching_layers() { return layer_bit | sharing_bit; }

PyObject *enter_recorded(PyObject *value, int64_t level) {
  const Object enter(enter_function.get());
  return PyObject_CallFunction(enter.get(), "OL", value, static_cast<long long>(level));
}

PyObject *leave_recorded(PyObject *tensor, int64_t level, int64_t size) {
  const Object leave(leave_function.get());
  return PyObject_CallFunction(leave.get(), "OLL", tensor, static_cast<long long>(level),
                               static_cast<long long>(size));
}

plait_tensor *samples_at(const plait_tensor *t, int64_t level) {
  const Batch *b = batch_of(t);
  if (!b || b->level != level) return nullptr;
  if (!row_of(*b)) {
    plait_retain(b->value);
    return marked(b->value);
  }
  plait_thread *thread = state.runtime->thread();
  plait_tensor *made = nullptr;
  const plait_status s = rows_of(thread, t, *b, &made);
  if (s < 0) state.python->raise(thread, s);
  return made;
}

plait_tensor *all_samples(const plait_tensor *t, int64_t *level) {
  const Batch *b = batch_of(t);
  if (b) *level = b->level;
  return b ? samples_at(t, b->level) : nullptr;
}

void open_scope(int64_t level, int64_t size, bool ended) { scopes.push_back({level, size, ended}); }

void close_scope() {
  const int64_t ended = scopes.back().level;
  scopes.pop_back();
  if (scopes.empty()) return fresh.clear();
  for (auto &[storage, level] : fresh)
    if (level == ended) level = scopes.back().level;
}

std::vector<Scope> leave_scopes(int64_t level) {
  const auto first = std::find_if(scopes.begin(), scopes.end(),
                                  [&](const Scope &each) { return each.level >= level; });
  const std::vector<Scope> left(first, scopes.end());
  scopes.erase(first, scopes.end());
  return left;
}

void enter_scopes(const std::vector<Scope> &list) {
  scopes.insert(scopes.end(), list.begin(), list.end());
}

void note_fresh(const plait_tensor *t) {
  if (!scopes.empty()) fresh[t->storage] = scopes.back().level;
}

bool is_batched(const plait_tensor *t) { return batch_of(t) != nullptr; }

bool add_batching(PyObject *module) { return PyModule_AddFunctions(module, functions) == 0; }

}  // namespace plait::func
