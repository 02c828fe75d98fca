// Tensors, generators and gradients for JavaScript.
#include <cstring>

#include "libraries.hpp"
#include "values.hpp"

namespace plait::node {
namespace {

napi_value load(Call &c) {
  load_libraries(c.text(0));
  return c.undefined();
}

std::vector<int64_t> shape_of(Call &c, napi_value value) {
  std::vector<int64_t> shape;
  int64_t count = 1;
  for (napi_value item : c.items(value, "shape")) {
    shape.push_back(whole(c, item, "shape"));
    if (shape.back() < 0) fail(PLAIT_SHAPE_ERROR, "tensor: sizes of `shape` must not be negative");
    if (__builtin_mul_overflow(count, shape.back(), &count))
      fail(PLAIT_SHAPE_ERROR, "tensor: `shape` has too many elements");
  }
  if (shape.size() > PLAIT_MAX_DIMS)
    fail(PLAIT_SHAPE_ERROR, "tensor: `shape` must have at most 64 dimensions");
  return shape;
}

// tensor_new(dtype, shape, typed array)
napi_value tensor_new(Call &c) {
  const DType dtype = dtype_of(c, c.at(0), "dtype");
  const std::vector<int64_t> shape = shape_of(c, c.at(1));
  const Bytes data = c.bytes(2);
  uint64_t size = uint64_t(itemsize(dtype));
  for (const int64_t n : shape)
    if (__builtin_mul_overflow(size, uint64_t(n), &size))
      fail(PLAIT_SHAPE_ERROR, "tensor: `shape` has too many elements");
  if (data.size != size)
    fail(PLAIT_SHAPE_ERROR,
         "tensor: `shape` has " + std::to_string(size / uint64_t(itemsize(dtype))) +
             " elements, the data have " + std::to_string(data.size / uint64_t(itemsize(dtype))));
  Tensor t;
  check_status(runtime()->tensor_new(thread(), dtype, int32_t(shape.size()), shape.data(), nullptr,
                                     {kDLCPU, 0}, t.out()));
  if (size) std::memcpy(t.data<char>(), data.data, size);
  return c.tensor_value(std::move(t));
}

// A tensor on the CPU, in C order.
Tensor dense(const Tensor &t) {
  if (t.device().device_type == PLAIT_META)
    fail(PLAIT_NOT_IMPLEMENTED, "data: a tensor on the device meta has no elements");
  Tensor here;
  check_status(runtime()->host_copy(thread(), t.get(), here.out()));
  if (is_contiguous(here.get())) return here;
  plait_value in = value(here), out = none();
  const plait_op *op = runtime()->op("contiguous");
  check_status(try_call(thread(), op, &in, 1, &out));
  return Tensor::steal(out.u.t);
}

napi_value tensor_data(Call &c) {
  const Tensor t = dense(c.tensor(0));
  const auto size = size_t(t.numel() * itemsize(t.dtype()));
  void *to = nullptr;
  napi_value result = c.buffer(size, &to);
  if (size) std::memcpy(to, t.data<char>(), size);
  return result;
}

napi_value tensor_shape(Call &c) {
  const Tensor &t = c.tensor(0);
  return c.list(t.shape(), t.ndim());
}

napi_value tensor_dtype(Call &c) { return c.text_value(name(c.tensor(0).dtype())); }

napi_value tensor_device(Call &c) {
  return c.text_value(device_text(runtime(), c.tensor(0).device()));
}

napi_value generator_new(Call &c) {
  auto g = Ref<plait_generator>::steal(runtime()->generator_new(c.integer<uint32_t>(0)));
  if (!g) fail(PLAIT_MEMORY_ERROR, "Generator: no memory");
  return c.generator_value(std::move(g));
}

// Gradients.

napi_value requires_grad(Call &c) {
  const plait_engine *e = engine();
  return c.flag_value(c.tensor(0)->layers >> e->layer & 1);
}

napi_value set_requires_grad(Call &c) {
  const plait_engine *e = engine();
  check_status(e->set_requires_grad(e->ctx, thread(), c.tensor(0).get(), c.flag(1)));
  return c.undefined();
}

napi_value grad(Call &c) {
  const plait_engine *e = engine();
  Tensor result;
  check_status(e->grad(e->ctx, thread(), c.tensor(0).get(), result.out()));
  return result ? c.tensor_value(std::move(result)) : c.null();
}

napi_value set_grad(Call &c) {
  const plait_engine *e = engine();
  plait_tensor *gradient = c.is_missing(c.at(1)) ? nullptr : c.tensor(1).get();
  check_status(e->set_grad(e->ctx, thread(), c.tensor(0).get(), gradient));
  return c.undefined();
}

napi_value grad_enabled(Call &c) {
  const plait_engine *e = engine();
  return c.flag_value(e->enabled(e->ctx, thread()));
}

napi_value set_grad_enabled(Call &c) {
  const plait_engine *e = engine();
  e->set_enabled(e->ctx, thread(), c.flag(0));
  return c.undefined();
}

// backward(root, gradient or null, inputs or null, retain, create): gradients of the inputs
napi_value backward(Call &c) {
  const plait_engine *e = engine();
  const Tensor root_held = c.tensor(0);
  const Tensor gradient_held = c.is_missing(c.at(1)) ? Tensor() : c.tensor(1);
  plait_tensor *root = root_held.get(), *gradient = gradient_held.get();
  std::vector<Tensor> held;  // an array may have a getter that frees one of them
  std::vector<plait_tensor *> inputs;
  const bool into_leaves = c.is_missing(c.at(2));
  if (!into_leaves)
    for (napi_value item : c.items(c.at(2), "inputs")) {
      held.push_back(c.box_of(item, Box::tensor, "an item of inputs").t);
      inputs.push_back(held.back().get());
    }
  const bool create = c.flag(4);
  uint64_t flags = into_leaves ? 0 : PLAIT_BACKWARD_ALLOW_UNUSED;
  if (c.flag(3) || create) flags |= PLAIT_BACKWARD_RETAIN;
  if (create) flags |= PLAIT_BACKWARD_CREATE;
  std::vector<plait_tensor *> results(inputs.size() + 1);
  // an empty list of inputs is no request for the gradients of the leaves
  if (!into_leaves && inputs.empty()) return c.array({});
  const plait_status status =
      e->backward(e->ctx, thread(), &root, &gradient, 1, into_leaves ? nullptr : inputs.data(),
                  uint32_t(inputs.size()), flags, into_leaves ? nullptr : results.data());
  std::vector<Tensor> owned;
  for (size_t i = 0; i < inputs.size(); i++) owned.push_back(Tensor::steal(results[i]));
  check_status(status);
  std::vector<napi_value> values;
  for (Tensor &t : owned) values.push_back(t ? c.tensor_value(std::move(t)) : c.null());
  return c.array(values);
}

}  // namespace

void define_tensors(napi_env env, napi_value exports) {
  const Entry entries[] = {
      {"load", entry<load>},
      {"tensor_new", entry<tensor_new>},
      {"tensor_data", entry<tensor_data>},
      {"tensor_shape", entry<tensor_shape>},
      {"tensor_dtype", entry<tensor_dtype>},
      {"tensor_device", entry<tensor_device>},
      {"generator_new", entry<generator_new>},
      {"requires_grad", entry<requires_grad>},
      {"set_requires_grad", entry<set_requires_grad>},
      {"grad", entry<grad>},
      {"set_grad", entry<set_grad>},
      {"grad_enabled", entry<grad_enabled>},
      {"set_grad_enabled", entry<set_grad_enabled>},
      {"backward", entry<backward>},
  };
  define(env, exports, entries, std::size(entries));
}

}  // namespace plait::node
