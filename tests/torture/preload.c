/* Loaded into a process with LD_PRELOAD: records its writes below a directory, and makes calls fail on demand.
 *
 *   TORTURE_DIR      the directory; files elsewhere are not affected
 *   TORTURE_RECORD   a file that gets a journal of writes, truncations, removals and syncs, and of lines on standard
 *                    output, in order
 *   TORTURE_CONTROL  a file of five 32-bit numbers that may change at any time: the errno of failing calls (0: none),
 *                    which calls fail (1 write, 2 sync, 4 truncate; +8: only those on -shm files), how many of a thousand fail, how many calls failed,
 *                    and the size of the disk in KiB (0: no limit), which the files of the directory cannot exceed in total
 *
 * The journal: records of { char what; uint32 file; uint64 offset; uint64 length } followed by length bytes. `what` is 'N'
 * (file gets a name, in the bytes), 'W' (bytes at offset), 'T' (truncated to offset), 'S' (synced), 'U' (removed) or
 * 'A' (written to standard output).
 */
#define _GNU_SOURCE
#include <dirent.h>
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { FDS = 4096, FILES = 256, WRITE = 1, SYNC = 2, TRUNCATE = 4, SHARED_ONLY = 8 };

struct control {
    volatile uint32_t error, calls, permille, failed, space;
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static char directory[PATH_MAX];
static int journal = -1;
static struct control *control;
static uint64_t dice = 0x9e3779b97f4a7c15ull;
static char names[FILES][PATH_MAX];
static uint32_t known;
/* The number of the file of a descriptor, plus one; 0 for files outside the directory. */
static uint32_t files[FDS];

static ssize_t raw_write(int fd, const void *bytes, size_t length) {
    return syscall(SYS_write, fd, bytes, length);
}

static void put(const void *bytes, size_t length) {
    const char *at = bytes;
    while (length > 0) {
        ssize_t done = raw_write(journal, at, length);
        if (done <= 0) {
            if (done < 0 && errno == EINTR) continue;
            abort();
        }
        at += done;
        length -= (size_t)done;
    }
}

/* Called with the lock held. */
static void note(char what, uint32_t file, uint64_t offset, const void *bytes, uint64_t length) {
    if (journal < 0) return;
    int saved = errno;
    char head[21];
    head[0] = what;
    memcpy(head + 1, &file, 4);
    memcpy(head + 5, &offset, 8);
    memcpy(head + 13, &length, 8);
    put(head, sizeof head);
    if (length > 0) put(bytes, length);
    errno = saved;
}

__attribute__((constructor)) static void start(void) {
    const char *dir = getenv("TORTURE_DIR");
    if (!dir || !realpath(dir, directory)) return;
    const char *record = getenv("TORTURE_RECORD");
    if (record) journal = open(record, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
    const char *path = getenv("TORTURE_CONTROL");
    int fd = path ? open(path, O_RDWR | O_CLOEXEC) : -1;
    if (fd >= 0) {
        void *shared = mmap(NULL, sizeof *control, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
        if (shared != MAP_FAILED) control = shared;
        close(fd);
    }
    const char *seed = getenv("TORTURE_SEED");
    if (seed) dice ^= strtoull(seed, NULL, 10) * 0xbf58476d1ce4e5b9ull + 1;
}

/* Returns the number of a file below the directory, adding new ones; 0 for other files. Called with the lock held. */
static uint32_t number(const char *path) {
    size_t length = strlen(directory);
    if (length == 0 || strncmp(path, directory, length) != 0 || path[length] != '/') return 0;
    for (uint32_t at = 0; at < known; at++)
        if (strcmp(names[at], path) == 0) return at + 1;
    if (known == FILES) abort();
    snprintf(names[known], PATH_MAX, "%s", path);
    note('N', known, 0, path + length + 1, strlen(path + length + 1));
    return ++known;
}

static void opened(int fd) {
    if (fd < 0 || fd >= FDS || directory[0] == 0) return;
    int saved = errno;
    char link[64], path[PATH_MAX];
    snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
    ssize_t length = readlink(link, path, sizeof path - 1);
    struct stat found;
    pthread_mutex_lock(&lock);
    files[fd] = 0;
    if (length > 0 && fstat(fd, &found) == 0 && S_ISREG(found.st_mode)) {
        path[length] = 0;
        files[fd] = number(path);
        if (files[fd] && found.st_size == 0) note('T', files[fd] - 1, 0, NULL, 0);
    }
    pthread_mutex_unlock(&lock);
    errno = saved;
}

/* Returns whether a call on the descriptor must fail; sets errno. */
static int fails(int fd, uint32_t call) {
    if (!control || fd < 0 || fd >= FDS || !files[fd]) return 0;
    uint32_t error = control->error;
    if (!error || !(control->calls & call)) return 0;
    if (control->calls & SHARED_ONLY) {
        const char *name = names[files[fd] - 1];
        size_t length = strlen(name);
        if (length < 4 || strcmp(name + length - 4, "-shm") != 0) return 0;
    }
    pthread_mutex_lock(&lock);
    dice ^= dice << 13;
    dice ^= dice >> 7;
    dice ^= dice << 17;
    int hit = dice % 1000 < control->permille;
    pthread_mutex_unlock(&lock);
    if (!hit) return 0;
    __sync_fetch_and_add(&control->failed, 1);
    errno = (int)error;
    return 1;
}

/* Returns whether the files would exceed the disk if this one ended at `end`; sets errno. */
static int no_room(int fd, off_t end) {
    if (!control || !control->space || fd < 0 || fd >= FDS || !files[fd]) return 0;
    struct stat found;
    if (fstat(fd, &found) != 0 || end <= found.st_size) return 0;
    uint64_t used = (uint64_t)(end - found.st_size);
    DIR *folder = opendir(directory);
    struct dirent *entry;
    while (folder && (entry = readdir(folder))) {
        char path[PATH_MAX * 2];
        snprintf(path, sizeof path, "%s/%s", directory, entry->d_name);
        if (stat(path, &found) == 0 && S_ISREG(found.st_mode)) used += (uint64_t)found.st_size;
    }
    if (folder) closedir(folder);
    if (used <= (uint64_t)control->space * 1024) return 0;
    __sync_fetch_and_add(&control->failed, 1);
    errno = ENOSPC;
    return 1;
}

#define REAL(name, type, ...) \
    static type (*real)(__VA_ARGS__); \
    if (!real) real = (type (*)(__VA_ARGS__))dlsym(RTLD_NEXT, name)

static int open_with(const char *symbol, const char *path, int flags, mode_t mode) {
    int (*real)(const char *, int, ...) = (int (*)(const char *, int, ...))dlsym(RTLD_NEXT, symbol);
    int fd = real(path, flags, mode);
    opened(fd);
    return fd;
}

static mode_t mode_of(int flags, va_list rest) {
    return flags & (O_CREAT | O_TMPFILE) ? va_arg(rest, mode_t) : 0;
}

int open(const char *path, int flags, ...) {
    va_list rest;
    va_start(rest, flags);
    mode_t mode = mode_of(flags, rest);
    va_end(rest);
    return open_with("open", path, flags, mode);
}

int open64(const char *path, int flags, ...) {
    va_list rest;
    va_start(rest, flags);
    mode_t mode = mode_of(flags, rest);
    va_end(rest);
    return open_with("open64", path, flags, mode);
}

int openat(int at, const char *path, int flags, ...) {
    va_list rest;
    va_start(rest, flags);
    mode_t mode = mode_of(flags, rest);
    va_end(rest);
    REAL("openat", int, int, const char *, int, ...);
    int fd = real(at, path, flags, mode);
    opened(fd);
    return fd;
}

int close(int fd) {
    REAL("close", int, int);
    if (fd >= 0 && fd < FDS) files[fd] = 0;
    return real(fd);
}

ssize_t write(int fd, const void *bytes, size_t length) {
    REAL("write", ssize_t, int, const void *, size_t);
    if (fails(fd, WRITE)) return -1;
    if (control && control->space && no_room(fd, lseek(fd, 0, SEEK_CUR) + (off_t)length)) return -1;
    if (fd == 1 && journal >= 0) {
        pthread_mutex_lock(&lock);
        note('A', 0, 0, bytes, length);
        pthread_mutex_unlock(&lock);
        return real(fd, bytes, length);
    }
    if (journal < 0 || fd < 0 || fd >= FDS || !files[fd]) return real(fd, bytes, length);
    pthread_mutex_lock(&lock);
    ssize_t done = real(fd, bytes, length);
    if (done > 0) {
        off_t end = lseek(fd, 0, SEEK_CUR);
        note('W', files[fd] - 1, (uint64_t)(end - done), bytes, (uint64_t)done);
    }
    pthread_mutex_unlock(&lock);
    return done;
}

static ssize_t write_at(ssize_t (*real)(int, const void *, size_t, off_t), int fd, const void *bytes, size_t length, off_t offset) {
    if (fails(fd, WRITE) || no_room(fd, offset + (off_t)length)) return -1;
    if (journal < 0 || fd < 0 || fd >= FDS || !files[fd]) return real(fd, bytes, length, offset);
    pthread_mutex_lock(&lock);
    ssize_t done = real(fd, bytes, length, offset);
    if (done > 0) note('W', files[fd] - 1, (uint64_t)offset, bytes, (uint64_t)done);
    pthread_mutex_unlock(&lock);
    return done;
}

ssize_t pwrite(int fd, const void *bytes, size_t length, off_t offset) {
    REAL("pwrite", ssize_t, int, const void *, size_t, off_t);
    return write_at(real, fd, bytes, length, offset);
}

ssize_t pwrite64(int fd, const void *bytes, size_t length, off64_t offset) {
    REAL("pwrite64", ssize_t, int, const void *, size_t, off_t);
    return write_at(real, fd, bytes, length, offset);
}

static int sync_with(int (*real)(int), int fd) {
    if (fails(fd, SYNC)) return -1;
    uint32_t file = fd >= 0 && fd < FDS ? files[fd] : 0;
    if (journal < 0 || !file) return real(fd);
    /* Only data written before the call is guaranteed to be on the disk after it. A real sync is not needed: the power cut
     * is simulated, and a sync would only cost time. */
    pthread_mutex_lock(&lock);
    note('S', file - 1, 0, NULL, 0);
    pthread_mutex_unlock(&lock);
    return 0;
}

int fsync(int fd) {
    REAL("fsync", int, int);
    return sync_with(real, fd);
}

int fdatasync(int fd) {
    REAL("fdatasync", int, int);
    return sync_with(real, fd);
}

static int truncate_with(int (*real)(int, off_t), int fd, off_t length) {
    if (fails(fd, TRUNCATE) || no_room(fd, length)) return -1;
    uint32_t file = fd >= 0 && fd < FDS ? files[fd] : 0;
    if (journal < 0 || !file) return real(fd, length);
    pthread_mutex_lock(&lock);
    int done = real(fd, length);
    if (done == 0) note('T', file - 1, (uint64_t)length, NULL, 0);
    pthread_mutex_unlock(&lock);
    return done;
}

int ftruncate(int fd, off_t length) {
    REAL("ftruncate", int, int, off_t);
    return truncate_with(real, fd, length);
}

int ftruncate64(int fd, off64_t length) {
    REAL("ftruncate64", int, int, off_t);
    return truncate_with(real, fd, length);
}

int unlink(const char *path) {
    REAL("unlink", int, const char *);
    if (journal < 0) return real(path);
    pthread_mutex_lock(&lock);
    int done = real(path);
    char absolute[PATH_MAX];
    if (done == 0) {
        int saved = errno;
        /* Its directory still has a real path. */
        char copy[PATH_MAX], *slash;
        snprintf(copy, sizeof copy, "%s", path);
        slash = strrchr(copy, '/');
        if (slash) {
            *slash = 0;
            char folder[PATH_MAX];
            if (realpath(copy, folder)) {
                snprintf(absolute, sizeof absolute, "%.*s/%s", PATH_MAX / 2, folder, slash + 1);
                uint32_t file = number(absolute);
                if (file) note('U', file - 1, 0, NULL, 0);
            }
        }
        errno = saved;
    }
    pthread_mutex_unlock(&lock);
    return done;
}
