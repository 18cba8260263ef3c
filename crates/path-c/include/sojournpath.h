/* A bottleneck for tests of network protocols: see README.md. Written by cbindgen; do not edit. */

#ifndef SOJOURNPATH_H
#define SOJOURNPATH_H

#include <stddef.h>
#include <stdint.h>

/*
 The version of the ABI: it changes when a program has to be compiled again.
 */
#define SOJOURN_ABI_VERSION 1

/*
 Nothing is due until a packet is sent.
 */
#define SOJOURN_NEVER UINT64_MAX

/*
 The direction over the link under test.
 */
#define SOJOURN_DOWN 0

/*
 The way back.
 */
#define SOJOURN_UP 1

/*
 Not ECN-capable.
 */
#define SOJOURN_NOT_ECT 0

/*
 ECT(1), for L4S.
 */
#define SOJOURN_ECT1 1

/*
 ECT(0).
 */
#define SOJOURN_ECT0 2

/*
 Congestion experienced.
 */
#define SOJOURN_CE 3

/*
 The packet came to the link's queue.
 */
#define SOJOURN_ARRIVED 0

/*
 The packet leaves the queue with a mark that it came without.
 */
#define SOJOURN_MARKED 1

/*
 The discipline dropped the packet.
 */
#define SOJOURN_DROPPED 2

/*
 The packet left the queue.
 */
#define SOJOURN_LEFT 3

/*
 The packet was lost in propagation.
 */
#define SOJOURN_LOST 4

/*
 A copy of the packet was made in propagation.
 */
#define SOJOURN_DUPLICATED 5

/*
 Dropped by the algorithm.
 */
#define SOJOURN_DROPPED_AQM 0

/*
 Dropped for lack of room.
 */
#define SOJOURN_DROPPED_OVERFLOW 1

/*
 A path between two ends. Calls on one path must not overlap.
 */
struct sojourn_path;

/*
 The options of a path. Texts are as in an experiment file; NULL stands for a default.
 */
struct sojourn_options {
  /*
   sizeof(struct sojourn_options).
   */
  size_t size;
  /*
   The link's rate: "20 Mbit/s". Required.
   */
  const char *rate;
  /*
   Propagation there and back: "40 ms". Required.
   */
  const char *rtt;
  /*
   The queue discipline: "fq_codel". By default drop-tail, 1000 packets.
   */
  const char *aqm;
  /*
   Its keys: "target=5 ms, ecn=true".
   */
  const char *keys;
  /*
   The rate of a link for packets up. By default they cross no link.
   */
  const char *up_rate;
  /*
   Its discipline, by default drop-tail.
   */
  const char *up_aqm;
  /*
   The keys of that.
   */
  const char *up_keys;
  /*
   Impairments of the propagation down: "loss=0.01, jitter=3 ms, duplicate=0.001, corrupt=0.001".
   */
  const char *impair;
  /*
   The same for the propagation up.
   */
  const char *up_impair;
  /*
   The seed of random numbers; 0 stands for 1.
   */
  uint64_t seed;
};

/*
 A packet to send.
 */
struct sojourn_packet {
  /*
   sizeof(struct sojourn_packet).
   */
  size_t size;
  /*
   The caller's own number for it, such as an index or a pointer; it comes back with the delivery.
   */
  uint64_t user;
  /*
   Bytes on the link, all headers included; above 0.
   */
  uint32_t bytes;
  /*
   The sending host: an IPv4 address, or any number of its own.
   */
  uint32_t source;
  /*
   The receiving host, likewise.
   */
  uint32_t destination;
  /*
   The sender's port.
   */
  uint16_t source_port;
  /*
   The receiver's port.
   */
  uint16_t destination_port;
  /*
   The IP protocol: 17 UDP, 6 TCP.
   */
  uint8_t protocol;
  /*
   SOJOURN_NOT_ECT, SOJOURN_ECT0, SOJOURN_ECT1 or SOJOURN_CE: the bits of the IP header.
   */
  uint8_t ecn;
  /*
   The DiffServ code point, 0 to 63.
   */
  uint8_t dscp;
  /*
   SOJOURN_DOWN or SOJOURN_UP.
   */
  uint8_t way;
};

/*
 A packet that has arrived. Instants are nanoseconds since the path's beginning.
 */
struct sojourn_delivery {
  /*
   sizeof(struct sojourn_delivery).
   */
  size_t size;
  /*
   The caller's number for it. A duplicate arrives with the same number.
   */
  uint64_t user;
  /*
   The path's number for it, counted from 0.
   */
  uint64_t number;
  /*
   When it arrived.
   */
  uint64_t at_ns;
  /*
   When it was sent.
   */
  uint64_t sent_ns;
  /*
   The time that it spent in the link's queue.
   */
  uint64_t sojourn_ns;
  /*
   Bytes on the link.
   */
  uint32_t bytes;
  /*
   The ECN field as it arrived.
   */
  uint8_t ecn;
  /*
   The DiffServ code point.
   */
  uint8_t dscp;
  /*
   Its direction.
   */
  uint8_t way;
  /*
   1 if it was damaged in propagation and is delivered nevertheless.
   */
  uint8_t damaged;
};

/*
 What happened to a packet.
 */
struct sojourn_event {
  /*
   sizeof(struct sojourn_event).
   */
  size_t size;
  /*
   When, in nanoseconds since the path's beginning.
   */
  uint64_t at_ns;
  /*
   The path's number for the packet.
   */
  uint64_t number;
  /*
   With SOJOURN_LEFT, the time that it spent in the queue; otherwise 0.
   */
  uint64_t sojourn_ns;
  /*
   The packet's direction.
   */
  uint8_t way;
  /*
   SOJOURN_ARRIVED, SOJOURN_MARKED, SOJOURN_DROPPED, SOJOURN_LEFT, SOJOURN_LOST or SOJOURN_DUPLICATED.
   */
  uint8_t verdict;
  /*
   With SOJOURN_DROPPED, SOJOURN_DROPPED_AQM or SOJOURN_DROPPED_OVERFLOW; otherwise 0.
   */
  uint8_t reason;
};

/*
 Packets of a direction: sent + duplicated = delivered + dropped + lost + those under way.
 */
struct sojourn_counts {
  /*
   sizeof(struct sojourn_counts).
   */
  size_t size;
  /*
   Sent.
   */
  uint64_t sent;
  /*
   Delivered, polled or not.
   */
  uint64_t delivered;
  /*
   Dropped by the discipline.
   */
  uint64_t dropped;
  /*
   Marked by it.
   */
  uint64_t marked;
  /*
   Lost in propagation.
   */
  uint64_t lost;
  /*
   Copies made in propagation.
   */
  uint64_t duplicated;
};

#ifdef __cplusplus
extern "C" {
#endif // __cplusplus

/*
 The version of the ABI of this library, to be compared with SOJOURN_ABI_VERSION of the header.
 */
uint32_t sojourn_abi_version(void);

/*
 Makes a path. Returns NULL on an error, whose text, cut to `error_size` bytes with its end, is then in `error`; `error` may
 be NULL.

 # Safety
 `options` is NULL or valid for as many bytes as its `size` says, and its texts are NULL or end in a zero byte. `error` is
 NULL or valid for `error_size` bytes.
 */
struct sojourn_path *sojourn_path_new(const struct sojourn_options *options,
                                      char *error,
                                      size_t error_size);

/*
 Ends a path. NULL is allowed.

 # Safety
 `path` is NULL, or of `sojourn_path_new` and was not freed.
 */
void sojourn_path_free(struct sojourn_path *path);

/*
 The text of the last call's error on this path, empty if there was none; valid until the next call.

 # Safety
 `path` is of `sojourn_path_new` and was not freed.
 */
const char *sojourn_path_error(const struct sojourn_path *path);

/*
 Sends a packet. `now_ns` is in nanoseconds since the path's beginning and must not go back from one call to the next. The
 packet's number, counted from 0, is written to `number` unless that is NULL. Returns 0, or -1 on an error.

 # Safety
 `path` is of `sojourn_path_new` and was not freed. `packet` is NULL or valid for as many bytes as its `size` says. `number`
 is NULL or valid.
 */
int32_t sojourn_path_send(struct sojourn_path *path,
                          uint64_t now_ns,
                          const struct sojourn_packet *packet,
                          uint64_t *number);

/*
 When to call `sojourn_path_poll` next, in nanoseconds since the path's beginning, never before the last call's instant;
 SOJOURN_NEVER: only after a packet was sent.

 # Safety
 `path` is of `sojourn_path_new` and was not freed.
 */
uint64_t sojourn_path_next_event(const struct sojourn_path *path);

/*
 Handles what is due by `now_ns`. Returns 1 if a packet has arrived and is written to `delivery`, 0 if none has, -1 on an
 error. To be called until it returns 0.

 # Safety
 `path` is of `sojourn_path_new` and was not freed. `delivery` is NULL or valid for as many bytes as its `size` says.
 */
int32_t sojourn_path_poll(struct sojourn_path *path,
                          uint64_t now_ns,
                          struct sojourn_delivery *delivery);

/*
 What happened to a packet, oldest first; the newest 65,536 events are kept. Returns 1 if there was one and it is written to
 `event`, 0 if there was none, -1 on an error.

 # Safety
 `path` is of `sojourn_path_new` and was not freed. `event` is NULL or valid for as many bytes as its `size` says.
 */
int32_t sojourn_path_event(struct sojourn_path *path,
                           struct sojourn_event *event);

/*
 Counts the packets of a direction. Returns 0, or -1 on an error.

 # Safety
 `path` is of `sojourn_path_new` and was not freed. `counts` is NULL or valid for as many bytes as its `size` says.
 */
int32_t sojourn_path_counts(struct sojourn_path *path,
                            uint8_t way,
                            struct sojourn_counts *counts);

/*
 Sets the rate of a direction's link, such as "5 Mbit/s". Returns 0, or -1 on an error.

 # Safety
 `path` is of `sojourn_path_new` and was not freed. `rate` is NULL or ends in a zero byte.
 */
int32_t sojourn_path_set_rate(struct sojourn_path *path, uint8_t of, const char *rate);

/*
 Sets the propagation there and back, such as "80 ms". Returns 0, or -1 on an error.

 # Safety
 `path` is of `sojourn_path_new` and was not freed. `rtt` is NULL or ends in a zero byte.
 */
int32_t sojourn_path_set_delay(struct sojourn_path *path, const char *rtt);

#ifdef __cplusplus
}  // extern "C"
#endif  // __cplusplus

#endif  /* SOJOURNPATH_H */
