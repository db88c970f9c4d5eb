// Functions that GCC's static libraries take from glibc since 2.35 and 2.36, so that what is built
// on Debian 12 runs on systems with glibc 2.34 too. Compiled where nothing but glibc may be needed
// (NEUROSHARD_SELF_CONTAINED), and taken before glibc's own by the linker's -u (preset portable).
// Hidden: the rest of a process keeps glibc's.
#include <dlfcn.h>
#include <link.h>
#include <sys/random.h>

#include <cstdint>
#include <cstdlib>

namespace {

/// The object that an address lies in.
struct ObjectSearch {
  ElfW(Addr) address = 0;
  ElfW(Addr) exception_table = 0;  ///< its PT_GNU_EH_FRAME; 0 if it has none
  bool found = false;
};

int visit_object(dl_phdr_info* object, std::size_t, void* data) {
  ObjectSearch& search = *static_cast<ObjectSearch*>(data);
  ElfW(Addr) exception_table = 0;
  for (int i = 0; i < object->dlpi_phnum; ++i) {
    const ElfW(Phdr)& segment = object->dlpi_phdr[i];
    const ElfW(Addr) start = object->dlpi_addr + segment.p_vaddr;
    if (segment.p_type == PT_LOAD && search.address - start < segment.p_memsz) search.found = true;
    if (segment.p_type == PT_GNU_EH_FRAME) exception_table = start;
  }
  if (search.found) search.exception_table = exception_table;
  return search.found ? 1 : 0;
}

}  // namespace

extern "C" {

/// libgcc's unwinder, whenever an exception is thrown: where the exception table of the object at
/// an address is, the one field of the result that it reads on x86-64; -1 if there is none.
__attribute__((visibility("hidden"))) int _dl_find_object(void* address,
                                                          dl_find_object* result) noexcept {
  ObjectSearch search;
  search.address = reinterpret_cast<ElfW(Addr)>(address);
  dl_iterate_phdr(visit_object, &search);
  if (search.exception_table == 0) return -1;
  // NOLINTNEXTLINE(performance-no-int-to-ptr): addresses of segments are numbers
  result->dlfo_eh_frame = reinterpret_cast<void*>(search.exception_table);
  return 0;
}

/// libstdc++'s std::random_device, which nothing here uses but which is linked with its strings.
__attribute__((visibility("hidden"))) std::uint32_t arc4random() noexcept {
  std::uint32_t value = 0;
  if (getrandom(&value, sizeof(value), 0) != sizeof(value)) std::abort();
  return value;
}

}  // extern "C"
