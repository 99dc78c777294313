/* How a loop's work is shared out among threads; part of every source that `c_source.py` writes. */

#include <pthread.h>
#include <stdint.h>
#include <stdlib.h>

/* Groups of tasks are shared out among threads that live for one loop: starting one takes some 20 microseconds, and
   there is nobody that waits idly, nobody that a fork leaves behind, and no OpenMP library whose settings belong to
   whoever loaded it first. Where a thread cannot be had, the others do its work. */
typedef void pb_group(const int64_t *, char *const *, char *, int64_t);
typedef struct {
    pb_group *group;
    const int64_t *d;
    char *const *p;
    char *memory;
    int64_t next, groups;
} pb_work;

static void *pb_worker(void *given) {
    pb_work *const work = given;
    for (int64_t k; (k = __atomic_fetch_add(&work->next, 1, __ATOMIC_RELAXED)) < work->groups;)
        work->group(work->d, work->p, work->memory, k);
    return NULL;
}

static inline void pb_share(pb_group *group, const int64_t *d, char *const *p, char *memory, int64_t groups,
                            int threads) {
    if (threads <= 1 || groups <= 1) {
        for (int64_t k = 0; k < groups; k++) group(d, p, memory, k);
        return;
    }
    pb_work work = {group, d, p, memory, 0, groups};
    pthread_t others[63];
    int started = 0;
    while (started < 63 && started < threads - 1 && started < groups - 1) {
        if (pthread_create(&others[started], NULL, pb_worker, &work)) break;
        started++;
    }
    pb_worker(&work);
    while (started) pthread_join(others[--started], NULL);
}
