#include "host/library.h"

#include <dlfcn.h>
#include <cstring>
#include <string>

#include "driver/driver.h"

namespace plait::cuda {

void *open_library(std::initializer_list<LibraryFile> versions, const char *choice) {
  if (choice && strcmp(choice, "0") == 0) return nullptr;
  const auto open = [](const std::string &path, int flags = 0) {
    return dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL | flags);
  };
  const std::string here = driver::folder();
  if (driver::emulated()) return open(here + "../emulation/" + versions.begin()->name);
  for (const LibraryFile &each : versions) {
    if (void *library = open(each.name, RTLD_NOLOAD)) return library;
    if (void *library = open(here + "../../nvidia/" + each.folder + "/" + each.name))
      return library;
  }
  for (const LibraryFile &each : versions)
    if (void *library = open(each.name)) return library;
  return nullptr;
}

bool look_up(void *library, std::initializer_list<LibraryFunction> functions) {
  for (const LibraryFunction &each : functions) {
    void *const function = dlsym(library, each.name);
    if (!function) return false;
    memcpy(each.to, &function, sizeof function);
  }
  return true;
}

}  // namespace plait::cuda
