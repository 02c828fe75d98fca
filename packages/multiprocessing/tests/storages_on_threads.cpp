// Threads that make, name, find and drop shared storages at once, in a program without Python.
// Arguments: libplait_abi, libplait_multiprocessing. Prints how many storages are left.
#include <dlfcn.h>
#include <shared.h>

#include <plait/plait.hpp>

#include <cstdio>
#include <cstdlib>
#include <mutex>
#include <random>
#include <thread>
#include <vector>

namespace {

const plait_runtime *runtime;
std::mutex mutex;
std::vector<plait_block_name> inbox;  // messages on their way

[[noreturn]] void fail(const char *subject) {
  const plait_error *e = runtime->thread()->error;
  std::printf("%s: %s\n", subject, e ? e->message : "");
  std::exit(1);
}

void put(const plait_storage *s) {
  plait_block_name name;
  if (plait_shared_send(runtime->thread(), s, &name) < 0) fail("send");
  const std::lock_guard<std::mutex> lock(mutex);
  inbox.push_back(name);
}

bool get(size_t which, plait_storage **out) {
  plait_block_name name;
  {
    const std::lock_guard<std::mutex> lock(mutex);
    if (inbox.empty()) return false;
    name = inbox[which % inbox.size()];
    inbox[which % inbox.size()] = inbox.back();
    inbox.pop_back();
  }
  if (plait_shared_receive(runtime->thread(), &name, out) < 0) fail("receive");
  if (*static_cast<uint64_t *>((*out)->data) != 0x1234) fail("other bytes");
  return true;
}

void work(unsigned seed) {
  std::mt19937 random(seed);
  std::vector<plait_storage *> held;
  for (int i = 0; i < 20000; i++) {
    plait_storage *s = nullptr;
    switch (random() % 4) {
      case 0:
        if (plait_shared_create(runtime->thread(), 8 + random() % 3 * 100, &s) < 0) fail("create");
        *static_cast<uint64_t *>(s->data) = 0x1234;
        put(s);
        held.push_back(s);
        break;
      case 1:
        if (get(random(), &s)) held.push_back(s);
        break;
      case 2:
        if (!held.empty()) put(held[random() % held.size()]);
        break;
      default:
        for (int k = 0; k < 2 && !held.empty(); k++) {
          std::swap(held[random() % held.size()], held.back());
          plait_release(held.back());
          held.pop_back();
        }
    }
  }
  for (plait_storage *s : held) plait_release(s);
}

}  // namespace

int main(int, char **path) {
  void *library = dlopen(path[1], RTLD_NOW | RTLD_GLOBAL);
  if (!library) return std::printf("%s\n", dlerror()), 1;
  auto *start = reinterpret_cast<const plait_runtime *(*)()>(dlsym(library, "plait_runtime_v0"));
  runtime = start();
  if (runtime->load(runtime->thread(), path[2]) < 0) fail("load");
  std::vector<std::thread> threads;
  for (unsigned i = 0; i < 4; i++) threads.emplace_back(work, i + 1);
  for (std::thread &t : threads) t.join();
  for (plait_storage *s = nullptr; get(0, &s);) plait_release(s);
  plait_shared_stats stats;
  plait_shared_get_stats(&stats);
  std::printf("%llu left\n", static_cast<unsigned long long>(stats.storages));
}
