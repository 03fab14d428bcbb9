/* The wall clock of a process, shifted by what a mapped file says: preloaded, see clock.py.
 *
 * CLOCK_REALTIME and its COARSE form, gettimeofday, time and timespec_get are shifted; the monotonic
 * clocks are not. A wait until a moment of the wall clock gets that moment shifted back, because the
 * kernel waits by its own clock: unshifted, it would last for the shift, or not at all.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <semaphore.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

#define SECOND INT64_C(1000000000)
/* A condition variable waits by whichever clock it was made with, and does not tell. No machine has
 * been up for 15 years, and no wall clock here shows a time before 1985. */
#define LEAST_WALL_S 500000000

static const volatile int64_t *shifts; /* nanoseconds: those of the app, those of the store */
static int store;

typedef int (*gettime_fn)(clockid_t, struct timespec *);
typedef int (*nanosleep_fn)(clockid_t, int, const struct timespec *, struct timespec *);
typedef int (*cond_fn)(pthread_cond_t *, pthread_mutex_t *, const struct timespec *);
typedef int (*sem_fn)(sem_t *, const struct timespec *);
typedef int (*mutex_fn)(pthread_mutex_t *, const struct timespec *);
static gettime_fn real_gettime;
static nanosleep_fn real_nanosleep;
static cond_fn real_cond;
static sem_fn real_sem;
static mutex_fn real_mutex;

static int is_store(void) {
    char path[4096];
    ssize_t size = readlink("/proc/self/exe", path, sizeof path - 1);
    path[size < 0 ? 0 : size] = 0;
    const char *name = strrchr(path, '/');
    name = name ? name + 1 : path;
    /* Debian's redis-server may be the file that redis-check-rdb names, too. */
    return !strncmp(name, "valkey-", 7) || !strncmp(name, "redis-", 6);
}

__attribute__((constructor)) static void begin(void) {
    real_gettime = (gettime_fn)dlsym(RTLD_NEXT, "clock_gettime");
    real_nanosleep = (nanosleep_fn)dlsym(RTLD_NEXT, "clock_nanosleep");
    /* x86-64 still has the condition variables of 2002 under the same name. */
    real_cond = (cond_fn)dlvsym(RTLD_NEXT, "pthread_cond_timedwait", "GLIBC_2.3.2");
    if (!real_cond) real_cond = (cond_fn)dlsym(RTLD_NEXT, "pthread_cond_timedwait");
    real_sem = (sem_fn)dlsym(RTLD_NEXT, "sem_timedwait");
    real_mutex = (mutex_fn)dlsym(RTLD_NEXT, "pthread_mutex_timedlock");
    store = is_store();
    const char *path = getenv("FAULTS_CLOCK");
    int file = path ? open(path, O_RDONLY | O_CLOEXEC) : -1;
    if (file < 0) return;
    void *map = mmap(NULL, 2 * sizeof(int64_t), PROT_READ, MAP_SHARED, file, 0);
    close(file);
    if (map != MAP_FAILED) shifts = map;
}

static int64_t shift(void) { return shifts ? shifts[store] : 0; }

static void add(struct timespec *when, int64_t nanoseconds) {
    int64_t part = when->tv_nsec + nanoseconds % SECOND;
    when->tv_sec += nanoseconds / SECOND;
    if (part >= SECOND) { part -= SECOND; when->tv_sec++; }
    if (part < 0) { part += SECOND; when->tv_sec--; }
    when->tv_nsec = part;
}

static int now(clockid_t clock, struct timespec *when) {
    /* Before the constructor ran (an allocator asks for the time), the plain system call. */
    return real_gettime ? real_gettime(clock, when) : (int)syscall(SYS_clock_gettime, clock, when);
}

int clock_gettime(clockid_t clock, struct timespec *when) {
    int status = now(clock, when);
    if (!status && (clock == CLOCK_REALTIME || clock == CLOCK_REALTIME_COARSE)) add(when, shift());
    return status;
}

int gettimeofday(struct timeval *restrict when, void *restrict zone) {
    struct timespec exact;
    if (zone) memset(zone, 0, sizeof(struct timezone));
    if (clock_gettime(CLOCK_REALTIME, &exact)) return -1;
    when->tv_sec = exact.tv_sec;
    when->tv_usec = exact.tv_nsec / 1000;
    return 0;
}

time_t time(time_t *result) {
    struct timespec exact;
    if (clock_gettime(CLOCK_REALTIME_COARSE, &exact)) return (time_t)-1;
    if (result) *result = exact.tv_sec;
    return exact.tv_sec;
}

int timespec_get(struct timespec *when, int base) {
    return base == TIME_UTC && !clock_gettime(CLOCK_REALTIME, when) ? base : 0;
}

static const struct timespec *true_moment(const struct timespec *when, struct timespec *copy) {
    if (!when || when->tv_sec < LEAST_WALL_S) return when;
    *copy = *when;
    add(copy, -shift());
    return copy;
}

int clock_nanosleep(clockid_t clock, int flags, const struct timespec *when, struct timespec *left) {
    struct timespec copy;
    if (clock == CLOCK_REALTIME && flags & TIMER_ABSTIME) when = true_moment(when, &copy);
    return real_nanosleep(clock, flags, when, left);
}

int pthread_cond_timedwait(pthread_cond_t *restrict cond, pthread_mutex_t *restrict mutex,
                           const struct timespec *restrict when) {
    struct timespec copy;
    return real_cond(cond, mutex, true_moment(when, &copy));
}

int sem_timedwait(sem_t *restrict sem, const struct timespec *restrict when) {
    struct timespec copy;
    return real_sem(sem, true_moment(when, &copy));
}

int pthread_mutex_timedlock(pthread_mutex_t *restrict mutex, const struct timespec *restrict when) {
    struct timespec copy;
    return real_mutex(mutex, true_moment(when, &copy));
}
