#include "scope.hpp"

#include <cstdio>

namespace plait::ops {

void fail(const Scope &x, plait_status code, const std::string &text) {
  const plait_runtime *r = x.thread->runtime;
  throw Error(x.call ? r->fail(x.call, code, "%s", text.c_str())
                     : r->raise(x.thread, code, x.op->name, "%s", text.c_str()));
}

Ints::operator Dims() const { return {p_, n_}; }

Dims concat(Ints a, Ints b) {
  Dims out(a.data(), a.size());
  for (int64_t x : b) out.push(x);
  return out;
}
Dims repeat(Ints a, int64_t times) {
  Dims out;
  for (int64_t i = 0; i < times; i++)
    for (int64_t x : a) out.push(x);
  return out;
}
Dims part(Ints a, int64_t low, int64_t high) {
  const auto clip = [&](int64_t i) {
    return std::clamp<int64_t>(i < 0 ? i + a.size() : i, 0, a.size());
  };
  low = clip(low);
  return {a.data() + low, std::max<int64_t>(clip(high) - low, 0)};
}
Dims backwards(Ints a) {
  Dims out;
  for (int64_t i = a.size() - 1; i >= 0; i--) out.push(a[i]);
  return out;
}
Dims sorted(Ints a) {
  Dims out(a.data(), a.size());
  std::sort(out.data(), out.data() + out.size());
  return out;
}
void insert(Dims &d, int64_t at, int64_t value) {
  d = concat(concat(part(d, 0, at), Dims{value}), part(d, at, d.size()));
}
void pop(Dims &d, int64_t at) {
  if (at < 0) at += d.size();
  d = concat(part(d, 0, at), part(d, at + 1, d.size()));
}

namespace {
// As Python writes them: 2j, (1-2j).
std::string complex_text(double re, double im) {
  char text[64];
  std::snprintf(text, sizeof text, re == 0 ? "%.12gj" : "%+.12gj)", im);
  if (re == 0) return text;
  char real[32];
  std::snprintf(real, sizeof real, "(%.12g", re);
  return std::string(real) + text;
}
}  // namespace

std::string show(Ints a) { return text(a.data(), a.size()); }
std::string show(int64_t i) { return std::to_string(i); }
std::string show(bool b) { return b ? "True" : "False"; }
std::string show(const plait_value &v) {
  switch (v.tag) {
    case PLAIT_BOOL: return show(v.u.i != 0);
    case PLAIT_INT: return show(v.u.i);
    case PLAIT_FLOAT: return show(v.u.f);
    case PLAIT_TENSOR: return "a tensor";
    default: return complex_text(v.u.fs[0], v.u.fs[1]);
  }
}
std::string show(double f) {
  char s[32];
  std::snprintf(s, sizeof s, "%.12g", f);
  if (!std::strpbrk(s, ".enai")) std::strcat(s, ".0");
  return s;
}

}  // namespace plait::ops
