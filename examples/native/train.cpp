// Trains a small network without Python: the kernels, the operators and the engine are the same
// libraries that the Python packages load. It learns XOR and prints the loss; the exit status says
// whether it has learned it.
//
//   c++ -std=c++17 -O2 $(pkg-config --cflags plait-abi) train.cpp $(pkg-config --libs plait-abi) -o
//   train
//   ./train PATHS   of libplait_ops.so libplait_core.so libplait_cpu_base.so libplait_autograd.so
//
// docs/guides/native.md has the commands with the paths.
#include <plait/plait.hpp>

#include <cmath>
#include <cstdio>
#include <vector>

using plait::Dims;
using plait::Operator;
using plait::Tensor;
using plait::value;

namespace {

struct Session {
  const plait_runtime *runtime;
  plait_thread *thread;
  const plait_engine *engine() const { return plait::role<plait_engine>(thread->runtime); }
};

Tensor matrix(const Session &s, int64_t rows, int64_t columns, const std::vector<float> &values) {
  Tensor t;
  const Dims shape{rows, columns};
  plait::check(s.runtime->tensor_new(s.thread, plait::dtype::float32, 2, shape.data(), nullptr,
                                     {kDLCPU, 0}, t.out()));
  for (int64_t i = 0; i < rows * columns; i++)
    t.data<float>()[i] = values[size_t(i) % values.size()];
  return t;
}

Tensor parameter(const Session &s, int64_t rows, int64_t columns, uint32_t seed) {
  std::vector<float> values;
  for (int64_t i = 0; i < rows * columns;
       i++) {  // a small linear congruential generator is random enough here
    seed = seed * 1664525u + 1013904223u;
    values.push_back(float(seed >> 8) / float(1u << 24) * 2 - 1);
  }
  Tensor t = matrix(s, rows, columns, values);
  plait::check(s.engine()->set_requires_grad(s.engine()->ctx, s.thread, t.get(), 1));
  return t;
}

struct Network {
  explicit Network(const Session &s)
      : w1(parameter(s, 2, 8, 1)),
        b1(parameter(s, 1, 8, 2)),
        w2(parameter(s, 8, 1, 3)),
        b2(parameter(s, 1, 1, 4)) {}
  Tensor w1, b1, w2, b2;
  std::vector<Tensor *> parameters() { return {&w1, &b1, &w2, &b2}; }
};

Tensor loss_of(const Session &s, const Network &net, const Tensor &x, const Tensor &target) {
  const Operator mm(s.runtime, "mm"), add(s.runtime, "add"), tanh(s.runtime, "tanh"),
      sub(s.runtime, "sub");
  const Operator mul(s.runtime, "mul"), mean(s.runtime, "mean");
  plait_thread *t = s.thread;
  const Tensor hidden = tanh(t, add(t, mm(t, x, net.w1), net.b1));
  const Tensor error = sub(t, add(t, mm(t, hidden, net.w2), net.b2), target);
  return mean(t, mul(t, error, error));
}

// p -= rate * p.grad, unrecorded, and the gradient is forgotten
void descend(const Session &s, Tensor &p, double rate) {
  const plait_engine *e = s.engine();
  const Operator add(s.runtime, "add");
  Tensor grad;
  plait::check(e->grad(e->ctx, s.thread, p.get(), grad.out()));
  const plait_value in[] = {value(p), value(grad), value(-rate)};
  plait_value out = value(Tensor(p).release());
  plait::call(s.thread, add.get(), in, 3, &out, PLAIT_INPLACE);
  s.runtime->release_value(&out);
  plait::check(e->set_grad(e->ctx, s.thread, p.get(), nullptr));
}

double train(const Session &s) {
  const Tensor x = matrix(s, 4, 2, {0, 0, 0, 1, 1, 0, 1, 1}),
               target = matrix(s, 4, 1, {0, 1, 1, 0});
  Network net(s);
  const plait_engine *e = s.engine();
  double last = 0;
  for (int step = 0; step <= 2000; step++) {
    const Tensor loss = loss_of(s, net, x, target);
    last = double(*loss.data<float>());
    if (step % 500 == 0) std::printf("step %4d  loss %.6f\n", step, last);
    plait_tensor *root = loss.get(), *ones = nullptr;
    plait::check(e->backward(e->ctx, s.thread, &root, &ones, 1, nullptr, 0, 0, nullptr));
    e->set_enabled(e->ctx, s.thread, 0);
    for (Tensor *p : net.parameters()) descend(s, *p, 0.1);
    e->set_enabled(e->ctx, s.thread, 1);
  }
  return last;
}

}  // namespace

int main(int argc, char **argv) {
  const plait_runtime *runtime = plait_runtime_v0();
  if (!runtime) {
    std::fprintf(stderr, "%s\n", plait_runtime_refusal());
    return 2;
  }
  const Session s{runtime, runtime->thread()};
  try {
    for (int i = 1; i < argc; i++) plait::check(runtime->load(s.thread, argv[i]));
    if (!s.engine())
      plait::check(
          runtime->raise(s.thread, PLAIT_ERROR, "train", "no engine: load libplait_autograd.so"));
    const double loss = train(s);
    return std::isfinite(loss) && loss < 0.01 ? 0 : 1;
  } catch (const plait::Error &) {
    std::fprintf(stderr, "%s\n", s.thread->error ? s.thread->error->message : "failed");
    return 2;
  }
}
