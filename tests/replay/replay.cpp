// Calls operators as they were recorded, and compares every bit of what they return.
//
//   replay CALLS LIBRARY...
//
// CALLS is a file that recorder.cpp wrote in the reproducible mode, maybe on another machine; the
// libraries are loaded in the given order. Payloads of NaNs do not count. It prints what differs,
// and how many calls were the same; the exit status is 1 if one is not.
#include <cstdio>
#include <fstream>
#include <iterator>
#include <map>

#include "calls.hpp"

namespace {

using plait::Tensor;
using replay::Argument;
using replay::Bytes;
using replay::Reader;

constexpr uint64_t kReproducible = uint64_t(1) << 62;  // packages/core/cpp/kernel/settings.h

template <class Bits>
bool same_floats(const char *a, const char *b, size_t n, Bits exponent, Bits fraction) {
  for (size_t i = 0; i < n; i++) {
    Bits x, y;
    std::memcpy(&x, a + i * sizeof x, sizeof x);
    std::memcpy(&y, b + i * sizeof y, sizeof y);
    const bool nans = (x & exponent) == exponent && (x & fraction) && (y & exponent) == exponent &&
                      (y & fraction);
    if (x != y && !nans) return false;
  }
  return true;
}

bool same_bits(const plait_tensor *a, const plait_tensor *b) {
  if (!a || !b) return a == b;
  if (!plait::same(a->dl.dtype, b->dl.dtype) || a->dl.ndim != b->dl.ndim) return false;
  for (int i = 0; i < a->dl.ndim; i++)
    if (a->dl.shape[i] != b->dl.shape[i]) return false;
  const Bytes x = replay::elements(a), y = replay::elements(b);
  if (x == y) return true;
  const size_t n = x.size();
  switch (plait::key(a->dl.dtype)) {
    case plait::key(plait::dtype::float16):
      return same_floats<uint16_t>(x.data(), y.data(), n / 2, 0x7c00, 0x03ff);
    case plait::key(plait::dtype::bfloat16):
      return same_floats<uint16_t>(x.data(), y.data(), n / 2, 0x7f80, 0x007f);
    case plait::key(plait::dtype::float32):
    case plait::key(plait::dtype::complex64):
      return same_floats<uint32_t>(x.data(), y.data(), n / 4, 0x7f800000u, 0x007fffffu);
    case plait::key(plait::dtype::float64):
    case plait::key(plait::dtype::complex128):
      return same_floats<uint64_t>(x.data(), y.data(), n / 8, uint64_t(0x7ff) << 52,
                                   (uint64_t(1) << 52) - 1);
    default: return false;
  }
}

bool same_value(const plait_value &a, const plait_value &b) {
  if (a.tag != b.tag) return false;
  if (a.tag == PLAIT_TENSOR) return same_bits(a.u.t, b.u.t);
  if (a.tag != PLAIT_TENSORS) return true;
  bool same = a.n == b.n;
  for (uint32_t i = 0; i < a.n && same; i++) same = same_bits(a.u.ts[i], b.u.ts[i]);
  return same;
}

// The dtype and shape of a value that differs, for the message.
std::string shown(const plait_value &v) {
  if (v.tag != PLAIT_TENSOR || !v.u.t) return "a value of tag " + std::to_string(v.tag);
  std::string text = plait::name(v.u.t->dl.dtype);
  text += " (";
  for (int i = 0; i < v.u.t->dl.ndim; i++) text += std::to_string(v.u.t->dl.shape[i]) + ",";
  return text + ")";
}

struct Replay {
  plait_thread *thread;
  std::map<std::string, int> differing;
  int calls = 0;

  void call(Reader &from) {
    const plait_runtime *r = thread->runtime;
    const Bytes name = from.get_bytes();
    const auto form = from.get<uint32_t>();
    const plait_rng *rng = plait::role<plait_rng>(r);
    plait_generator *generator = rng->default_generator(rng->ctx);
    generator->seed = from.get<uint64_t>();
    generator->offset = from.get<uint64_t>();
    std::vector<Argument> in(from.get<uint32_t>());
    for (Argument &a : in) from.get_value(a);
    std::vector<Argument> expected(from.get<uint32_t>()), targets(expected.size());
    if (form == PLAIT_OUT)
      for (Argument &a : targets) from.get_value(a);
    for (Argument &a : expected) from.get_value(a);
    const plait_op *op = r->op(name.c_str());
    if (!op) throw std::runtime_error(name + ": no library defines this operator");
    std::vector<Argument> written(in.size());
    for (size_t i = 0; i < in.size(); i++)
      if (plait_arg_at(op, i)->flags & PLAIT_ARG_WRITES) from.get_value(written[i]);

    std::vector<plait_value> values, out(expected.size() + 1, plait::none());
    for (const Argument &a : in) values.push_back(a.value);
    if (form == PLAIT_INPLACE) out[0] = plait::value(Tensor(in[0].tensor).release());
    if (form == PLAIT_OUT)
      for (size_t i = 0; i < targets.size(); i++)
        out[i] = plait::value(Tensor(targets[i].tensor).release());
    calls++;
    const plait_status status =
        plait::try_call(thread, op, values.data(), values.size(), out.data(), form);
    if (status < 0) {
      report(name, thread->error ? thread->error->message : "failed");
      r->clear(thread);
    } else {
      for (size_t i = 0; i < expected.size(); i++)
        if (!same_value(out[i], expected[i].value))
          report(name, "result " + std::to_string(i) + ", " + shown(expected[i].value));
      for (size_t i = 0; i < in.size(); i++)
        if (written[i].value.tag != PLAIT_NONE && !same_value(in[i].value, written[i].value))
          report(name, "argument " + std::to_string(i) + ", " + shown(written[i].value));
    }
    for (plait_value &v : out) r->release_value(&v);
  }

  void report(const std::string &name, const std::string &subject) {
    if (differing[name]++ < 3)
      std::printf("call %d, %s: %s\n", calls, name.c_str(), subject.c_str());
  }
};

}  // namespace

int main(int argc, char **argv) {
  const plait_runtime *runtime = plait_runtime_v0();
  if (!runtime || argc < 3) {
    std::fprintf(stderr, "%s\n", runtime ? "replay CALLS LIBRARY..." : plait_runtime_refusal());
    return 2;
  }
  Replay replay{runtime->thread(), {}};
  try {
    for (int i = 2; i < argc; i++) plait::check(runtime->load(replay.thread, argv[i]));
    *runtime->settings |= kReproducible;
    std::ifstream file(argv[1], std::ios::binary);
    const Bytes bytes{std::istreambuf_iterator<char>(file), {}};
    Reader from(replay.thread, bytes.data(), bytes.data() + bytes.size());
    while (!from.done()) replay.call(from);
  } catch (const plait::Error &) {
    const plait_error *error = replay.thread->error;
    std::fprintf(stderr, "%s\n", error ? error->message : "failed");
    return 2;
  } catch (const std::exception &error) {
    std::fprintf(stderr, "%s\n", error.what());
    return 2;
  }
  for (const auto &[name, n] : replay.differing) std::printf("%s: %d differ\n", name.c_str(), n);
  std::printf("%d calls, %zu operators differ\n", replay.calls, replay.differing.size());
  return replay.calls == 0 || !replay.differing.empty();
}
