#include "values.hpp"

#include "libraries.hpp"

namespace plait::node {
namespace {

const DType dtypes[] = {dtype::bool_,           dtype::uint8,         dtype::uint16,
                        dtype::uint32,          dtype::uint64,        dtype::int8,
                        dtype::int16,           dtype::int32,         dtype::int64,
                        dtype::float16,         dtype::bfloat16,      dtype::float32,
                        dtype::float64,         dtype::complex64,     dtype::complex128,
                        dtype::float8_e4m3fn,   dtype::float8_e5m2,   dtype::float8_e4m3fnuz,
                        dtype::float8_e5m2fnuz, dtype::float8_e8m0fnu};

const char *words(int kind) {
  switch (kind) {
    case PLAIT_KIND_TENSOR: return "a tensor";
    case PLAIT_KIND_OPERAND: return "a tensor or a number";
    case PLAIT_KIND_TENSORS: return "an array of tensors";
    case PLAIT_KIND_SCALAR: return "a number";
    case PLAIT_KIND_INT: return "a whole number";
    case PLAIT_KIND_INTS: return "an array of whole numbers";
    case PLAIT_KIND_FLOAT: return "a number";
    case PLAIT_KIND_FLOATS: return "an array of numbers";
    case PLAIT_KIND_BOOL: return "a boolean";
    case PLAIT_KIND_STRING: return "a string";
    case PLAIT_KIND_DTYPE: return "the name of a dtype";
    case PLAIT_KIND_DEVICE: return "the name of a device";
    default: return "a generator";
  }
}

double float_of(const Call &c, napi_value v, const std::string &what) {
  if (c.type(v) != napi_number) fail(PLAIT_TYPE_ERROR, what);
  double x;
  c.check(napi_get_value_double(c.env(), v, &x));
  return x;
}

// A number of JavaScript: a whole one is an int, as 2 is in Python; -0 is not.
plait_value scalar(const Call &c, napi_value v, const std::string &what) {
  if (c.type(v) == napi_boolean) {
    bool b;
    c.check(napi_get_value_bool(c.env(), v, &b));
    return value(b);
  }
  if (c.type(v) == napi_bigint) return value(whole(c, v, what));
  const double x = float_of(c, v, what);
  const bool is_int = x == std::floor(x) && std::abs(x) < 0x1p53 && !(x == 0 && std::signbit(x));
  return is_int ? value(int64_t(x)) : value(x);
}

DLDevice device_of(const Call &c, napi_value v, const std::string &what) {
  const std::string text = c.text_of(v, what);
  const size_t colon = text.find(':');
  const std::string head = text.substr(0, colon);
  for (int32_t type = 0; type < PLAIT_MAX_DEVICE_TYPES; type++) {
    const char *name = device_name(runtime(), type);
    if (!name || head != name) continue;
    const std::string index = colon == std::string::npos ? "0" : text.substr(colon + 1);
    if (index.empty() || index.size() > 4 ||
        index.find_first_not_of("0123456789") != std::string::npos)
      break;
    return {DLDeviceType(type), std::stoi(index)};
  }
  fail(PLAIT_TYPE_ERROR, what);
}

plait_value ints_of(const Call &c, const plait_arg &a, napi_value v, const std::string &what,
                    Memory *memory) {
  std::vector<int64_t> list;
  if (c.is_array(v))
    for (napi_value item : c.items(v, what)) list.push_back(whole(c, item, what));
  else
    list.push_back(whole(c, v, what));
  if (a.length && list.size() != a.length && list.size() != 1) fail(PLAIT_TYPE_ERROR, what);
  if (a.length && list.size() == 1) list.resize(a.length, list[0]);  // one stands for all of them
  list.reserve(1);  // an empty list has an address, too
  memory->ints.push_back(std::move(list));
  return ints(memory->ints.back().data(), memory->ints.back().size());
}

plait_value floats_of(const Call &c, napi_value v, const std::string &what, Memory *memory) {
  std::vector<double> list;
  if (c.is_array(v))
    for (napi_value item : c.items(v, what)) list.push_back(float_of(c, item, what));
  else
    list.push_back(float_of(c, v, what));
  list.reserve(1);
  memory->floats.push_back(std::move(list));
  plait_value result{PLAIT_FLOATS, uint32_t(memory->floats.back().size()), {0}};
  result.u.fs = memory->floats.back().data();
  return result;
}

plait_value tensors_of(const Call &c, const plait_arg &a, napi_value v, const std::string &what,
                       Memory *memory) {
  if (!c.is_array(v)) fail(PLAIT_TYPE_ERROR, what);
  std::vector<plait_tensor *> list;
  for (napi_value item : c.items(v, what)) {
    const bool missing = c.is_missing(item);
    if (missing && !(a.flags & PLAIT_ARG_OPTIONAL)) fail(PLAIT_TYPE_ERROR, what);
    if (!missing) memory->held.push_back(c.box_of(item, Box::tensor, what + "; an item").t);
    list.push_back(missing ? nullptr : memory->held.back().get());
  }
  list.reserve(1);
  memory->tensors.push_back(std::move(list));
  return tensors(memory->tensors.back().data(), memory->tensors.back().size());
}

}  // namespace

int64_t whole(const Call &c, napi_value v, const std::string &what) {
  if (c.type(v) == napi_bigint) {
    int64_t i;
    bool lossless = false;
    c.check(napi_get_value_bigint_int64(c.env(), v, &i, &lossless));
    if (!lossless) fail(PLAIT_VALUE_ERROR, what + ": it has more than 64 bits");
    return i;
  }
  const double x = float_of(c, v, what);
  if (x != std::floor(x) || std::abs(x) >= 0x1p53) fail(PLAIT_TYPE_ERROR, what);
  return int64_t(x);
}

DType dtype_of(const Call &c, napi_value v, const std::string &what) {
  const std::string text = c.text_of(v, what);
  for (const DType d : dtypes)
    if (text == name(d)) return d;
  fail(PLAIT_TYPE_ERROR, what + ": there is no dtype " + text);
}

plait_value value_of(const Call &c, const plait_op *op, const plait_arg &a, napi_value v,
                     Memory *memory) {
  const bool optional = a.flags & PLAIT_ARG_OPTIONAL;
  const std::string what = std::string(op->name) + ": `" + a.name + "` must be " +
                           (a.kind == PLAIT_KIND_INTS && a.length
                                ? "a whole number or " + std::to_string(a.length) + " of them"
                                : words(a.kind));
  if (c.type(v) == napi_undefined) {
    if (a.flags & PLAIT_ARG_DEFAULT) return a.value;
    fail(PLAIT_TYPE_ERROR, std::string(op->name) + ": the argument `" + a.name + "` is required");
  }
  if (c.type(v) == napi_null) {
    if (optional) return none();
    fail(PLAIT_TYPE_ERROR, what + ", got null");
  }
  switch (a.kind) {
    case PLAIT_KIND_OPERAND:
      if (c.type(v) != napi_external) return scalar(c, v, what);
      [[fallthrough]];
    case PLAIT_KIND_TENSOR:
      if (c.type(v) != napi_external) fail(PLAIT_TYPE_ERROR, what);
      memory->held.push_back(
          c.box_of(v, Box::tensor, std::string(op->name) + ": `" + a.name + "`").t);
      return value(memory->held.back());
    case PLAIT_KIND_TENSORS: return tensors_of(c, a, v, what, memory);
    case PLAIT_KIND_SCALAR: return scalar(c, v, what);
    case PLAIT_KIND_INT: return value(whole(c, v, what));
    case PLAIT_KIND_INTS: return ints_of(c, a, v, what, memory);
    case PLAIT_KIND_FLOAT: return value(float_of(c, v, what));
    case PLAIT_KIND_FLOATS: return floats_of(c, v, what, memory);
    case PLAIT_KIND_BOOL: {
      if (c.type(v) != napi_boolean) fail(PLAIT_TYPE_ERROR, what);
      bool b;
      c.check(napi_get_value_bool(c.env(), v, &b));
      return value(b);
    }
    case PLAIT_KIND_STRING:
      if (c.type(v) != napi_string) fail(PLAIT_TYPE_ERROR, what);
      memory->texts.push_back(c.text_of(v, what));
      return value(memory->texts.back().c_str());
    case PLAIT_KIND_DTYPE: return value(dtype_of(c, v, what));
    case PLAIT_KIND_DEVICE: return value(device_of(c, v, what));
    default: break;
  }
  memory->generators.push_back(
      c.box_of(v, Box::generator, std::string(op->name) + ": `" + a.name + "`").g);
  plait_value result{PLAIT_OBJECT, 0, {0}};
  result.u.o = reinterpret_cast<plait_object *>(memory->generators.back().get());
  return result;
}

namespace {

// The results of a call, which are released in any case.
struct Results {
  plait_value values[PLAIT_MAX_RESULTS] = {};
  ~Results() {
    for (plait_value &v : values) runtime()->release_value(&v);
  }
};

napi_value result_value(const Call &c, const plait_value &v) {
  if (v.tag == PLAIT_TENSOR) return c.tensor_value(Tensor::share(v.u.t));
  if (v.tag != PLAIT_TENSORS) return c.null();
  std::vector<napi_value> list;
  for (uint32_t i = 0; i < v.n; i++)
    list.push_back(v.u.ts[i] ? c.tensor_value(Tensor::share(v.u.ts[i])) : c.null());
  return c.array(list);
}

// call(name, in place, array of values in the order of the schema): an array of results
napi_value call(Call &c) {
  const std::string name = c.text(0);
  const plait_op *op = runtime()->op(name.c_str());
  if (!op) fail(PLAIT_NOT_IMPLEMENTED, name + ": there is no such operator");
  const bool in_place = c.flag(1);
  const std::vector<napi_value> given = c.items(c.at(2), "the list of values");
  if (given.size() > op->n_args)
    fail(PLAIT_TYPE_ERROR, name + ": at most " + std::to_string(op->n_args) +
                               " arguments are required, got " + std::to_string(given.size()));
  Memory memory;
  plait_value in[PLAIT_MAX_ARGS];
  for (size_t i = 0; i < op->n_args; i++)
    in[i] =
        value_of(c, op, *plait_arg_at(op, i), i < given.size() ? given[i] : c.undefined(), &memory);
  Results results;
  if (in_place) {
    if (!(op->flags & PLAIT_OP_INPLACE))
      fail(PLAIT_NOT_IMPLEMENTED, name + ": the operator has no form in place");
    if (in[0].tag != PLAIT_TENSOR)
      fail(PLAIT_TYPE_ERROR, name + "_: the first argument must be a tensor");
    results.values[0] = value(Tensor::share(in[0].u.t).release());
  }
  check_status(try_call(thread(), op, in, op->n_args, results.values,
                        in_place ? PLAIT_INPLACE : PLAIT_FUNCTION));
  std::vector<napi_value> values;
  for (size_t i = 0; i < op->n_results; i++) values.push_back(result_value(c, results.values[i]));
  return c.array(values);
}

// The names of all operators of the runtime.
napi_value operators(Call &c) {
  const uint64_t count = runtime()->ops(nullptr, 0);
  std::vector<const plait_op *> list(count);
  const uint64_t found = runtime()->ops(list.data(), count);
  std::vector<napi_value> names;
  for (uint64_t i = 0; i < std::min(count, found); i++)
    names.push_back(c.text_value(list[i]->name));
  return c.array(names);
}

}  // namespace

void define_operators(napi_env env, napi_value exports) {
  const Entry entries[] = {{"call", entry<call>}, {"operators", entry<operators>}};
  define(env, exports, entries, std::size(entries));
}

}  // namespace plait::node
