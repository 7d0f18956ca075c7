// SPDX-License-Identifier: MIT
// Preloaded by scripts/faults: the call number FAULT_CALL by which the first process changes a file goes wrong as
// FAULT_HOW says: `kill` (the process ends before it), `half` (it ends when half is written), `full` and `broken`
// (ENOSPC and EIO). Without FAULT_CALL calls are counted into the file FAULT_COUNT.
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

enum verdict { go_on, fail, half };

static pid_t first;
static long wanted, calls;
static const char *how, *count_file;

__attribute__((constructor)) static void begin(void) {
  first = getpid();
  how = getenv("FAULT_HOW");
  count_file = getenv("FAULT_COUNT");
  wanted = getenv("FAULT_CALL") ? atol(getenv("FAULT_CALL")) : 0;
}

__attribute__((destructor)) static void end(void) {
  if (getpid() != first || !count_file) return;
  char text[32];
  const int size = snprintf(text, sizeof text, "%ld\n", calls);
  const int file = (int)syscall(SYS_openat, AT_FDCWD, count_file, O_WRONLY | O_CREAT | O_TRUNC, 0600);
  syscall(SYS_write, file, text, (size_t)size);
}

/// Pipes and terminals are left alone: workers' answers and talk.
static int is_file(int descriptor) {
  struct stat status;
  return descriptor > 2 && fstat(descriptor, &status) == 0 && (S_ISREG(status.st_mode) || S_ISDIR(status.st_mode));
}

static enum verdict judge(void) {
  if (getpid() != first || ++calls != wanted || !how) return go_on;
  if (strcmp(how, "kill") == 0) kill(first, SIGKILL);
  if (strcmp(how, "half") == 0) return half;
  errno = strcmp(how, "full") == 0 ? ENOSPC : EIO;
  return fail;
}

#define REAL(name) ((__typeof__(&name))dlsym(RTLD_NEXT, #name))
#define WRITING(name, parameters, whole, part)              \
  ssize_t name parameters {                                 \
    static __typeof__(&name) real;                          \
    if (!real) real = REAL(name);                           \
    switch (is_file(descriptor) ? judge() : go_on) {        \
      case fail:                                            \
        return -1;                                          \
      case half:                                            \
        part;                                               \
        kill(first, SIGKILL);                               \
        return -1;                                          \
      default:                                              \
        return whole;                                       \
    }                                                       \
  }
WRITING(write, (int descriptor, const void *data, size_t size), real(descriptor, data, size),
        real(descriptor, data, size / 2))
WRITING(pwrite, (int descriptor, const void *data, size_t size, off_t at), real(descriptor, data, size, at),
        real(descriptor, data, size / 2, at))
WRITING(pwrite64, (int descriptor, const void *data, size_t size, off64_t at), real(descriptor, data, size, at),
        real(descriptor, data, size / 2, at))
WRITING(writev, (int descriptor, const struct iovec *parts, int count), real(descriptor, parts, count),
        real(descriptor, parts, count / 2))

#define CHANGING(name, parameters, concerned, call)         \
  int name parameters {                                     \
    static __typeof__(&name) real;                          \
    if (!real) real = REAL(name);                           \
    const enum verdict verdict = (concerned) ? judge() : go_on; \
    if (verdict == half) kill(first, SIGKILL);              \
    return verdict == go_on ? call : -1;                    \
  }
CHANGING(fsync, (int descriptor), is_file(descriptor), real(descriptor))
CHANGING(fdatasync, (int descriptor), is_file(descriptor), real(descriptor))
CHANGING(ftruncate, (int descriptor, off_t size), is_file(descriptor), real(descriptor, size))
CHANGING(ftruncate64, (int descriptor, off64_t size), is_file(descriptor), real(descriptor, size))
CHANGING(rename, (const char *from, const char *to), 1, real(from, to))
CHANGING(renameat, (int a, const char *from, int b, const char *to), 1, real(a, from, b, to))
CHANGING(unlink, (const char *name), 1, real(name))
CHANGING(unlinkat, (int folder, const char *name, int flags), 1, real(folder, name, flags))
CHANGING(remove, (const char *name), 1, real(name))
CHANGING(rmdir, (const char *name), 1, real(name))
CHANGING(mkdir, (const char *name, mode_t mode), 1, real(name, mode))
CHANGING(mkdirat, (int folder, const char *name, mode_t mode), 1, real(folder, name, mode))

#define MODE                                                \
  mode_t mode = 0;                                          \
  if (flags & (O_CREAT | O_TMPFILE)) {                      \
    va_list rest;                                           \
    va_start(rest, flags);                                  \
    mode = va_arg(rest, mode_t);                            \
    va_end(rest);                                           \
  }
#define OPENING(name, parameters, call)                     \
  int name parameters {                                     \
    static __typeof__(&name) real;                          \
    if (!real) real = REAL(name);                           \
    MODE                                                    \
    const enum verdict verdict = (flags & O_CREAT) ? judge() : go_on; \
    if (verdict == half) kill(first, SIGKILL);              \
    return verdict == go_on ? call : -1;                    \
  }
OPENING(open, (const char *name, int flags, ...), real(name, flags, mode))
OPENING(open64, (const char *name, int flags, ...), real(name, flags, mode))
OPENING(openat, (int folder, const char *name, int flags, ...), real(folder, name, flags, mode))
OPENING(openat64, (int folder, const char *name, int flags, ...), real(folder, name, flags, mode))
