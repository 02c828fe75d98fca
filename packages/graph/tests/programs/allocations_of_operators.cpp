// Counts the allocations in runs of many graphs, after the first three of each. Standard input has
// the names of files, a line each: the graph in NAME, its inputs in NAME.0, NAME.1 and so on.
#include <plait/run.h>

#include <cstdio>
#include <fstream>
#include <iostream>
#include <iterator>
#include <string>
#include <vector>

#include "count_allocations.hpp"

namespace {

std::vector<char> bytes_of(const std::string &path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

// Whether the shapes of all outputs are known before a run.
bool has_fixed_shapes(plait_run *run) {
  for (uint32_t i = 0; i < plait_run_count(run, PLAIT_RUN_OUTPUT); i++) {
    plait_run_tensor y{};
    y.size = sizeof y;
    if (plait_run_get(run, PLAIT_RUN_OUTPUT, i, &y) || y.ndim < 0) return false;
  }
  return true;
}

void count(const std::string &name, const plait_run_settings &settings) {
  plait_run *run = nullptr;
  int code = plait_run_open(name.c_str(), &settings, &run);
  for (uint32_t i = 0; !code && i < plait_run_count(run, PLAIT_RUN_INPUT); i++) {
    const std::vector<char> data = bytes_of(name + "." + std::to_string(i));
    code = plait_run_set(run, PLAIT_RUN_INPUT, i, data.data(), data.size(), 0);
  }
  const bool is_fixed = !code && has_fixed_shapes(run);
  for (int i = 0; i < 3 && !code; i++) code = plait_run_execute(run);
  const long before = allocations;
  for (int i = 0; i < 5 && !code; i++) code = plait_run_execute(run);
  const long after = allocations;
  if (code)
    std::printf("%s error %s\n", name.c_str(), plait_run_error(run));
  else
    std::printf("%s %s %ld\n", name.c_str(), is_fixed ? "fixed" : "varying", after - before);
  plait_run_close(run);
}

}  // namespace

int main(int, char **argv) {
  plait_run_settings settings{};
  settings.size = sizeof settings;
  settings.libraries = argv[1];
  settings.threads = 2;
  for (std::string name; std::getline(std::cin, name);) count(name, settings);
}
