// Groups of a program without Python, whose members are threads: they open by a name, run
// collectives at once with works and messages, split, and abort. Arguments: libplait_abi,
// libplait_multiprocessing. Prints how many shared storages are left.
#include <dlfcn.h>
#include <shared.h>

#include <plait/plait.hpp>

#include <unistd.h>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <thread>
#include <vector>

namespace {

const plait_runtime *runtime;
const plait_collectives *table;
constexpr uint32_t members = 3;

[[noreturn]] void fail(const char *subject) {
  const plait_error *e = runtime->thread()->error;
  std::printf("%s: %s\n", subject, e ? e->message : "");
  std::exit(1);
}
void need(plait_status s, const char *subject) {
  if (s != PLAIT_OK) fail(subject);
}

struct Numbers {
  plait::Tensor t;
  explicit Numbers(int64_t n, int64_t first = 0) {
    need(runtime->tensor_new(runtime->thread(), plait::dtype::int64, 1, &n, nullptr, {kDLCPU, 0},
                             t.out()),
         "tensor_new");
    for (int64_t i = 0; i < n; i++) t.data<int64_t>()[i] = first + i;
  }
  void expect(int64_t first, int64_t step, const char *subject) const {
    for (int64_t i = 0; i < t.numel(); i++)
      if (t.data<int64_t>()[i] != first + step * i) fail(subject);
  }
};

plait_status start(plait_communicator *c, uint32_t kind, plait_tensor *in, plait_tensor *out,
                   uint32_t peer = 0, int64_t tag = 0, plait_work **work = nullptr) {
  plait_collective call{};
  call.size = sizeof call;
  call.kind = kind;
  call.in = &in;
  call.out = &out;
  call.n_in = in != nullptr;
  call.n_out = out != nullptr;
  call.peer = peer;
  call.tag = tag;
  return table->start(table->ctx, runtime->thread(), c, &call, nullptr, work);
}

void finish(plait_work *w) {
  need(table->wait(table->ctx, runtime->thread(), w), "wait");
  plait_release(w);
}

void exchange(plait_communicator *c) {
  const uint32_t next = (c->rank + 1) % c->size, before = (c->rank + c->size - 1) % c->size;
  for (int round = 0; round < 20; round++) {
    const int64_t n = round % 5 == 4 ? 100'000 : 10 + round;
    Numbers x(n, c->rank), y(n, 2 * c->rank), sent(n, c->rank), got(n);
    plait_work *works[4];
    need(start(c, PLAIT_ALL_REDUCE, x.t.get(), x.t.get(), 0, 0, &works[0]), "all_reduce");
    need(start(c, PLAIT_SEND, sent.t.get(), nullptr, next, round % 3, &works[1]), "send");
    need(start(c, PLAIT_ALL_REDUCE, y.t.get(), y.t.get(), 0, 0, &works[2]), "all_reduce");
    need(start(c, PLAIT_RECEIVE, nullptr, got.t.get(), before, round % 3,
               round % 2 ? &works[3] : nullptr),
         "recv");
    for (int i = round % 2 ? 3 : 2; i >= 0; i--) finish(works[i]);
    const int64_t ranks = c->size * (c->size - 1) / 2;
    x.expect(ranks, c->size, "first sum");
    y.expect(2 * ranks, c->size, "second sum");
    got.expect(before, 1, "message");
  }
}

void work(uint32_t rank) {
  const std::string where = "shm:threads-" + std::to_string(getpid());
  plait_thread *thread = runtime->thread();
  plait_communicator *all = nullptr, *part = nullptr;
  for (int turn = 0; turn < 3; turn++) {
    need(table->open(table->ctx, thread, where.c_str(), rank, members, 60, &all), "open");
    exchange(all);
    need(table->split(table->ctx, thread, all, rank == 1 ? -1 : 0, -int64_t(rank), &part), "split");
    if ((part == nullptr) != (rank == 1)) fail("part");
    if (part) exchange(part);
    plait_release(part);
    Numbers x(5);
    if (rank == 0) table->abort(table->ctx, all, "it is enough");
    while (start(all, PLAIT_ALL_REDUCE, x.t.get(), x.t.get()) == PLAIT_OK) {
    }
    if (!std::strstr(thread->error->message, "aborted the group: it is enough")) fail("abort");
    runtime->clear(thread);
    plait_release(all);
  }
}

}  // namespace

int main(int, char **path) {
  void *library = dlopen(path[1], RTLD_NOW | RTLD_GLOBAL);
  if (!library) return std::printf("%s\n", dlerror()), 1;
  runtime = reinterpret_cast<const plait_runtime *(*)()>(dlsym(library, "plait_runtime_v0"))();
  if (runtime->load(runtime->thread(), path[2]) < 0) fail("load");
  table = reinterpret_cast<const plait_collectives *>(
      runtime->provider("communicator", "shared_memory", kDLCPU));
  if (!table) return std::printf("no provider\n"), 1;
  std::vector<std::thread> threads;
  for (uint32_t rank = 0; rank < members; rank++) threads.emplace_back(work, rank);
  for (std::thread &t : threads) t.join();
  plait_shared_stats stats;
  for (int i = 0; i < 500; i++) {  // threads of the last works end by themselves
    plait_shared_get_stats(&stats);
    if (!stats.storages) break;
    usleep(10000);
  }
  std::printf("%llu left\n", static_cast<unsigned long long>(stats.storages));
}
