/* SPDX-License-Identifier: GPL-2.0 OR MIT */
/*
 * Who has the medium: EDCA (IEEE 802.11-2020, §10.23.2), of 802.11n at 2.4 GHz. No frames here: a contender is a number.
 *
 * All hear all at once, so that the medium is busy or idle for everyone. There is no event per slot: while it is idle, a
 * contender's back-off counter gives the instant at which it sends unless somebody sends before.
 */

#include <linux/math64.h>
#include <linux/minmax.h>
#include <linux/prandom.h>

/* Tables 17-21 and 19-25; the signal extension is of §19.3.2. */
#define SLOT_NS 9000ULL
#define SIFS_NS 10000ULL
#define EXTENSION_NS 6000ULL
#define RX_START_NS 20000ULL
/* The end of AckTimeout after the end of a frame (§10.3.2.11). */
#define TIMEOUT_NS (SIFS_NS + SLOT_NS + RX_START_NS)
/* What EIFS adds after a frame in error: SIFS and an acknowledgement of 14 bytes at 6 Mbit/s (§10.3.2.3.7). */
#define EIFS_NS (SIFS_NS + 44000 + EXTENSION_NS)
/* Tries with a growing contention window (dot11ShortRetryLimit), and of a frame under Block Ack (ath9k). */
#define TRIES 7
#define MOST_TRIES 30

#define NEVER U64_MAX

struct access {
	u8 aifsn;
	u16 cw_min;
	u16 cw_max;
};

struct contender {
	struct rnd_state random;
	struct access access;
	u16 cw;
	/* The back-off counter at `from`. */
	u32 backoff;
	/* The slots that were drawn for it; of a contender that sends at once 0. */
	u32 drawn;
	/* Counts a back-off down, with or without something to send. */
	bool counts;
	bool has_frame;
	bool sends;
	/* Since when the medium has been idle for it. */
	u64 clear;
	/* When its first slot begins; NEVER: the back-off was drawn while the medium is busy. */
	u64 from;
	/* When it sends, if it has a frame by then. */
	u64 due;
	/* When it has sent. */
	u64 end;
};

static u32 draw(struct contender *one)
{
	one->drawn = prandom_u32_state(&one->random) & one->cw;
	return one->drawn;
}

static void start_counting(struct contender *one, u64 from)
{
	one->counts = true;
	one->from = from;
	one->due = from == NEVER ? NEVER : from + one->backoff * SLOT_NS;
}

/* Slots that it has counted until the medium became busy: at their start, the one at which somebody sends included. */
static u32 slots_until(const struct contender *one, u64 busy)
{
	return one->from <= busy ? div_u64(busy - one->from, SLOT_NS) + 1 : 0;
}

/* It gets something to send. `busy`: since when the medium is; NEVER: it is idle. */
static void contend(struct contender *one, u64 now, u64 busy)
{
	if (one->sends || one->has_frame)
		return;
	one->has_frame = true;
	if (busy == NEVER && one->counts) {
		one->due = max(one->due, now);
	} else if (busy == NEVER) {
		/* No back-off before a medium that is idle (§10.23.2.2). */
		one->drawn = 0;
		one->backoff = 0;
		start_counting(one, max(one->clear + SIFS_NS + one->access.aifsn * SLOT_NS, now));
	} else if (!one->counts || (one->from <= busy && one->backoff <= slots_until(one, busy))) {
		one->backoff = draw(one);
		start_counting(one, NEVER);
	}
}

/* Draws a back-off, after a failure from twice the window, and counts it down whether or not it has something to send. */
static void back_off(struct contender *one, bool failed, bool has_frame)
{
	if (failed)
		one->cw = min_t(u32, 2 * one->cw + 1, one->access.cw_max);
	one->has_frame = has_frame;
	one->backoff = draw(one);
	start_counting(one, NEVER);
}

/* The medium, busy since `busy`, is idle since `clear` for it. */
static void resume(struct contender *one, u64 busy, u64 clear)
{
	u32 passed = slots_until(one, busy);

	one->clear = clear;
	if (!one->counts)
		return;
	if (one->from <= busy && !one->has_frame && one->due <= busy) {
		one->counts = false;
		return;
	}
	one->backoff -= min(one->backoff, passed);
	start_counting(one, clear + SIFS_NS + one->access.aifsn * SLOT_NS);
}
