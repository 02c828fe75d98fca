// Counts the allocations of the process in 100 runs of a graph, after the first two.
#include <plait/run.h>

#include <cstdio>
#include <cstdlib>

#include "count_allocations.hpp"

int main(int argc, char **argv) {
  if (argc < 3) return 2;
  plait_run_settings settings{};
  settings.size = sizeof settings;
  settings.libraries = argv[2];
  settings.threads = argc > 3 ? uint32_t(std::atoi(argv[3])) : 1;
  plait_run *run = nullptr;
  int code = plait_run_open(argv[1], &settings, &run);
  for (uint32_t i = 0; !code && i < plait_run_count(run, PLAIT_RUN_INPUT); i++) {
    plait_run_tensor x{};
    x.size = sizeof x;
    code = plait_run_get(run, PLAIT_RUN_INPUT, i, &x);
    void *zeros = std::calloc(x.nbytes, 1);
    if (!code) code = plait_run_set(run, PLAIT_RUN_INPUT, i, zeros, x.nbytes, 0);
    std::free(zeros);
  }
  for (int i = 0; i < 2 && !code; i++) code = plait_run_execute(run);
  const long before = allocations;
  for (int i = 0; i < 100 && !code; i++) code = plait_run_execute(run);
  const long after = allocations;
  if (code)
    std::fprintf(stderr, "error %d: %s\n", code, plait_run_error(run));
  else
    std::printf("%ld %d\n", after - before, before > 0);
  plait_run_close(run);
  return code ? 1 : 0;
}
