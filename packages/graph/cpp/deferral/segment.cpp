#include "deferral/segment.hpp"

#include <algorithm>
#include <map>
#include <set>
#include <unordered_map>
#include <unordered_set>

#include "text.hpp"

namespace plait::graph {
namespace {

std::string name_of(int32_t place) { return "p" + std::to_string(place); }

TensorType type_of(const PlaceType &t) {
  const auto n = t.sizes.begin() + t.ndim;
  return {t.dtype, {kDLCPU, 0}, {t.sizes.begin(), n}, {n, t.sizes.end()}};
}

// The bytes from the first element of a place; false if it has none.
bool extent_of(const Place &p, int64_t *below, int64_t *above) {
  return p.type.numel() > 0 && extent(type_of(p.type), below, above);
}

}  // namespace

// Writes the graph. A storage has one input or result; what lies within is a view of that. Other
// places of a storage from elsewhere are further inputs, as long as nothing is written there.
class Segment::Writer {
 public:
  Writer(Segment *segment, PlaceTensors *tensors) : segment_(*segment), tensors_(tensors) {}

  bool write(const std::vector<CallNode *> &calls) {
    first_made_ = calls.front()->first_storage;
    for (const CallNode *call : calls) {
      for (const Write &each : call->writes) written_.push_back(place(each.place).storage);
      if (!call->is_identity) add(*call);
    }
    for (const uint32_t storage : several_)
      is_possible_ &= std::find(written_.begin(), written_.end(), storage) == written_.end();
    std::string outputs;
    size_t i = 0;
    for (const CallNode *call : calls)
      for (uint32_t s = call->first_new_storage; s < call->end_storage; s++) {
        if (!segment_.alive_[i++]) continue;
        const auto known = bases_.find(s);
        is_possible_ &= known != bases_.end();
        if (!is_possible_) return false;
        outputs += (outputs.empty() ? "\"%" : ", \"%") + name_of(known->second) + "\"";
        segment_.outputs_.push_back(known->second);
      }
    segment_.text_ = "{\"plait_graph\": 1,\n\"inputs\": [" + inputs_ +
                     "],\n\"weights\": [],\n\"numbers\": [" + numbers_ + "],\n\"nodes\": [" +
                     nodes_ + "],\n\"outputs\": [" + outputs + "]}";
    return is_possible_;
  }

 private:
  const Place &place(int32_t p) const { return tensors_->place(p); }

  // Whether `p` is a view of `base` within its extent, which can be written as a node.
  bool is_within(const Place &p, const Place &base) const {
    int64_t below = 0, above = 0, base_below = 0, base_above = 0;
    const int64_t distance = p.offset - base.offset;
    if (!extent_of(p, &below, &above) || !extent_of(base, &base_below, &base_above)) return false;
    return same(p.type.dtype, base.type.dtype) && distance >= 0 &&
           distance % itemsize(p.type.dtype) == 0 && distance + below >= base_below &&
           distance + above <= base_above;
  }

  std::string reference(int32_t p) {
    if (p < 0) return "null";
    const std::string result = "\"%" + name_of(p) + "\"";
    if (!named_.insert(p).second) return result;
    const Place &at = place(p);
    is_possible_ &= !(at.type.flags & PLAIT_TENSOR_WRAPPED_NUMBER);
    const auto known = bases_.find(at.storage);
    if (known != bases_.end() && is_within(at, place(known->second))) {
      const Place &base = place(known->second);
      const int64_t offset = (at.offset - base.offset) / itemsize(at.type.dtype);
      add_node("{\"op\": \"as_strided\", \"in\": [\"%" + name_of(known->second) + "\", " +
               ints_text(at.type.sizes.data(), at.type.ndim) + ", " +
               ints_text(at.type.sizes.data() + at.type.ndim, at.type.ndim) + ", " +
               std::to_string(offset) + "], \"out\": [" + result + "]}");
      return result;
    }
    if (at.storage >= first_made_ && known != bases_.end() && is_made_[at.storage]) {
      is_possible_ = false;
      return result;
    }
    if (known == bases_.end())
      bases_.emplace(at.storage, p);
    else
      several_.push_back(at.storage);
    segment_.inputs_.push_back(p);
    inputs_ += (inputs_.empty() ? "" : ",\n") + value_text(name_of(p), tensors_->at(p));
    return result;
  }

  std::string argument(const Argument &a) {
    if (a.value.tag == PLAIT_TENSOR) return reference(a.places[0]);
    if (a.value.tag == PLAIT_TENSORS) {
      std::string text = "[";
      for (size_t k = 0; k < a.places.size(); k++) text += (k ? ", " : "") + reference(a.places[k]);
      return text + "]";
    }
    if (!a.varies) return scalar_text(a.value);
    if (a.value.tag != PLAIT_INTS) return number(a.value);
    std::string text = "[";
    for (uint32_t k = 0; k < a.value.n; k++)
      text += (k ? ", " : "") + number(value(a.value.u.is[k]));
    return text + "]";
  }

  std::string number(const plait_value &v) {
    const std::string name = "n" + std::to_string(n_numbers_++);
    numbers_ += std::string(numbers_.empty() ? "" : ", ") + "{\"name\": \"" + name +
                "\", \"value\": " + scalar_text(v) + "}";
    return "\"%" + name + "\"";
  }

  std::string result(const Result &r) {
    if (r.is_argument) return reference(r.place);
    if (!r.is_new) return "null";
    const Place &p = place(r.place);
    named_.insert(r.place);
    bases_.emplace(p.storage, r.place);
    is_made_[p.storage] = true;
    return "\"%" + name_of(r.place) + "\"";
  }

  void add(const CallNode &call) {
    std::string in, out;
    for (size_t i = 0; i < call.in.size(); i++) in += (i ? ", " : "") + argument(call.in[i]);
    for (size_t i = 0; i < call.targets.size(); i++)
      out += (i ? ", " : "") + reference(call.targets[i]);
    for (size_t i = 0; i < call.results.size(); i++) {
      std::string text;
      for (const Result &each : call.results[i]) text += (text.empty() ? "" : ", ") + result(each);
      out += (i ? ", " : "") + (call.is_list[i] ? "[" + text + "]" : text);
    }
    const char *form = call.form == PLAIT_INPLACE ? ", \"form\": \"inplace\""
                       : call.form == PLAIT_OUT   ? ", \"form\": \"out\""
                                                  : "";
    add_node("{\"op\": " + string_text(call.op->name) + form + ", \"in\": [" + in +
             "], \"out\": [" + out + "]}");
  }

  void add_node(const std::string &text) { nodes_ += (nodes_.empty() ? "" : ",\n") + text; }

  Segment &segment_;
  PlaceTensors *tensors_;
  bool is_possible_ = true;
  uint32_t first_made_ = 0;
  uint32_t n_numbers_ = 0;
  std::string inputs_, numbers_, nodes_;
  std::unordered_set<int32_t> named_;
  std::unordered_map<uint32_t, int32_t> bases_;  // by storage
  std::unordered_map<uint32_t, bool> is_made_;
  std::vector<uint32_t> written_, several_;  // storages
};

void Segment::count_writes(const std::vector<CallNode *> &calls, const PlaceTensors &places) {
  std::map<uint32_t, uint64_t> counts;
  std::set<uint32_t> dead;
  size_t i = 0;
  for (const CallNode *call : calls) {
    draws_ |= call->draws != 0;
    for (uint32_t s = call->first_new_storage; s < call->end_storage; s++)
      if (alive_[i++])
        counts[s] += 1;  // the result is written as a target
      else
        dead.insert(s);
    for (const Write &each : call->writes) {
      const uint32_t s = places.place(each.place).storage;
      if (!dead.count(s)) counts[s] += each.versions;
    }
  }
  counts_.assign(counts.begin(), counts.end());
}

void Segment::compile(plait_thread *thread, const std::vector<CallNode *> &calls,
                      PlaceTensors *tensors) {
  if (!Writer(this, tensors).write(calls)) return;
  try {
    program_ = Program::parse(thread, text_);
  } catch (const Error &) {
    runtime->clear(thread);
    return;
  }
  std::set<int32_t> memories;
  for (size_t i = 0; i < outputs_.size(); i++) {
    const int32_t memory = program_->output_memory(i);
    const TensorType *planned = program_->output_type(i);
    const PlaceType &wanted = tensors->place(outputs_[i]).type;
    const auto n = wanted.sizes.begin() + wanted.ndim;
    const bool fits =
        planned && memory >= 0 && memories.insert(memory).second &&
        same(planned->dtype, wanted.dtype) && planned->shape.size() == size_t(wanted.ndim) &&
        std::equal(planned->shape.begin(), planned->shape.end(), wanted.sizes.begin()) &&
        (wanted.numel() == 0 || std::equal(planned->strides.begin(), planned->strides.end(), n));
    if (fits) continue;
    program_.reset();
    return;
  }
}

void Segment::run(plait_thread *thread, const std::vector<plait_value> &numbers,
                  PlaceTensors *tensors) {
  std::vector<plait_tensor *> inputs, outputs;
  for (const int32_t p : inputs_) inputs.push_back(tensors->at(p));
  for (const int32_t p : outputs_) outputs.push_back(tensors->at(p));
  for (size_t i = 0; i < numbers.size(); i++) {
    Number &n = program_->numbers()[i];
    n.integer = n.is_integer ? numbers[i].u.i : 0;
    n.real = n.is_integer ? double(n.integer) : numbers[i].u.f;
  }
  program_->run_into(thread, inputs.data(), inputs.size(), outputs.data());
}

}  // namespace plait::graph
