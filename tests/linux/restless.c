/* Preloaded into QEMU: whoever waits for events for longer than 30 µs wakes after 30 µs for no reason, as any thread may. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <poll.h>
#include <signal.h>
#include <stddef.h>
#include <time.h>

int ppoll(struct pollfd *descriptors, nfds_t count, const struct timespec *timeout, const sigset_t *mask)
{
    static int (*real)(struct pollfd *, nfds_t, const struct timespec *, const sigset_t *);
    const struct timespec soon = {0, 30000};
    if (real == NULL)
        real = (int (*)(struct pollfd *, nfds_t, const struct timespec *, const sigset_t *))dlsym(RTLD_NEXT, "ppoll");
    if (timeout == NULL || timeout->tv_sec > 0 || timeout->tv_nsec > soon.tv_nsec)
        timeout = &soon;
    return real(descriptors, count, timeout, mask);
}

int __ppoll_chk(struct pollfd *descriptors, nfds_t count, const struct timespec *timeout, const sigset_t *mask,
                size_t length)
{
    (void)length;
    return ppoll(descriptors, count, timeout, mask);
}
