// The runtime without Python: test_runtime.py runs every TEST of this folder in a process of its
// own.
#include "testing.hpp"

int main(int argc, char **argv) {
  rt = plait_runtime_v0();
  if (!rt || argc != 2 || !tests().count(argv[1])) return 2;
  th = rt->thread();
  try {
    tests()[argv[1]]();
  } catch (const Error &) {
    std::printf("%s\n", th->error->message);
    return 1;
  }
  return 0;
}
