// The text of a graph becomes a program whose names, operators and arguments are checked.
#include <algorithm>
#include <cmath>
#include <limits>

#include "json.hpp"
#include "program/control_flow.hpp"
#include "program/program.hpp"

namespace plait::graph {

namespace {

constexpr int64_t version = 1;

constexpr DType all_dtypes[] = {
    dtype::bool_,           dtype::uint8,       dtype::uint16,          dtype::uint32,
    dtype::uint64,          dtype::int8,        dtype::int16,           dtype::int32,
    dtype::int64,           dtype::float16,     dtype::bfloat16,        dtype::float32,
    dtype::float64,         dtype::complex64,   dtype::complex128,      dtype::float8_e4m3fn,
    dtype::float8_e4m3fnuz, dtype::float8_e5m2, dtype::float8_e5m2fnuz, dtype::float8_e8m0fnu};

DLDataType read_dtype(std::string_view text) {
  for (const DType d : all_dtypes)
    if (text == name(d)) return d;
  throw JsonError("there is no dtype " + quote(text));
}

DLDevice read_device(std::string_view text) {
  const size_t colon = text.find(':');
  const std::string_view type = text.substr(0, colon);
  int32_t index = 0;
  if (colon != std::string_view::npos) {
    const std::string_view digits = text.substr(colon + 1);
    if (digits.empty() || digits.size() > 4) throw JsonError("there is no device " + quote(text));
    for (const char c : digits) {
      if (c < '0' || c > '9') throw JsonError("there is no device " + quote(text));
      index = index * 10 + (c - '0');
    }
  }
  for (int32_t i = 0; i < PLAIT_MAX_DEVICE_TYPES; i++) {
    const char *known = device_name(runtime, i);
    if (known && type == known) return {DLDeviceType(i), index};
  }
  throw JsonError("there is no device " + quote(text));
}

std::vector<int64_t> read_integers(Json list) {
  std::vector<int64_t> result;
  result.reserve(list.size());
  for (const Json item : list.items()) result.push_back(item.integer());
  return result;
}

}  // namespace

bool extent(const TensorType &t, int64_t *below, int64_t *above) {
  __int128 low = 0, high = 0;
  bool is_empty = false;
  for (size_t i = 0; i < t.shape.size(); i++) {
    is_empty |= t.shape[i] == 0;
    const __int128 last = __int128(t.shape[i] - 1) * t.strides[i];
    (last < 0 ? low : high) += last;
  }
  const int64_t size = itemsize(t.dtype);
  if (is_empty) low = high = 0;
  const __int128 from = low * size, to = (high + (is_empty ? 0 : 1)) * size;
  constexpr __int128 most = std::numeric_limits<int64_t>::max() / 4;
  if (from < -most || to > most) return false;
  *below = int64_t(from);
  *above = int64_t(to);
  return true;
}

class Program::Parser {
 public:
  explicit Parser(Program *program) : p_(*program) {}

  void read(Json graph) {
    const auto known = graph.find("plait_graph");
    if (!known) throw JsonError("this is no graph of plait: it has no member \"plait_graph\"");
    if (known->integer() != version)
      throw JsonError("a graph of version " + std::to_string(known->integer()) +
                      "; this plait-graph reads version " + std::to_string(version) +
                      ": a later one may read it");
    read_parts(graph);
  }

  // A graph in a node, which has no weights and numbers of its own.
  void read_region(Json graph) {
    for (const char *part : {"weights", "numbers"})
      if (const auto entries = graph.find(part); entries && entries->size())
        throw JsonError("a region has inputs, nodes and outputs only, found " + quote(part));
    read_parts(graph);
  }

 private:
  void read_parts(Json graph) {
    for (const Json each : graph.at("inputs").items())
      p_.input_names_.push_back(read_tensor(each, Where::input));
    if (const auto weights = graph.find("weights"))
      for (const Json each : weights->items())
        p_.weight_names_.push_back(read_tensor(each, Where::weight));
    if (const auto numbers = graph.find("numbers"))
      for (const Json each : numbers->items()) read_number(each);
    const Json nodes = graph.at("nodes");
    p_.nodes_.reserve(nodes.size());
    for (const Json each : nodes.items()) {
      try {
        read_node(each);
      } catch (const JsonError &e) {
        throw JsonError("node " + std::to_string(p_.nodes_.size()) + describe(each) + ": " +
                        e.what());
      }
    }
    for (const Json each : graph.at("outputs").items()) {
      const std::string_view name = each.string();
      p_.outputs_.push_back(value_of(name));
      p_.output_names_.emplace_back(name.substr(1));
    }
  }

  static std::string describe(Json node) {
    if (!node.is(Json::Kind::object)) return "";
    const auto op = node.find("op");
    return op && op->is(Json::Kind::string) ? " (" + quote(op->string()) + ")" : "";
  }

  void define(std::string_view name, int32_t index) {
    if (name.empty()) throw JsonError("a name is empty");
    if (!names_.emplace(std::string(name), index).second)
      throw JsonError("the name " + quote(name) + " is defined twice");
  }

  TensorType read_type(Json each) {
    TensorType t;
    t.dtype = read_dtype(each.at("dtype").string());
    t.shape = read_integers(each.at("shape"));
    if (t.shape.size() > PLAIT_MAX_DIMS) throw JsonError("a tensor has more than 64 dimensions");
    __int128 elements = 1;
    for (const int64_t n : t.shape) {
      if (n < 0) throw JsonError("a shape has the size " + std::to_string(n));
      elements *= std::max<int64_t>(n, 1);  // strides must fit 64 bits, also without elements
      if (elements > std::numeric_limits<int64_t>::max())
        throw JsonError("a tensor has more than 2^63 elements");
    }
    if (const auto device = each.find("device")) t.device = read_device(device->string());
    const auto strides = each.find("strides");
    if (strides && !strides->is_null()) {
      t.strides = read_integers(*strides);
      if (t.strides.size() != t.shape.size())
        throw JsonError("a tensor has " + std::to_string(t.shape.size()) + " dimensions and " +
                        std::to_string(t.strides.size()) + " strides");
    } else {
      t.strides.resize(t.shape.size());
      int64_t stride = 1;
      for (size_t i = t.shape.size(); i-- > 0;) {
        t.strides[i] = stride;
        stride *= std::max<int64_t>(t.shape[i], 1);
      }
    }
    int64_t below = 0, above = 0;
    if (!extent(t, &below, &above)) throw JsonError("a tensor is larger than 2^61 bytes");
    return t;
  }

  std::string read_tensor(Json each, Where where) {
    const std::string name(each.at("name").string());
    const auto index = int32_t(p_.values_.size());
    define(name, index);
    Value v;
    v.name = name;
    v.type = read_type(each);
    v.memory = int32_t(p_.memories_.size());
    int64_t below = 0, above = 0;
    extent(v.type, &below, &above);
    p_.memories_.push_back({where, index, v.type.device, uint64_t(above - below), below});
    p_.values_.push_back(std::move(v));
    return name;
  }

  void read_number(Json each) {
    Number n{};
    n.name = std::string(each.at("name").string());
    const Json value = each.at("value");
    n.is_integer = value.is(Json::Kind::integer);
    n.integer = n.is_integer ? value.integer() : 0;
    n.real = n.is_integer ? double(n.integer) : value.number();
    if (const auto step = each.find("step")) {
      n.integer_step = step->is(Json::Kind::integer) ? step->integer() : 0;
      n.real_step = step->is(Json::Kind::integer) ? double(n.integer_step) : step->number();
      if (n.is_integer && !step->is(Json::Kind::integer))
        throw JsonError("the number " + quote(n.name) + " is an integer, its step is not");
    }
    define(n.name, -1 - int32_t(p_.numbers_.size()));
    p_.numbers_.push_back(std::move(n));
  }

  // The index of a value, or -1 - that of a number.
  int32_t index_of(std::string_view reference) {
    if (reference.empty() || reference[0] != '%')
      throw JsonError(quote(reference) + " is no name: one begins with %");
    const auto known = names_.find(std::string(reference.substr(1)));
    if (known == names_.end())
      throw JsonError("the name " + quote(reference) + " is used before it is defined");
    return known->second;
  }
  int32_t value_of(std::string_view reference) {
    const int32_t index = index_of(reference);
    if (index < 0) throw JsonError(quote(reference) + " is a number; a tensor is required");
    return index;
  }
  int32_t number_of(std::string_view reference) {
    const int32_t index = index_of(reference);
    if (index >= 0) throw JsonError(quote(reference) + " is a tensor; a number is required");
    return -1 - index;
  }

  void read_node(Json each) {
    p_.nodes_.emplace_back();
    Node &n = p_.nodes_.back();
    try {
      fill_node(each, &n);
    } catch (...) {
      p_.nodes_.pop_back();
      throw;
    }
  }

  void fill_node(Json each, Node *n) {
    const std::string op(each.at("op").string());
    n->op = op.find('\0') == std::string::npos ? find_operator(op.c_str()) : nullptr;
    if (!n->op) throw JsonError("there is no operator " + quote(op));
    n->form = PLAIT_FUNCTION;
    if (const auto form = each.find("form")) {
      const std::string_view text = form->string();
      if (text == "inplace")
        n->form = PLAIT_INPLACE;
      else if (text == "out")
        n->form = PLAIT_OUT;
      else if (text != "function")
        throw JsonError("there is no form " + quote(text));
    }
    const bool has_form =
        n->form == PLAIT_FUNCTION ||
        (n->form == PLAIT_INPLACE ? n->op->flags & PLAIT_OP_INPLACE : n->op->flags & PLAIT_OP_OUT);
    if (!has_form) throw JsonError("the operator has no such form");
    const Json in = each.at("in"), out = each.at("out");
    if (in.size() != n->op->n_args)
      throw JsonError("the operator has " + std::to_string(n->op->n_args) + " arguments, got " +
                      std::to_string(in.size()));
    if (out.size() != n->op->n_results)
      throw JsonError("the operator has " + std::to_string(n->op->n_results) + " results, got " +
                      std::to_string(out.size()));
    n->in.resize(n->op->n_args);
    n->out.resize(n->op->n_results);
    uint16_t i = 0;
    for (const Json argument : in.items()) {
      const plait_arg *arg = plait_arg_at(n->op, i);
      try {
        read_argument(argument, *arg, n, &n->in[i]);
      } catch (const JsonError &e) {
        throw JsonError("`" + std::string(arg->name) + "`: " + e.what());
      }
      i++;
    }
    i = 0;
    for (const Json result : out.items()) read_result(result, i++, n);
    if (control_flow_operator(op)) read_regions(each.at("regions"), n);
  }

  void read_regions(Json regions, Node *n) {
    if (regions.size() != 2)
      throw JsonError("2 regions are required, got " + std::to_string(regions.size()));
    if (!n->is_list[0]) throw JsonError("the result must be a list");
    n->regions.reset(new Regions);
    n->regions->is_loop = n->op == control_flow_operator("while_loop");
    size_t i = 0;
    for (const Json each : regions.items()) {
      std::unique_ptr<Program> region(new Program);
      try {
        Parser(region.get()).read_region(each);
      } catch (const JsonError &e) {
        throw JsonError("region " + std::to_string(i) + ": " + e.what());
      }
      (i++ ? n->regions->second : n->regions->first) = std::move(region);
    }
    for (int32_t &value : n->results[0]) {
      if (value < -1) throw JsonError("the results are new tensors, none of before");
      if (value != -1) continue;  // a result that nobody reads has its memory all the same
      value = int32_t(p_.values_.size());
      p_.values_.emplace_back();
    }
    n->regions->results.resize(n->results[0].size());
  }

  void read_result(Json result, uint16_t i, Node *n) {
    n->results.emplace_back();
    n->is_list.push_back(result.is(Json::Kind::array));
    std::vector<int32_t> &values = n->results.back();
    if (n->form != PLAIT_FUNCTION) {  // it writes to a tensor of before
      const int32_t v = value_of(result.string());
      if (n->form == PLAIT_INPLACE && (n->in[0].tag != PLAIT_TENSOR || n->slots[0].value != v))
        throw JsonError("a call in place has its first argument as the result");
      values.push_back(v);
      n->out[i].tag = PLAIT_TENSOR;
      n->slots.push_back({&n->out[i].u.t, v});
      return;
    }
    if (result.is_null()) {
      values.push_back(-1);
      return;
    }
    if (!result.is(Json::Kind::array)) {
      values.push_back(new_value(result.string(), *n));
      return;
    }
    for (const Json item : result.items())
      values.push_back(item.is_null() ? -1 : new_value(item.string(), *n));
  }

  // A result that has the name of a tensor of before is one that the operator wrote to.
  int32_t new_value(std::string_view reference, const Node &n) {
    if (reference.size() < 2 || reference[0] != '%')
      throw JsonError(quote(reference) + " is no name: one begins with %");
    const std::string_view name = reference.substr(1);
    const auto known = names_.find(std::string(name));
    if (known != names_.end()) {
      bool is_read = false;
      for (const Slot &slot : n.slots) is_read |= slot.value == known->second;
      if (!is_read) throw JsonError("the name " + quote(reference) + " is defined twice");
      return -2 - known->second;
    }
    const auto index = int32_t(p_.values_.size());
    define(name, index);
    Value v;
    v.name = std::string(name);
    p_.values_.push_back(std::move(v));
    return index;
  }

  static plait_value number_value(Json item, bool wants_float) {
    switch (item.kind()) {
      case Json::Kind::boolean: return value(item.boolean());
      case Json::Kind::integer:
        return wants_float ? value(double(item.integer())) : value(item.integer());
      case Json::Kind::number: return value(item.number());
      default: return value(special_float(item));
    }
  }
  // {"float": "inf"}
  static double special_float(Json item) {
    if (!item.is(Json::Kind::object) || item.size() != 1 || !item.find("float"))
      throw JsonError(std::string("a number is expected, found ") + item.describe());
    const std::string_view text = item.at("float").string();
    constexpr double infinity = std::numeric_limits<double>::infinity();
    if (text == "inf") return infinity;
    if (text == "-inf") return -infinity;
    if (text == "nan") return std::numeric_limits<double>::quiet_NaN();
    throw JsonError("there is no float " + quote(text));
  }
  static double float_of(Json item) {
    const plait_value v = number_value(item, true);
    if (v.tag != PLAIT_FLOAT) throw JsonError("a float is expected, found true or false");
    return v.u.f;
  }

  void use_tensor(Json reference, Node *n, plait_tensor **at) {
    n->slots.push_back({at, value_of(reference.string())});
  }

  static bool is_reference(Json item) { return item.is(Json::Kind::string); }

  void read_argument(Json item, const plait_arg &arg, Node *n, plait_value *v) {
    *v = none();
    if (item.is_null()) {
      if (!(arg.flags & PLAIT_ARG_OPTIONAL) && arg.kind != PLAIT_KIND_GENERATOR)
        throw JsonError("null is given for an argument that is not optional");
      return;
    }
    switch (arg.kind) {
      case PLAIT_KIND_TENSOR: return read_tensor_argument(item, n, v);
      case PLAIT_KIND_OPERAND:
        if (is_reference(item) && index_of(item.string()) >= 0)
          return read_tensor_argument(item, n, v);
        return read_scalar(item, n, v, false);
      case PLAIT_KIND_SCALAR: return read_scalar(item, n, v, false);
      case PLAIT_KIND_FLOAT: return read_scalar(item, n, v, true);
      case PLAIT_KIND_INT:
        read_scalar(item, n, v, false);
        if (v->tag == PLAIT_INT) return;
        throw JsonError(std::string("an integer is expected, found ") + item.describe());
      case PLAIT_KIND_BOOL: *v = value(item.boolean()); return;
      case PLAIT_KIND_TENSORS: return read_tensors(item, n, v, has_optional_items(*n->op, arg));
      case PLAIT_KIND_INTS: return read_ints(item, n, v);
      case PLAIT_KIND_FLOATS: return read_floats(item, n, v);
      case PLAIT_KIND_STRING: strings_push(item.at("string").string(), v); return;
      case PLAIT_KIND_DTYPE: *v = value(read_dtype(item.at("dtype").string())); return;
      case PLAIT_KIND_DEVICE: *v = value(read_device(item.at("device").string())); return;
      default: throw JsonError("a generator is no part of a graph");
    }
  }

  void read_tensor_argument(Json item, Node *n, plait_value *v) {
    *v = value(static_cast<plait_tensor *>(nullptr));
    v->tag = PLAIT_TENSOR;
    use_tensor(item, n, &v->u.t);
  }

  void read_scalar(Json item, Node *n, plait_value *v, bool wants_float) {
    if (is_reference(item)) {
      const int32_t number = number_of(item.string());
      const bool is_integer = p_.numbers_[number].is_integer && !wants_float;
      *v = is_integer ? value(p_.numbers_[number].integer) : value(p_.numbers_[number].real);
      n->numbers.push_back({v, nullptr, nullptr, number});
      return;
    }
    if (item.is(Json::Kind::object) && item.size() == 1 && item.find("complex")) {
      std::vector<double> parts;
      for (const Json part : item.at("complex").items()) parts.push_back(float_of(part));
      if (parts.size() != 2) throw JsonError("a complex number has two parts");
      p_.real_lists_.push_back(std::move(parts));
      v->tag = PLAIT_COMPLEX;
      v->n = 2;
      v->u.fs = p_.real_lists_.back().data();
      return;
    }
    *v = number_value(item, wants_float);
  }

  // Whether the schema says `Tensor?[]`, of which entries may be missing.
  static bool has_optional_items(const plait_op &op, const plait_arg &arg) {
    const std::string_view schema = op.schema;
    const std::string end = std::string(" ") + arg.name;
    for (size_t at = schema.find(end); at != std::string_view::npos;
         at = schema.find(end, at + 1)) {
      const size_t begin = schema.find_last_of("(,", at);
      const std::string_view type = schema.substr(begin + 1, at - begin - 1);
      if (type.find("Tensor?[") != std::string_view::npos) return true;
    }
    return false;
  }

  void read_tensors(Json item, Node *n, plait_value *v, bool may_lack_items) {
    p_.tensor_lists_.emplace_back(item.size());
    std::vector<plait_tensor *> &list = p_.tensor_lists_.back();
    size_t i = 0;
    for (const Json each : item.items()) {
      if (!each.is_null())
        use_tensor(each, n, &list[i]);
      else if (!may_lack_items)
        throw JsonError("null is given in a list whose tensors are not optional");
      i++;
    }
    *v = tensors(list.data(), list.size());
  }

  void read_ints(Json item, Node *n, plait_value *v) {
    p_.integer_lists_.emplace_back(item.size());
    std::vector<int64_t> &list = p_.integer_lists_.back();
    size_t i = 0;
    for (const Json each : item.items()) {
      if (is_reference(each)) {
        const int32_t number = number_of(each.string());
        if (!p_.numbers_[number].is_integer)
          throw JsonError(quote(each.string()) + " is a float; an integer is expected");
        list[i] = p_.numbers_[number].integer;
        n->numbers.push_back({nullptr, &list[i], nullptr, number});
      } else {
        list[i] = each.integer();
      }
      i++;
    }
    *v = ints(list.data(), list.size());
  }

  void read_floats(Json item, Node *n, plait_value *v) {
    p_.real_lists_.emplace_back(item.size());
    std::vector<double> &list = p_.real_lists_.back();
    size_t i = 0;
    for (const Json each : item.items()) {
      if (is_reference(each)) {
        const int32_t number = number_of(each.string());
        list[i] = p_.numbers_[number].real;
        n->numbers.push_back({nullptr, nullptr, &list[i], number});
      } else {
        list[i] = float_of(each);
      }
      i++;
    }
    v->tag = PLAIT_FLOATS;
    v->n = uint32_t(list.size());
    v->u.fs = list.data();
  }

  void strings_push(std::string_view text, plait_value *v) {
    p_.strings_.emplace_back(text);
    v->tag = PLAIT_STRING;
    v->n = uint32_t(text.size());
    v->u.s = p_.strings_.back().c_str();
  }

  Program &p_;
  std::unordered_map<std::string, int32_t> names_;
};

std::unique_ptr<Program> Program::parse(plait_thread *thread, std::string_view text) {
  std::unique_ptr<Program> program(new Program);
  try {
    Parser(program.get()).read(JsonDocument::parse(text).root());
  } catch (const JsonError &e) {
    check(runtime->raise(thread, PLAIT_VALUE_ERROR, "graph", "%s", e.what()));
  }
  program->plan(thread);
  return program;
}

}  // namespace plait::graph
