// A library to preload (LD_PRELOAD): lists the places where a program asks the system for
// something, or lets the request at one of them fail. `fault_injection.py` drives it.
//
// A place is the kind of request and the innermost return addresses that lie in the executable
// itself, relative to where it was loaded: the same in every run, and what libraries ask for on the
// program's behalf counts as the program's. What is asked for before main is left alone: a constant
// of the program or of CLI11 that finds no memory there ends the process, which has done nothing
// yet.
//
//   FAULT_LIST=file   appends a line for each place when it is first reached: kind, place, frames
//                     ("module+offset", a library's with "=name", innermost first), separated by
//                     tabs
//   FAULT_KIND, FAULT_AT=place (hexadecimal): the request at this place fails when first reached
//   FAULT_HOW=error   the number for errno; -1: no error, but half of the bytes are read or
//   written;
//                     a clock that is set (kind "clock") has no error, but jumps by a day
//   FAULT_STAYS=1     later requests of the same kind fail too
//   FAULT_MARK=file   is made when a request has failed
//   FAULT_DEPTH=n     return addresses that tell places of memory apart (3); other requests have 6
// The C library's functions under their own names, some reserved, with parameters that are words;
// addresses are numbers where they are compared.
// NOLINTBEGIN(readability-inconsistent-declaration-parameter-name,bugprone-reserved-identifier,performance-no-int-to-ptr)

#include <dirent.h>
#include <dlfcn.h>
#include <fcntl.h>
#include <link.h>
#include <pthread.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/uio.h>
#include <unistd.h>
#include <unwind.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <cstdarg>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <string_view>

// glibc's own names of what is replaced below.
extern "C" void* __libc_malloc(std::size_t);
extern "C" void* __libc_calloc(std::size_t, std::size_t);
extern "C" void* __libc_realloc(void*, std::size_t);
extern "C" void* __libc_memalign(std::size_t, std::size_t);

namespace {

constexpr int kMostFrames = 48;
constexpr int kOtherDepth = 6;
constexpr std::size_t kPlaces = std::size_t{1} << 17;  ///< slots of the table; a power of two
constexpr int kHalf = -1;                              ///< of the bytes, instead of an error
constexpr std::time_t kJump = 24 * 60 * 60;            ///< of a clock that is set

enum class Mode { off, list, fail };

Mode mode = Mode::off;
std::string_view wanted_kind;
std::uint64_t wanted_place = 0;
int how = 0;
bool stays = false;
int depth_of_memory = 3;
int list_descriptor = -1;
const char* mark_path = nullptr;
std::uintptr_t program_base = 0;
std::uintptr_t program_begin = 0;  ///< of what can be run
std::uintptr_t program_end = 0;
std::array<std::atomic<std::uint64_t>, kPlaces> seen;

/// The program's own main, and whether it has begun.
int (*program_main)(int, char**, char**) = nullptr;
std::atomic<bool> is_in_main = false;

/// In memory that forked processes share: what fails once does so in one of them.
std::atomic<bool>* has_failed = nullptr;

/// What is asked for while it is set is let through. Its model takes no allocation of its own.
thread_local bool inside __attribute__((tls_model("initial-exec"))) = false;

bool is_in_program(std::uintptr_t address) {
  return address >= program_begin && address < program_end;
}

struct Stack {
  std::array<std::uintptr_t, kMostFrames> addresses;
  std::size_t count = 0;
  int in_program = 0;
  int depth = 0;  ///< `in_program` at which enough is known
};

_Unwind_Reason_Code add_frame(_Unwind_Context* context, void* stack_pointer) {
  Stack& stack = *static_cast<Stack*>(stack_pointer);
  const std::uintptr_t address = _Unwind_GetIP(context);
  if (address == 0 || stack.count == stack.addresses.size()) return _URC_END_OF_STACK;
  stack.addresses[stack.count++] = address;
  if (is_in_program(address)) ++stack.in_program;
  return stack.in_program == stack.depth ? _URC_END_OF_STACK : _URC_NO_REASON;
}

/// FNV-1a over the kind and the program's addresses; never 0.
std::uint64_t place_of(std::string_view kind, const Stack& stack) {
  std::uint64_t hash = 0xcbf29ce484222325ULL;
  const auto add = [&](std::uint64_t byte) { hash = (hash ^ byte) * 0x100000001b3ULL; };
  for (const char c : kind) add(static_cast<unsigned char>(c));
  for (std::size_t i = 0; i < stack.count; ++i) {
    if (!is_in_program(stack.addresses[i])) continue;
    for (std::uint64_t left = stack.addresses[i] - program_base; left != 0; left >>= 8) {
      add(left & 0xff);
    }
  }
  return hash | 1;
}

bool is_first_time(std::uint64_t place) {
  for (std::size_t i = place & (kPlaces - 1);; i = (i + 1) & (kPlaces - 1)) {
    std::uint64_t found = 0;
    if (seen[i].compare_exchange_strong(found, place)) return true;
    if (found == place) return false;
  }
}

/// Adds a line in one write: those of several threads and processes stay whole.
void list(std::string_view kind, std::uint64_t place, const Stack& stack) {
  std::array<char, 4096> line;
  std::size_t size = 0;
  const auto add = [&](const char* format, auto... values) {
    const int added = std::snprintf(line.data() + size, line.size() - size, format, values...);
    size = std::min(size + static_cast<std::size_t>(added), line.size() - 2);
  };
  add("%.*s\t%016llx\t", static_cast<int>(kind.size()), kind.data(),
      static_cast<unsigned long long>(place));
  for (std::size_t i = 0; i < stack.count; ++i) {
    const std::uintptr_t address = stack.addresses[i];
    Dl_info info{};
    const bool is_known = dladdr(reinterpret_cast<void*>(address), &info) != 0;
    const char* path = is_known && info.dli_fname != nullptr ? info.dli_fname : "?";
    const char* slash = std::strrchr(path, '/');
    add("%s%s+%llx", i == 0 ? "" : " ",
        is_in_program(address) ? "program" : (slash != nullptr ? slash + 1 : path),
        static_cast<unsigned long long>(
            address - (is_known ? reinterpret_cast<std::uintptr_t>(info.dli_fbase) : 0)));
    if (!is_in_program(address) && is_known && info.dli_sname != nullptr) {
      add("=%s", info.dli_sname);
    }
  }
  line[size++] = '\n';
  (void)!::write(list_descriptor, line.data(), size);
}

void leave_mark() {
  if (mark_path == nullptr) return;
  const int descriptor = ::open(mark_path, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
  if (descriptor >= 0) ::close(descriptor);
}

/// Whether this request is one that fails. Leaves errno as it was.
bool must_fail(std::string_view kind) {
  if (mode == Mode::off || inside || !is_in_main.load(std::memory_order_relaxed)) return false;
  if (mode == Mode::fail) {
    if (kind != wanted_kind) return false;
    if (!stays && has_failed->load(std::memory_order_relaxed)) return false;
  }
  inside = true;
  const int error = errno;
  Stack stack;
  stack.depth = kind == "memory" ? depth_of_memory : kOtherDepth;
  _Unwind_Backtrace(add_frame, &stack);
  bool fails = false;
  if (stack.in_program > 0) {
    const std::uint64_t place = place_of(kind, stack);
    if (mode == Mode::list) {
      if (is_first_time(place)) list(kind, place, stack);
    } else if (place == wanted_place && !has_failed->exchange(true)) {
      leave_mark();
      fails = true;
    } else {
      fails = stays && has_failed->load();
    }
  }
  errno = error;
  inside = false;
  return fails;
}

/// What a failing call returns: a failure, with the error that was asked for.
template <typename Result>
Result failed(Result result) {
  errno = how;
  return result;
}

template <typename Function>
Function* next_of(Function*, const char* name) {
  return reinterpret_cast<Function*>(dlsym(RTLD_NEXT, name));
}

// The function that this library replaces; each caller has its own variable.
#define NEXT(function)                                        \
  ([]() {                                                     \
    static const auto next = next_of(&::function, #function); \
    return next;                                              \
  }())

int begin_main(int count, char** arguments, char** environment) {
  is_in_main = true;
  return program_main(count, arguments, environment);
}

/// Of `size` bytes, those that a call reads or writes which does not do all of it.
std::size_t half_of(std::size_t size) { return size - size / 2; }

int find_program(dl_phdr_info* info, std::size_t, void*) {
  program_base = info->dlpi_addr;
  program_begin = UINTPTR_MAX;
  for (int i = 0; i < info->dlpi_phnum; ++i) {
    const auto& part = info->dlpi_phdr[i];
    if (part.p_type != PT_LOAD || (part.p_flags & PF_X) == 0) continue;
    program_begin = std::min(program_begin, program_base + part.p_vaddr);
    program_end = std::max(program_end, program_base + part.p_vaddr + part.p_memsz);
  }
  return 1;  // the program is the first; the libraries are not looked at
}

__attribute__((constructor)) void begin() {
  inside = true;
  dl_iterate_phdr(find_program, nullptr);
  const auto number = [](const char* name, int otherwise) {
    const char* text = std::getenv(name);
    return text == nullptr ? otherwise : std::atoi(text);
  };
  depth_of_memory = number("FAULT_DEPTH", depth_of_memory);
  how = number("FAULT_HOW", ENOMEM);
  stays = number("FAULT_STAYS", 0) != 0;
  mark_path = std::getenv("FAULT_MARK");
  void* page = ::mmap(nullptr, sizeof *has_failed, PROT_READ | PROT_WRITE,
                      MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (page == MAP_FAILED) std::abort();
  has_failed = new (page) std::atomic<bool>(false);
  if (const char* path = std::getenv("FAULT_LIST")) {
    list_descriptor = ::open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
    if (list_descriptor < 0) std::abort();
    mode = Mode::list;
  } else if (const char* place = std::getenv("FAULT_AT")) {
    const char* kind = std::getenv("FAULT_KIND");
    wanted_kind = kind == nullptr ? "" : kind;
    wanted_place = std::strtoull(place, nullptr, 16);
    mode = Mode::fail;
  }
  inside = false;
}

/// Lets a stream to a full device do what it is asked for, and takes its own file back after that.
template <typename Action>
void with_full_device(FILE* stream, const Action& action) {
  const int own = ::fileno(stream);
  const int kept = ::dup(own);
  const int full = ::open("/dev/full", O_WRONLY | O_CLOEXEC);
  (void)::dup2(full, own);
  ::close(full);
  action();
  const int error = errno;
  (void)::dup2(kept, own);
  ::close(kept);
  errno = error;
}

/// An argument that is there only with O_CREAT.
#define OPEN_MODE(flags)                                            \
  mode_t permissions = 0;                                           \
  if (((flags)&O_CREAT) != 0 || ((flags)&O_TMPFILE) == O_TMPFILE) { \
    va_list arguments;                                              \
    va_start(arguments, flags);                                     \
    permissions = va_arg(arguments, mode_t);                        \
    va_end(arguments);                                              \
  }

}  // namespace

extern "C" {

/// What the C library calls first: initializes constants, then runs the main that it is given.
int __libc_start_main(int (*main_function)(int, char**, char**), int count, char** arguments,
                      void (*initialize)(), void (*finish)(), void (*finish_loader)(),
                      void* stack_end) {
  program_main = main_function;
  using Start =
      int(int (*)(int, char**, char**), int, char**, void (*)(), void (*)(), void (*)(), void*);
  const auto start = reinterpret_cast<Start*>(dlsym(RTLD_NEXT, "__libc_start_main"));
  return start(begin_main, count, arguments, initialize, finish, finish_loader, stack_end);
}

void* malloc(std::size_t size) noexcept {
  return must_fail("memory") ? failed<void*>(nullptr) : __libc_malloc(size);
}

void* calloc(std::size_t count, std::size_t size) noexcept {
  return must_fail("memory") ? failed<void*>(nullptr) : __libc_calloc(count, size);
}

void* realloc(void* memory, std::size_t size) noexcept {
  return must_fail("memory") ? failed<void*>(nullptr) : __libc_realloc(memory, size);
}

void* memalign(std::size_t alignment, std::size_t size) noexcept {
  return must_fail("memory") ? failed<void*>(nullptr) : __libc_memalign(alignment, size);
}

void* aligned_alloc(std::size_t alignment, std::size_t size) noexcept {
  return must_fail("memory") ? failed<void*>(nullptr) : __libc_memalign(alignment, size);
}

int posix_memalign(void** result, std::size_t alignment, std::size_t size) noexcept {
  if (must_fail("memory")) return how;
  void* memory = __libc_memalign(alignment, size);
  if (memory == nullptr) return ENOMEM;
  *result = memory;
  return 0;
}

void* mmap(void* address, std::size_t size, int protection, int flags, int file,
           off_t offset) noexcept {
  if (must_fail("map")) return failed(MAP_FAILED);
  return reinterpret_cast<void*>(
      ::syscall(SYS_mmap, address, size, protection, flags, file, offset));
}

void* mmap64(void* address, std::size_t size, int protection, int flags, int file,
             off64_t offset) noexcept {
  return mmap(address, size, protection, flags, file, offset);
}

int open(const char* path, int flags, ...) {
  OPEN_MODE(flags)
  return must_fail("open") ? failed(-1) : NEXT(open64)(path, flags, permissions);
}

int open64(const char* path, int flags, ...) {
  OPEN_MODE(flags)
  return must_fail("open") ? failed(-1) : NEXT(open64)(path, flags, permissions);
}

int openat(int folder, const char* path, int flags, ...) {
  OPEN_MODE(flags)
  return must_fail("open") ? failed(-1) : NEXT(openat64)(folder, path, flags, permissions);
}

int openat64(int folder, const char* path, int flags, ...) {
  OPEN_MODE(flags)
  return must_fail("open") ? failed(-1) : NEXT(openat64)(folder, path, flags, permissions);
}

int creat(const char* path, mode_t permissions) {
  return must_fail("open") ? failed(-1) : NEXT(creat)(path, permissions);
}

FILE* fopen(const char* path, const char* modes) {
  return must_fail("open") ? failed<FILE*>(nullptr) : NEXT(fopen64)(path, modes);
}

FILE* fopen64(const char* path, const char* modes) {
  return must_fail("open") ? failed<FILE*>(nullptr) : NEXT(fopen64)(path, modes);
}

ssize_t read(int file, void* bytes, std::size_t size) {
  if (must_fail("read")) {
    if (how != kHalf) return failed<ssize_t>(-1);
    size = half_of(size);
  }
  return NEXT(read)(file, bytes, size);
}

ssize_t pread(int file, void* bytes, std::size_t size, off_t offset) {
  if (must_fail("read")) {
    if (how != kHalf) return failed<ssize_t>(-1);
    size = half_of(size);
  }
  return NEXT(pread64)(file, bytes, size, offset);
}

ssize_t pread64(int file, void* bytes, std::size_t size, off64_t offset) {
  return pread(file, bytes, size, offset);
}

ssize_t write(int file, const void* bytes, std::size_t size) {
  if (must_fail("write")) {
    if (how != kHalf) return failed<ssize_t>(-1);
    size = half_of(size);
  }
  return NEXT(write)(file, bytes, size);
}

ssize_t pwrite(int file, const void* bytes, std::size_t size, off_t offset) {
  if (must_fail("write")) {
    if (how != kHalf) return failed<ssize_t>(-1);
    size = half_of(size);
  }
  return NEXT(pwrite64)(file, bytes, size, offset);
}

ssize_t pwrite64(int file, const void* bytes, std::size_t size, off64_t offset) {
  return pwrite(file, bytes, size, offset);
}

ssize_t writev(int file, const iovec* parts, int count) {
  return must_fail("write") ? failed<ssize_t>(-1) : NEXT(writev)(file, parts, count);
}

std::size_t fwrite(const void* bytes, std::size_t size, std::size_t count, FILE* stream) {
  if (stream != stdout || !must_fail("print")) return NEXT(fwrite)(bytes, size, count, stream);
  std::size_t written = 0;
  with_full_device(stream, [&] {
    written = NEXT(fwrite)(bytes, size, count, stream);
    if (NEXT(fflush)(stream) != 0) written = 0;
  });
  return written;
}

int fflush(FILE* stream) {
  if (stream != stdout || !must_fail("print")) return NEXT(fflush)(stream);
  int result = 0;
  with_full_device(stream, [&] { result = NEXT(fflush)(stream); });
  return result;
}

int fsync(int file) { return must_fail("sync") ? failed(-1) : NEXT(fsync)(file); }

int fdatasync(int file) { return must_fail("sync") ? failed(-1) : NEXT(fdatasync)(file); }

int ftruncate(int file, off_t size) noexcept {
  return must_fail("truncate") ? failed(-1) : NEXT(ftruncate64)(file, size);
}

int ftruncate64(int file, off64_t size) noexcept { return ftruncate(file, size); }

off_t lseek(int file, off_t offset, int whence) noexcept {
  return must_fail("seek") ? failed<off_t>(-1) : NEXT(lseek64)(file, offset, whence);
}

off64_t lseek64(int file, off64_t offset, int whence) noexcept {
  return lseek(file, offset, whence);
}

DIR* opendir(const char* path) {
  return must_fail("open") ? failed<DIR*>(nullptr) : NEXT(opendir)(path);
}

dirent* readdir(DIR* folder) {
  return must_fail("list") ? failed<dirent*>(nullptr) : NEXT(readdir)(folder);
}

dirent64* readdir64(DIR* folder) {
  return must_fail("list") ? failed<dirent64*>(nullptr) : NEXT(readdir64)(folder);
}

int clock_gettime(clockid_t clock, timespec* now) noexcept {
  const int result = NEXT(clock_gettime)(clock, now);
  const bool can_be_set = clock == CLOCK_REALTIME || clock == CLOCK_REALTIME_COARSE;
  if (can_be_set && must_fail("clock")) now->tv_sec += kJump;
  return result;
}

int gettimeofday(timeval* now, void* zone) noexcept {
  const int result = NEXT(gettimeofday)(now, zone);
  if (must_fail("clock")) now->tv_sec += kJump;
  return result;
}

std::time_t time(std::time_t* result) noexcept {
  const std::time_t now = NEXT(time)(nullptr) + (must_fail("clock") ? kJump : 0);
  if (result != nullptr) *result = now;
  return now;
}

int rename(const char* from, const char* to) noexcept {
  return must_fail("rename") ? failed(-1) : NEXT(rename)(from, to);
}

int renameat(int from_folder, const char* from, int to_folder, const char* to) noexcept {
  return must_fail("rename") ? failed(-1) : NEXT(renameat)(from_folder, from, to_folder, to);
}

int mkdir(const char* path, mode_t permissions) noexcept {
  return must_fail("mkdir") ? failed(-1) : NEXT(mkdir)(path, permissions);
}

int fchmod(int file, mode_t permissions) noexcept {
  return must_fail("chmod") ? failed(-1) : NEXT(fchmod)(file, permissions);
}

int flock(int file, int operation) noexcept {
  return must_fail("lock") ? failed(-1) : NEXT(flock)(file, operation);
}

/// The file is closed in any case, as Linux does.
int close(int file) {
  const bool fails = must_fail("close");
  const int result = NEXT(close)(file);
  return fails ? failed(-1) : result;
}

int pipe(int ends[2]) noexcept { return must_fail("pipe") ? failed(-1) : NEXT(pipe)(ends); }

pid_t fork() noexcept { return must_fail("fork") ? failed(-1) : NEXT(fork)(); }

int pthread_create(pthread_t* thread, const pthread_attr_t* attributes, void* (*routine)(void*),
                   void* argument) noexcept {
  return must_fail("thread") ? how : NEXT(pthread_create)(thread, attributes, routine, argument);
}

}  // extern "C"

// NOLINTEND(readability-inconsistent-declaration-parameter-name,bugprone-reserved-identifier,performance-no-int-to-ptr)
