/* Records what a process does to the files below a folder, for `tests.bench.torn`; loaded with LD_PRELOAD.

   RECORD_FOLDER names the folder, RECORD_LOG the file to write. Each record is an operation (one byte), the lengths
   of two names (4 bytes each), offset, and length of the data (8 bytes each), then names and data:
   O open, T open and truncate, W write, R set the size, S sync, N rename, U unlink. Writes to standard output are
   recorded under the name "said". Copies inside the kernel are refused, so that they become reads and writes. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/uio.h>
#include <unistd.h>

#define MOST_FILES 65536
static char *names[MOST_FILES];
static const char *folder;
static int log_file = -1;
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static int (*real_open)(const char *, int, ...), (*real_openat)(int, const char *, int, ...);
static int (*real_fsync)(int), (*real_fdatasync)(int), (*real_ftruncate)(int, off_t), (*real_close)(int);
static int (*real_rename)(const char *, const char *), (*real_unlink)(const char *);
static ssize_t (*real_pwrite)(int, const void *, size_t, off_t), (*real_write)(int, const void *, size_t);
static ssize_t (*real_writev)(int, const struct iovec *, int);

static void begin(void) {
    if (real_write) return;
    real_open = dlsym(RTLD_NEXT, "open64");
    real_openat = dlsym(RTLD_NEXT, "openat64");
    real_fsync = dlsym(RTLD_NEXT, "fsync");
    real_fdatasync = dlsym(RTLD_NEXT, "fdatasync");
    real_ftruncate = dlsym(RTLD_NEXT, "ftruncate64");
    real_close = dlsym(RTLD_NEXT, "close");
    real_rename = dlsym(RTLD_NEXT, "rename");
    real_unlink = dlsym(RTLD_NEXT, "unlink");
    real_pwrite = dlsym(RTLD_NEXT, "pwrite64");
    real_writev = dlsym(RTLD_NEXT, "writev");
    folder = getenv("RECORD_FOLDER");
    const char *log = getenv("RECORD_LOG");
    if (log) log_file = real_open(log, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
    names[1] = "said";
    real_write = dlsym(RTLD_NEXT, "write");
}

static int is_ours(const char *path) { return folder && path && strncmp(path, folder, strlen(folder)) == 0; }

static const char *name_of(int file) { return file >= 0 && file < MOST_FILES ? names[file] : NULL; }

static void record(char what, const char *name, const char *other, int64_t offset, const void *data, int64_t length) {
    if (log_file < 0 || !name) return;
    int32_t lengths[2] = {strlen(name), other ? strlen(other) : 0};
    int64_t place[2] = {offset, data ? length : 0};
    struct iovec parts[6] = {{&what, 1}, {lengths, 8}, {place, 16}, {(void *)name, lengths[0]},
                             {(void *)other, lengths[1]}, {(void *)data, place[1]}};
    pthread_mutex_lock(&mutex);
    if (real_writev(log_file, parts, 6) < 0) abort();
    pthread_mutex_unlock(&mutex);
}

static int opened(int file, const char *path, int flags) {
    if (file >= 0 && file < MOST_FILES) {
        names[file] = is_ours(path) ? strdup(path) : NULL;
        record(flags & O_TRUNC ? 'T' : 'O', names[file], NULL, flags & O_CREAT ? 1 : 0, NULL, 0);
    }
    return file;
}

#define WITH_MODE va_list rest; va_start(rest, flags); int mode = va_arg(rest, int); va_end(rest); begin()
int open(const char *path, int flags, ...) { WITH_MODE; return opened(real_open(path, flags, mode), path, flags); }
int open64(const char *path, int flags, ...) { WITH_MODE; return opened(real_open(path, flags, mode), path, flags); }
int openat(int at, const char *path, int flags, ...) { WITH_MODE; return opened(real_openat(at, path, flags, mode), path, flags); }
int openat64(int at, const char *path, int flags, ...) { WITH_MODE; return opened(real_openat(at, path, flags, mode), path, flags); }

ssize_t pwrite64(int file, const void *data, size_t length, off_t offset) {
    begin();
    ssize_t written = real_pwrite(file, data, length, offset);
    if (written > 0) record('W', name_of(file), NULL, offset, data, written);
    return written;
}
ssize_t pwrite(int file, const void *data, size_t length, off_t offset) { return pwrite64(file, data, length, offset); }

ssize_t write(int file, const void *data, size_t length) {
    begin();
    off_t offset = 0;
    if (name_of(file) && file != 1)
        offset = lseek(file, 0, fcntl(file, F_GETFL) & O_APPEND ? SEEK_END : SEEK_CUR);
    ssize_t written = real_write(file, data, length);
    if (written > 0) record('W', name_of(file), NULL, offset, data, written);
    return written;
}

/* Of the first part alone: the writer of `tests.fakes` speaks so, in one part. */
ssize_t writev(int file, const struct iovec *parts, int count) {
    begin();
    ssize_t written = real_writev(file, parts, count);
    if (written > 0 && file == 1) record('W', name_of(file), NULL, 0, parts[0].iov_base, written);
    return written;
}

int fsync(int file) { begin(); int failed = real_fsync(file); if (!failed) record('S', name_of(file), NULL, 0, NULL, 0); return failed; }
int fdatasync(int file) { begin(); int failed = real_fdatasync(file); if (!failed) record('S', name_of(file), NULL, 0, NULL, 0); return failed; }
int ftruncate64(int file, off_t size) { begin(); int failed = real_ftruncate(file, size); if (!failed) record('R', name_of(file), NULL, size, NULL, 0); return failed; }
int ftruncate(int file, off_t size) { return ftruncate64(file, size); }
int rename(const char *from, const char *to) { begin(); int failed = real_rename(from, to); if (!failed && is_ours(from)) record('N', from, to, 0, NULL, 0); return failed; }
int unlink(const char *path) { begin(); int failed = real_unlink(path); if (!failed && is_ours(path)) record('U', path, NULL, 0, NULL, 0); return failed; }
int remove(const char *path) { return unlink(path); }
int close(int file) { begin(); if (file > 2 && file < MOST_FILES) names[file] = NULL; return real_close(file); }
ssize_t sendfile64(int to, int from, off_t *offset, size_t count) { errno = EINVAL; return -1; }
ssize_t sendfile(int to, int from, off_t *offset, size_t count) { errno = EINVAL; return -1; }
ssize_t copy_file_range(int from, off_t *a, int to, off_t *b, size_t count, unsigned flags) { errno = EINVAL; return -1; }
