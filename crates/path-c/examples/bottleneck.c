/* A sender that is too fast for CoDel, and what becomes of its packets:
 *
 *     cc -I include examples/bottleneck.c -lsojournpath -o bottleneck && ./bottleneck
 */
#include <stdio.h>
#include <string.h>

#include "sojournpath.h"

static int failed(const char *what, const char *why) {
    fprintf(stderr, "%s: %s\n", what, why);
    return 1;
}

int main(void) {
    if (sojourn_abi_version() != SOJOURN_ABI_VERSION) {
        return failed("sojourn_abi_version", "the library is not that of the header");
    }
    struct sojourn_options options = {
        .size = sizeof options,
        .rate = "10 Mbit/s",
        .rtt = "40 ms",
        .aqm = "codel",
        .keys = "target=5 ms, ecn=true",
        .impair = "loss=0.01, jitter=3 ms",
        .seed = 7,
    };
    char error[512];
    struct sojourn_path *path = sojourn_path_new(&options, error, sizeof error);
    if (path == NULL) {
        return failed("sojourn_path_new", error);
    }

    /* 1200 bytes of payload every 500 microseconds are 20 Mbit/s. */
    uint64_t now = 0, longest = 0, arrived = 0;
    for (uint64_t index = 0; index < 2000; index++, now += 500000) {
        struct sojourn_packet packet = {
            .size = sizeof packet,
            .user = index,
            .bytes = 1262,
            .source = 1,
            .destination = 2,
            .source_port = 443,
            .destination_port = 50000,
            .protocol = 17,
            .ecn = SOJOURN_ECT0,
            .way = SOJOURN_DOWN,
        };
        if (sojourn_path_send(path, now, &packet, NULL) < 0) {
            return failed("sojourn_path_send", sojourn_path_error(path));
        }
    }
    /* Everything else is a matter of time. */
    for (uint64_t next; (next = sojourn_path_next_event(path)) != SOJOURN_NEVER;) {
        struct sojourn_delivery delivery = {.size = sizeof delivery};
        int got;
        while ((got = sojourn_path_poll(path, next, &delivery)) > 0) {
            arrived++;
            longest = delivery.sojourn_ns > longest ? delivery.sojourn_ns : longest;
        }
        if (got < 0) {
            return failed("sojourn_path_poll", sojourn_path_error(path));
        }
    }

    uint64_t marks = 0;
    struct sojourn_event event = {.size = sizeof event};
    while (sojourn_path_event(path, &event) > 0) {
        marks += event.verdict == SOJOURN_MARKED;
    }
    struct sojourn_counts counts = {.size = sizeof counts};
    if (sojourn_path_counts(path, SOJOURN_DOWN, &counts) < 0) {
        return failed("sojourn_path_counts", sojourn_path_error(path));
    }
    printf("sent %llu, arrived %llu, dropped %llu, lost %llu, marked %llu, longest wait %.1f ms\n",
           (unsigned long long)counts.sent, (unsigned long long)arrived, (unsigned long long)counts.dropped,
           (unsigned long long)counts.lost, (unsigned long long)marks, (double)longest / 1e6);
    if (counts.sent != arrived + counts.dropped + counts.lost || marks != counts.marked) {
        return failed("counts", "do not add up");
    }

    /* An error is a text; the path goes on. */
    if (sojourn_path_set_rate(path, SOJOURN_UP, "fast") >= 0 || strlen(sojourn_path_error(path)) == 0) {
        return failed("sojourn_path_set_rate", "accepts what is no rate");
    }
    sojourn_path_free(path);
    return 0;
}
