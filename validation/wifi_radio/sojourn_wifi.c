// SPDX-License-Identifier: GPL-2.0 OR MIT
/*
 * A radio whose medium is a timer, below mac80211's own queues.
 *
 * mac80211's part is what is measured: FQ-CoDel per station and TID, the order of stations by airtime, and AQL. This
 * driver's part is simple: per access category it holds at most `ready` transmissions of up to `frames` frames each;
 * one transmission at a time is on the air, of the highest category first, for the time that its frames take at the
 * station's rate plus an overhead. Then the station's airtime is reported and its frames are acknowledged. There is
 * no contention, no loss, no rate control: a station's rate is the highest that it announces.
 *
 * With `amsdu`, mac80211 forms A-MSDUs as packets enter its queues (TX_AMSDU). A frame is then an MPDU of several packets.
 *
 * With `edca`, all who have something to send contend for the medium as the standard has it (contention.h), the access point
 * with each of its access categories. Frames arrive before the answer. Who collides sends the same again. A station then has
 * a device as the access point's, which prepares `ready` transmissions as packets come. As ath9k, a device takes a frame
 * more than fits, and keeps it for its next transmission.
 *
 * With `peers` as well, stations answer. Each is an Ethernet interface, air1, air2, …, to be moved to a namespace of its
 * own. All frames of a transmission arrive there at its end, as one poll of a device. What a station sends waits in a FIFO.
 *
 * Every arrival, every choice of mac80211 and the end of every transmission is a record in debugfs: sojourn_wifi/log.
 */

#include <linux/debugfs.h>
#include <linux/etherdevice.h>
#include <linux/hrtimer.h>
#include <linux/if_packet.h>
#include <linux/ip.h>
#include <linux/module.h>
#include <linux/version.h>
#include <linux/vmalloc.h>
#include <net/cfg80211.h>
#include <net/mac80211.h>
#include <net/sock.h>

#include "contention.h"

#if LINUX_VERSION_CODE < KERNEL_VERSION(6, 7, 0)
#define ieee80211_tx_status_skb ieee80211_tx_status
#endif

#define MOST_PEERS 250
/* Records that the log can hold. */
#define MOST_RECORDS (1 << 20)
/* Without edca: time of a transmission besides preamble and frames. */
#define OVERHEAD_NS 150000

#define PARAMETER(_type, _name, _value, _about) \
	static _type _name = _value;            \
	module_param(_name, _type, 0444);       \
	MODULE_PARM_DESC(_name, _about)
#define PARAMETERS(_name, _count, _about)             \
	static uint _name[_count];                    \
	module_param_array(_name, uint, NULL, 0444);  \
	MODULE_PARM_DESC(_name, _about)

PARAMETER(bool, aql, true, "announce airtime queue limits");
PARAMETER(bool, fairness, true, "announce airtime fairness, and report airtime");
PARAMETER(uint, ready, 2, "transmissions held per access category");
PARAMETER(uint, frames, 32, "most frames of a transmission");
PARAMETER(uint, longest, 4000000, "longest time of a transmission's frames in ns; a single frame may take longer");
PARAMETER(bool, edca, false, "contend for the medium, collide and repeat, as 802.11n at 2.4 GHz, with CCMP");
PARAMETER(uint, seed, 0, "of the back-offs");
PARAMETER(uint, peers, 0, "with edca: stations that answer, the first ones, each with an interface");
PARAMETER(bool, gro, true, "stations merge what arrives together (generic receive offload)");
PARAMETER(bool, amsdu, false, "announce A-MSDU, for stations with HT rates; not with stations that answer");
PARAMETERS(amsdu_len, MOST_PEERS, "by station: longest A-MSDU that it takes in bytes; 0: as its capabilities say");
PARAMETERS(amsdu_rate_len, MOST_PEERS, "by station: longest A-MSDU by rate control; 0: as mac80211 has it");
PARAMETERS(amsdu_subframes, MOST_PEERS, "by station: most packets of an A-MSDU; 0: any number");
PARAMETERS(amsdu_tid_len, IEEE80211_NUM_TIDS, "by TID: longest A-MSDU in bytes; 0: no limit of its own");
PARAMETER(uint, fragments, 0, "most fragments of memory of a frame; 0: any number");

enum kind {
	/* A packet is about to enter mac80211's queues. */
	ARRIVAL = 1,
	/* mac80211 was asked for the next station: its number, or NOBODY. `value`: the access category. */
	PICK,
	/* A frame was pulled from the picked station's queue. `value`: AQL's estimate of its airtime in µs. */
	FRAME,
	/* mac80211 gave no further frame of the picked station. */
	EMPTY,
	/* The picked station's turn is over. */
	RETURN,
	/* A transmission has left the air. `value`: the airtime in µs that is charged; `len`: its frames. */
	DONE,
	/* A station has a packet to send. */
	ANSWER,
	/* A packet of a station has left the air. `value`: of TCP, what it acknowledges. */
	HEARD,
	/* As DONE, after HEARD of each frame. */
	DONE_UP,
	/* A further packet of the frame before, which is an A-MSDU. `len`: with its header, and padding before that. */
	SUBFRAME,
	/*
	 * With edca: somebody begins to send. `tid`: the access category; `ds`: tries before; `len`: frames; `port`: slots of the
	 * back-off; `number`: how many send at once; `value`: time on the air in ns, with the answer if there is one;
	 * `hash`: whether from the station.
	 */
	TRY,
};

#define NOBODY 255

/* What the log consists of. Native byte order. */
struct record {
	u64 ns;
	u8 kind;
	/* The last byte of the station's address. */
	u8 station;
	u8 tid;
	/* The DS field: code point and ECN. */
	u8 ds;
	u16 len;
	/* The destination port. */
	u16 port;
	/* The first four bytes of the datagram, or the sequence number of TCP. */
	u32 number;
	u32 value;
	/* Of an arrival and a frame: what mac80211 chooses its queue by. */
	u32 hash;
	/* Memory of the packet as the kernel counts it. */
	u32 truesize;
};

struct transmission {
	struct list_head list;
	/* From a station: 802.3; to it: 802.11. */
	bool up;
	struct sk_buff_head frames;
	struct ieee80211_sta *sta;
	u8 station;
	u8 tid;
	u8 ac;
	u64 ns;
	/* With edca: of the answer and the SIFS before it; and how often it was sent in vain. */
	u64 answer_ns;
	unsigned int tries;
};

struct station {
	/* Index of a legacy rate; or of an HT rate. */
	u8 rate;
	bool ht;
	/* The longest A-MSDU for it; 0: none. */
	u16 amsdu_len;
};

/* A station that answers: the private part of its interface. */
struct peer {
	struct radio *radio;
	u8 number;
	struct napi_struct napi;
	/* What has arrived and was not polled yet. */
	struct sk_buff_head arrived;
	/* The rest is under the radio's lock. `sta` is NULL while the station is not associated. */
	struct ieee80211_sta *sta;
	struct sk_buff_head to_send;
	/* With edca: transmissions that are prepared. */
	struct list_head waiting;
	unsigned int held;
};

/* The most that a station holds: an interface's queue (tx_queue_len). */
#define MOST_TO_SEND 1000

/* The access point's categories, then the stations. */
#define MOST_CONTENDERS (IEEE80211_NUM_ACS + MOST_PEERS)

struct medium {
	struct contender contenders[MOST_CONTENDERS];
	/* Since when somebody sends; NEVER: nobody does. */
	u64 busy;
	/* The frames of the only sender arrive when the timer is due next. */
	bool arriving;
};

struct radio {
	struct ieee80211_hw *hw;
	/* By station, from 1 on. */
	struct net_device *air[MOST_PEERS + 1];
	/* The rest is under this lock. */
	spinlock_t lock;
	struct list_head waiting[IEEE80211_NUM_ACS];
	unsigned int held[IEEE80211_NUM_ACS];
	struct transmission *on_air;
	struct medium medium;
	struct hrtimer timer;
	struct packet_type tap;
	struct debugfs_blob_wrapper blob;
	u32 lost;
};

static struct record *note(struct radio *radio, enum kind kind, u8 station)
{
	static struct record nowhere;
	struct record *record = &nowhere;

	if (radio->blob.size / sizeof(*record) < MOST_RECORDS) {
		record = radio->blob.data + radio->blob.size;
		radio->blob.size += sizeof(*record);
	} else {
		radio->lost++;
	}
	memset(record, 0, sizeof(*record));
	record->ns = ktime_get_ns();
	record->kind = kind;
	record->station = station;
	return record;
}

/* Notes an IPv4 datagram or segment that begins at `offset` of the packet. Returns what a segment acknowledges. */
static u32 note_packet(struct record *record, const struct sk_buff *skb, int offset)
{
	/* Of UDP: `first` is length and checksum, `second` begins the datagram. Of TCP: what it sends and acknowledges. */
	struct {
		struct iphdr ip;
		__be16 source, dest;
		__be32 first, second;
	} __packed head;
	bool tcp;

	record->len = skb->len;
	record->truesize = skb->truesize;
	if (skb_copy_bits(skb, offset, &head, sizeof(head)) || head.ip.version != 4)
		return 0;
	tcp = head.ip.protocol == IPPROTO_TCP;
	record->ds = head.ip.tos;
	record->port = ntohs(head.dest);
	record->number = ntohl(tcp ? head.first : head.second);
	return tcp ? ntohl(head.second) : 0;
}

/* Sees every packet on its way into the interface. */
static int tap(struct sk_buff *skb, struct net_device *dev, struct packet_type *type, struct net_device *orig)
{
	struct radio *radio = container_of(type, struct radio, tap);
	struct record *record;

	if (skb->pkt_type == PACKET_OUTGOING) {
		spin_lock_bh(&radio->lock);
		record = note(radio, ARRIVAL, eth_hdr(skb)->h_dest[ETH_ALEN - 1]);
		note_packet(record, skb, skb_network_offset(skb));
		record->hash = skb_get_hash(skb);
		spin_unlock_bh(&radio->lock);
	}
	kfree_skb(skb);
	return 0;
}

/* Legacy rates in units of 100 kbit/s. */
#define RATE(_rate, _value, _flags) { .bitrate = (_rate), .hw_value = (_value), .flags = (_flags) }
static struct ieee80211_rate bitrates[] = {
	RATE(10, 0, 0),   RATE(20, 1, IEEE80211_RATE_SHORT_PREAMBLE),
	RATE(55, 2, IEEE80211_RATE_SHORT_PREAMBLE), RATE(110, 3, IEEE80211_RATE_SHORT_PREAMBLE),
	RATE(60, 4, 0),   RATE(90, 5, 0),   RATE(120, 6, 0),  RATE(180, 7, 0),
	RATE(240, 8, 0),  RATE(360, 9, 0),  RATE(480, 10, 0), RATE(540, 11, 0),
};
#define CCK_RATES 4

static struct ieee80211_channel channels[] = {
	{ .band = NL80211_BAND_2GHZ, .center_freq = 2437, .hw_value = 6, .max_power = 20 },
};

static struct ieee80211_supported_band band = {
	.band = NL80211_BAND_2GHZ,
	.channels = channels,
	.n_channels = ARRAY_SIZE(channels),
	.bitrates = bitrates,
	.n_bitrates = ARRAY_SIZE(bitrates),
	.ht_cap = {
		.ht_supported = true,
		.ampdu_factor = IEEE80211_HT_MAX_AMPDU_64K,
		.ampdu_density = IEEE80211_HT_MPDU_DENSITY_NONE,
		.mcs = { .rx_mask = { 0xff, 0xff }, .tx_params = IEEE80211_HT_MCS_TX_DEFINED },
	},
};

static const u16 bits_per_symbol[] = { 26, 52, 78, 104, 156, 208, 234, 260 };

static u32 __maybe_unused kbps(const struct station *to)
{
	if (to->ht)
		return bits_per_symbol[to->rate % 8] * (to->rate / 8 + 1) * 250;
	return bitrates[to->rate].bitrate * 100;
}

/* The time of a PSDU in whole symbols (IEEE 802.11-2020, §16.3.4, §17.4.3, §19.4.3), and of its preamble. */
static u64 psdu_ns(const struct station *to, unsigned int bytes)
{
	unsigned int bits, streams;

	if (to->ht) {
		streams = to->rate / 8 + 1;
		bits = bits_per_symbol[to->rate % 8] * streams;
		return 1000ULL * (32 + 4 * streams + 4 * DIV_ROUND_UP(22 + 8 * bytes, bits));
	}
	if (to->rate < CCK_RATES)
		return 192000ULL + 80000ULL * bytes / bitrates[to->rate].bitrate;
	bits = bitrates[to->rate].bitrate * 4 / 10;
	return 1000ULL * (20 + 4 * DIV_ROUND_UP(22 + 8 * bytes, bits));
}

/* A frame's bytes in a PSDU: its check sequence; in an aggregate also a delimiter, and padding to four bytes. */
static unsigned int psdu_bytes(const struct station *to, unsigned int len)
{
	return to->ht ? ALIGN(len + FCS_LEN + 4, 4) : len + FCS_LEN;
}

#define LONGEST_FRAME 1600

/* Behind the header of a frame or of a subframe is the one of LLC and SNAP. */
#define LLC_SNAP 8

/* Notes a frame and the packets in it. */
static void note_frame(struct radio *radio, u8 number, const struct ieee80211_txq *txq, struct sk_buff *skb)
{
	struct ieee80211_hdr *hdr = (void *)skb->data;
	unsigned int head = ieee80211_hdrlen(hdr->frame_control), length = skb_headlen(skb) - head;
	bool is_amsdu = ieee80211_is_data_qos(hdr->frame_control) &&
			*ieee80211_get_qos_ctl(hdr) & IEEE80211_QOS_CTL_A_MSDU_PRESENT;
	struct record *record = note(radio, FRAME, number);
	const struct sk_buff *each;

	note_packet(record, skb, head + (is_amsdu ? ETH_HLEN : 0) + LLC_SNAP);
	record->tid = txq->tid;
	record->value = ieee80211_info_get_tx_time_est(IEEE80211_SKB_CB(skb));
	record->hash = skb->hash;
	skb_walk_frags(skb, each) {
		record = note(radio, SUBFRAME, number);
		note_packet(record, each, ALIGN(length, 4) - length + ETH_HLEN + LLC_SNAP);
		record->tid = txq->tid;
		length += each->len;
	}
}

/* What a packet of Ethernet is longer by on the air: a QoS header, and the one of LLC and SNAP without the type. */
#define LONGER_ON_AIR (26 + 8 - ETH_HLEN)

/* With edca: the bytes that CCMP adds to a frame (§12.5.3.2), and the most of an A-MPDU of 802.11n (§19.5). */
#define CCMP 16
#define MOST_BYTES 65535

/* With edca: a PSDU of `bytes` with another frame. Each of an aggregate has a delimiter, all but the last are padded (§9.7.1). */
static unsigned int with_frame(unsigned int bytes, const struct sk_buff *skb, bool up)
{
	return ALIGN(bytes, 4) + 4 + skb->len + (up ? LONGER_ON_AIR : 0) + CCMP + FCS_LEN;
}

static unsigned int edca_bytes(const struct sk_buff_head *frames, bool up)
{
	unsigned int bytes = 0;
	struct sk_buff *skb;

	skb_queue_walk(frames, skb)
		bytes = with_frame(bytes, skb, up);
	return skb_queue_len(frames) > 1 ? bytes : bytes - 4;
}

/* With edca: how long a PSDU is on the air. */
static u64 edca_ns(const struct station *to, unsigned int bytes)
{
	return psdu_ns(to, bytes) + (to->ht || to->rate >= CCK_RATES ? EXTENSION_NS : 0);
}

/* With edca: whether an aggregate may have this frame, too. */
static bool fits(const struct station *to, const struct sk_buff_head *frames, const struct sk_buff *skb, bool up)
{
	unsigned int bytes = skb_queue_empty(frames) ? 0 : edca_bytes(frames, up), more = with_frame(bytes, skb, up);

	return !bytes || (more <= MOST_BYTES && edca_ns(to, more) <= longest);
}

/* With edca: the frame that did not fit into the last transmission. As ath9k's, it is the first of the next one. */
static struct sk_buff **kept(struct ieee80211_txq *txq)
{
	return (void *)txq->drv_priv;
}

/* A queue's next frame for these; NULL if it gives none. */
static struct sk_buff *take(struct radio *radio, struct ieee80211_txq *txq, const struct station *to,
			    const struct sk_buff_head *frames)
{
	struct sk_buff *skb;

	if (!edca)
		return ieee80211_tx_dequeue(radio->hw, txq);
	skb = *kept(txq);
	*kept(txq) = NULL;
	if (!skb)
		skb = ieee80211_tx_dequeue(radio->hw, txq);
	if (!skb || fits(to, frames, skb, false))
		return skb;
	*kept(txq) = skb;
	return NULL;
}

/* Pulls frames of one queue for a transmission; NULL if the queue gives none. */
static struct transmission *fill(struct radio *radio, struct ieee80211_txq *txq)
{
	static const struct station group = { .rate = 0 };
	const struct station *to = txq->sta ? (void *)txq->sta->drv_priv : &group;
	u8 number = txq->sta ? txq->sta->addr[ETH_ALEN - 1] : NOBODY;
	unsigned int most = to->ht ? frames : 1;
	struct transmission *new = kzalloc(sizeof(*new), GFP_ATOMIC);
	unsigned int bytes = 0;

	if (!new)
		return NULL;
	__skb_queue_head_init(&new->frames);
	while (skb_queue_len(&new->frames) < most) {
		struct sk_buff *skb;

		if (!edca && bytes && psdu_ns(to, bytes + max_t(unsigned int, LONGEST_FRAME, to->amsdu_len)) > longest)
			break;
		skb = take(radio, txq, to, &new->frames);
		if (!skb) {
			note(radio, EMPTY, number);
			break;
		}
		bytes += psdu_bytes(to, skb->len);
		note_frame(radio, number, txq, skb);
		__skb_queue_tail(&new->frames, skb);
	}
	if (skb_queue_empty(&new->frames)) {
		kfree(new);
		return NULL;
	}
	new->sta = txq->sta;
	new->station = number;
	new->tid = txq->tid;
	new->ac = txq->ac;
	new->ns = psdu_ns(to, bytes) + OVERHEAD_NS;
	return new;
}

/* Fills the room that the device has for a category. */
static void pull(struct radio *radio, u8 ac)
{
	while (radio->held[ac] < ready) {
		struct transmission *new;
		struct ieee80211_txq *txq;
		struct record *record;

		ieee80211_txq_schedule_start(radio->hw, ac);
		txq = ieee80211_next_txq(radio->hw, ac);
		record = note(radio, PICK, txq && txq->sta ? txq->sta->addr[ETH_ALEN - 1] : NOBODY);
		record->tid = txq ? txq->tid : NOBODY;
		record->value = ac;
		if (!txq) {
			ieee80211_txq_schedule_end(radio->hw, ac);
			break;
		}
		new = fill(radio, txq);
		ieee80211_return_txq(radio->hw, txq, edca && *kept(txq));
		ieee80211_txq_schedule_end(radio->hw, ac);
		note(radio, RETURN, txq->sta ? txq->sta->addr[ETH_ALEN - 1] : NOBODY)->tid = txq->tid;
		if (!new)
			continue;
		list_add_tail(&new->list, &radio->waiting[ac]);
		radio->held[ac]++;
	}
}

/* The access point's next transmission, if it has one. */
static struct transmission *next_down(struct radio *radio)
{
	struct transmission *next = NULL;
	int ac;

	for (ac = 0; ac < IEEE80211_NUM_ACS && !next; ac++) {
		next = list_first_entry_or_null(&radio->waiting[ac], struct transmission, list);
		if (next)
			list_del(&next->list);
	}
	return next;
}

/* A station's next transmission, if it has one. */
static struct transmission *next_up(struct peer *peer)
{
	const struct station *from = peer->sta ? (void *)peer->sta->drv_priv : NULL;
	unsigned int most = from && from->ht ? frames : 1;
	struct transmission *next;
	struct sk_buff *skb;

	if (!from || skb_queue_empty(&peer->to_send))
		return NULL;
	next = kzalloc(sizeof(*next), GFP_ATOMIC);
	if (!next)
		return NULL;
	__skb_queue_head_init(&next->frames);
	while (skb_queue_len(&next->frames) < most && (skb = skb_peek(&peer->to_send))) {
		if (!fits(from, &next->frames, skb, true))
			break;
		__skb_unlink(skb, &peer->to_send);
		__skb_queue_tail(&next->frames, skb);
	}
	next->up = true;
	next->sta = peer->sta;
	next->station = peer->number;
	next->ac = IEEE80211_AC_BE;
	return next;
}

static void contend_all(struct radio *radio);

/* Puts the next transmission on the air, if that is free. */
static void transmit(struct radio *radio)
{
	if (edca) {
		contend_all(radio);
	} else if (!radio->on_air) {
		radio->on_air = next_down(radio);
		if (radio->on_air)
			hrtimer_start(&radio->timer, ns_to_ktime(radio->on_air->ns), HRTIMER_MODE_REL_SOFT);
	}
}

/* Hands a copy of a frame to its station. */
static void deliver(struct net_device *dev, const struct sk_buff *frame)
{
	struct sk_buff *skb = netdev_alloc_skb_ip_align(dev, frame->len);
	struct peer *peer = netdev_priv(dev);

	if (!skb)
		return;
	skb_copy_bits(frame, 0, skb_put(skb, frame->len), frame->len);
	if (!netif_running(dev) || ieee80211_data_to_8023(skb, dev->dev_addr, NL80211_IFTYPE_STATION)) {
		kfree_skb(skb);
		return;
	}
	skb->protocol = eth_type_trans(skb, dev);
	skb_queue_tail(&peer->arrived, skb);
	napi_schedule(&peer->napi);
}

/* The frames of a transmission arrive at its station. */
static void arrive(struct radio *radio, const struct transmission *done)
{
	struct record *record = note(radio, DONE, done->station);
	struct sk_buff *skb;

	record->tid = done->tid;
	record->len = skb_queue_len(&done->frames);
	record->value = div_u64(done->ns, 1000);
	if (done->station && done->station <= peers)
		skb_queue_walk(&done->frames, skb)
			deliver(radio->air[done->station], skb);
}

/* Tells mac80211 how a transmission went. */
static void report(struct radio *radio, struct transmission *done, bool answered)
{
	const struct station *to = done->sta ? (void *)done->sta->drv_priv : NULL;
	/* Of a try that failed as well. */
	u32 airtime = div_u64(done->ns, 1000) * (done->tries + answered);
	struct sk_buff *skb;

#ifdef EXPECTS_THROUGHPUT
	/* What CoDel's parameters of slow stations depend on. */
	if (to)
		ieee80211_sta_set_expected_throughput(done->sta, kbps(to));
#endif
	if (done->sta && fairness)
		ieee80211_sta_register_airtime(done->sta, done->tid, airtime, 0);
	while ((skb = __skb_dequeue(&done->frames))) {
		struct ieee80211_tx_info *info = IEEE80211_SKB_CB(skb);

		ieee80211_tx_info_clear_status(info);
		info->status.rates[0].idx = to ? to->rate : 0;
		info->status.rates[0].count = 1;
		info->status.rates[0].flags = to && to->ht ? IEEE80211_TX_RC_MCS : 0;
		info->status.rates[1].idx = -1;
		if (answered)
			info->flags |= IEEE80211_TX_STAT_ACK;
		ieee80211_tx_status_skb(radio->hw, skb);
	}
}

/* Hands what a station has sent to the access point's interface, in memory of that device as other hosts receive it. */
static void hear(struct radio *radio, struct transmission *done)
{
	u32 airtime = div_u64(done->ns, 1000);
	unsigned int count = skb_queue_len(&done->frames);
	struct sk_buff *skb, *copy;
	struct record *record;

	if (done->sta && fairness)
		ieee80211_sta_register_airtime(done->sta, done->tid, 0, airtime);
	while ((skb = __skb_dequeue(&done->frames))) {
		record = note(radio, HEARD, done->station);
		record->value = note_packet(record, skb, ETH_HLEN);
		copy = radio->tap.dev ? netdev_alloc_skb_ip_align(radio->tap.dev, skb->len) : NULL;
		if (copy) {
			skb_copy_bits(skb, 0, skb_put(copy, skb->len), skb->len);
			dev_forward_skb(radio->tap.dev, copy);
		}
		/* Its sender may send more. */
		consume_skb(skb);
	}
	record = note(radio, DONE_UP, done->station);
	record->len = count;
	record->value = airtime;
}

/*
 * The medium with edca.
 */

/* Parameters of an access point in hostapd.conf (tx_queue_data0 to 3), voice first, and of a station's best effort. */
static const struct access of_access_point[] = { { 1, 3, 7 }, { 1, 7, 15 }, { 3, 15, 63 }, { 7, 15, 1023 } };
static const struct access of_station = { 3, 15, 1023 };

/* The time of an answer, a SIFS before it included, at the highest basic rate of 6, 12 and 24 Mbit/s (§10.6.6.5.2). */
static u64 answer_ns(const struct station *to, bool is_aggregate)
{
	static const u8 bits[] = { 24, 48, 48, 96, 96, 96, 96, 96 };
	static const u8 legacy_bits[] = { 24, 24, 48, 48, 96, 96, 96, 96 };
	unsigned int bytes = is_aggregate ? 32 : 14, per_symbol;

	if (!to->ht && to->rate < CCK_RATES)
		return SIFS_NS + 192000 + (to->rate ? 4000 : 8000) * bytes;
	per_symbol = to->ht ? bits[to->rate % 8] : legacy_bits[to->rate - CCK_RATES];
	return SIFS_NS + 20000 + 4000 * DIV_ROUND_UP(22 + 8 * bytes, per_symbol) + EXTENSION_NS;
}

static void set_durations(struct transmission *of)
{
	static const struct station group = { .rate = 0 };
	const struct station *to = of->sta ? (void *)of->sta->drv_priv : &group;

	of->ns = edca_ns(to, edca_bytes(&of->frames, of->up));
	of->answer_ns = of->sta ? answer_ns(to, skb_queue_len(&of->frames) > 1) : 0;
}

static struct peer *peer_of(const struct radio *radio, unsigned int at)
{
	return netdev_priv(radio->air[at - IEEE80211_NUM_ACS + 1]);
}

static unsigned int contenders(void)
{
	return IEEE80211_NUM_ACS + peers;
}

/* A contender's prepared transmissions. */
static struct list_head *prepared(struct radio *radio, unsigned int at)
{
	struct transmission *next;
	struct peer *peer;

	if (at < IEEE80211_NUM_ACS)
		return &radio->waiting[at];
	peer = peer_of(radio, at);
	while (peer->held < ready && (next = next_up(peer))) {
		list_add_tail(&next->list, &peer->waiting);
		peer->held++;
	}
	return &peer->waiting;
}

static struct transmission *first_of(struct radio *radio, unsigned int at)
{
	return list_first_entry_or_null(prepared(radio, at), struct transmission, list);
}

/* Sets the timer to when somebody sends, if nobody does. */
static void set_timer(struct radio *radio)
{
	struct medium *medium = &radio->medium;
	u64 next = NEVER;
	unsigned int at;

	if (medium->busy != NEVER)
		return;
	for (at = 0; at < contenders(); at++)
		if (medium->contenders[at].counts && medium->contenders[at].has_frame)
			next = min(next, medium->contenders[at].due);
	if (next != NEVER)
		hrtimer_start(&radio->timer, ns_to_ktime(next), HRTIMER_MODE_ABS_SOFT);
}

/* Whoever has something to send contends. */
static void contend_all(struct radio *radio)
{
	struct medium *medium = &radio->medium;
	u64 now = ktime_get_ns();
	unsigned int at;

	for (at = 0; at < contenders(); at++)
		if (first_of(radio, at))
			contend(&medium->contenders[at], now, medium->busy);
	set_timer(radio);
}

/* Those whose back-off is over send. */
static void begin(struct radio *radio, u64 now)
{
	struct medium *medium = &radio->medium;
	unsigned int at, senders = 0;
	u64 end = 0;

	for (at = 0; at < contenders(); at++) {
		struct contender *one = &medium->contenders[at];

		if (!one->counts || !one->has_frame || one->due > now)
			continue;
		if (at < IEEE80211_NUM_ACS && senders) {
			/* A category of lower priority, of the same sender (§10.23.2.4). */
			back_off(one, true, true);
			continue;
		}
		one->counts = false;
		one->has_frame = false;
		one->sends = true;
		senders++;
	}
	medium->busy = now;
	medium->arriving = senders == 1;
	for (at = 0; at < contenders(); at++) {
		struct contender *one = &medium->contenders[at];
		struct transmission *sent;
		struct record *record;

		if (!one->sends)
			continue;
		sent = first_of(radio, at);
		set_durations(sent);
		one->end = now + sent->ns;
		end = max(end, one->end);
		record = note(radio, TRY, sent->station);
		record->tid = sent->ac;
		record->ds = sent->tries;
		record->len = skb_queue_len(&sent->frames);
		record->port = one->drawn;
		record->number = senders;
		record->value = sent->ns + (senders == 1 ? sent->answer_ns : 0);
		record->hash = sent->up;
	}
	hrtimer_start(&radio->timer, ns_to_ktime(end), HRTIMER_MODE_ABS_SOFT);
}

/* The frames of the only sender arrive. Those that a station sent leave it. */
static void deliver_sent(struct radio *radio, u64 now)
{
	unsigned int at = 0;
	struct transmission *sent;

	while (!radio->medium.contenders[at].sends)
		at++;
	sent = first_of(radio, at);
	if (sent->up)
		hear(radio, sent);
	else
		arrive(radio, sent);
	radio->medium.arriving = false;
	hrtimer_start(&radio->timer, ns_to_ktime(now + sent->answer_ns), HRTIMER_MODE_ABS_SOFT);
}

/* A sender has had its answer, or none. */
static void conclude(struct radio *radio, unsigned int at, bool answered)
{
	struct contender *one = &radio->medium.contenders[at];
	struct transmission *sent = first_of(radio, at);

	if (!answered)
		sent->tries++;
	if (answered || sent->tries % TRIES == 0)
		one->cw = one->access.cw_min;
	else
		one->cw = min_t(u32, 2 * one->cw + 1, one->access.cw_max);
	if (answered || sent->tries >= MOST_TRIES) {
		list_del(&sent->list);
		if (!sent->up) {
			report(radio, sent, answered);
			radio->held[at]--;
		} else {
			__skb_queue_purge(&sent->frames);
			peer_of(radio, at)->held--;
		}
		kfree(sent);
		if (at < IEEE80211_NUM_ACS)
			pull(radio, at);
	}
	back_off(one, false, first_of(radio, at));
}

/* The exchange, or the collision, is over. */
static void conclude_all(struct radio *radio, u64 now)
{
	struct medium *medium = &radio->medium;
	unsigned int at, senders = 0;
	bool answered;

	for (at = 0; at < contenders(); at++)
		senders += medium->contenders[at].sends;
	answered = senders == 1;
	for (at = 0; at < contenders(); at++)
		if (medium->contenders[at].sends)
			conclude(radio, at, answered);
	for (at = 0; at < contenders(); at++) {
		struct contender *one = &medium->contenders[at];
		u64 clear = answered ? now : now + EIFS_NS;

		/* A sender waits for its answer; what it did not hear was no error to it. */
		if (one->sends && !answered)
			clear = max(now, one->end + TIMEOUT_NS);
		one->sends = false;
		resume(one, medium->busy, clear);
	}
	medium->busy = NEVER;
	contend_all(radio);
}

/* The timer is due. */
static void medium_acts(struct radio *radio, u64 now)
{
	struct medium *medium = &radio->medium;

	if (medium->busy == NEVER)
		begin(radio, now);
	else if (medium->arriving)
		deliver_sent(radio, now);
	else
		conclude_all(radio, now);
}

static void start_medium(struct medium *medium)
{
	unsigned int at;

	medium->busy = NEVER;
	for (at = 0; at < MOST_CONTENDERS; at++) {
		struct contender *one = &medium->contenders[at];

		one->access = at < IEEE80211_NUM_ACS ? of_access_point[at] : of_station;
		one->cw = one->access.cw_min;
		prandom_seed_state(&one->random, ((u64)seed << 16 | at) * 0x9e3779b97f4a7c15ULL);
	}
}

/* The transmission on the air is over. */
static enum hrtimer_restart over(struct hrtimer *timer)
{
	struct radio *radio = container_of(timer, struct radio, timer);
	struct transmission *done;

	spin_lock_bh(&radio->lock);
	if (edca)
		medium_acts(radio, ktime_to_ns(hrtimer_get_expires(timer)));
	done = radio->on_air;
	radio->on_air = NULL;
	if (done) {
		u8 ac = done->ac;

		arrive(radio, done);
		report(radio, done, true);
		radio->held[ac]--;
		kfree(done);
		transmit(radio);
		pull(radio, ac);
		transmit(radio);
	}
	spin_unlock_bh(&radio->lock);
	return HRTIMER_NORESTART;
}

static void radio_wake_tx_queue(struct ieee80211_hw *hw, struct ieee80211_txq *txq)
{
	struct radio *radio = *(struct radio **)hw->priv;

	spin_lock_bh(&radio->lock);
	pull(radio, txq->ac);
	transmit(radio);
	spin_unlock_bh(&radio->lock);
}

/* Frames that have no queue in mac80211: management. Nobody would hear them. */
static void radio_tx(struct ieee80211_hw *hw, struct ieee80211_tx_control *control, struct sk_buff *skb)
{
	ieee80211_free_txskb(hw, skb);
}

static int radio_start(struct ieee80211_hw *hw)
{
	return 0;
}

static void discard(struct radio *radio, struct transmission *transmission)
{
	struct sk_buff *skb;

	while ((skb = __skb_dequeue(&transmission->frames))) {
		if (transmission->up)
			kfree_skb(skb);
		else
			ieee80211_free_txskb(radio->hw, skb);
	}
	kfree(transmission);
}

/* Nobody contends or sends any longer. */
static void discard_prepared(struct radio *radio)
{
	struct transmission *each, *next;
	unsigned int number;

	for (number = 1; number <= peers; number++) {
		struct peer *peer = netdev_priv(radio->air[number]);

		list_for_each_entry_safe(each, next, &peer->waiting, list)
			discard(radio, each);
		INIT_LIST_HEAD(&peer->waiting);
		peer->held = 0;
	}
	memset(&radio->medium, 0, sizeof(radio->medium));
	start_medium(&radio->medium);
}

#if LINUX_VERSION_CODE >= KERNEL_VERSION(6, 11, 0)
static void radio_stop(struct ieee80211_hw *hw, bool suspend)
#else
static void radio_stop(struct ieee80211_hw *hw)
#endif
{
	struct radio *radio = *(struct radio **)hw->priv;
	struct transmission *each, *next;
	int ac;

	hrtimer_cancel(&radio->timer);
	spin_lock_bh(&radio->lock);
	for (ac = 0; ac < IEEE80211_NUM_ACS; ac++) {
		list_for_each_entry_safe(each, next, &radio->waiting[ac], list)
			discard(radio, each);
		INIT_LIST_HEAD(&radio->waiting[ac]);
		radio->held[ac] = 0;
	}
	if (radio->on_air)
		discard(radio, radio->on_air);
	radio->on_air = NULL;
	discard_prepared(radio);
	spin_unlock_bh(&radio->lock);
}

#if LINUX_VERSION_CODE >= KERNEL_VERSION(6, 17, 0)
static int radio_config(struct ieee80211_hw *hw, int radio_idx, u32 changed)
#else
static int radio_config(struct ieee80211_hw *hw, u32 changed)
#endif
{
	return 0;
}

/* mac80211 asks it of drivers that control rates. */
#if LINUX_VERSION_CODE >= KERNEL_VERSION(6, 17, 0)
static int radio_set_rts_threshold(struct ieee80211_hw *hw, int radio_idx, u32 value)
#else
static int radio_set_rts_threshold(struct ieee80211_hw *hw, u32 value)
#endif
{
	return 0;
}

static void radio_configure_filter(struct ieee80211_hw *hw, unsigned int changed, unsigned int *total, u64 multicast)
{
	*total = 0;
}

static int radio_add_interface(struct ieee80211_hw *hw, struct ieee80211_vif *vif)
{
	struct radio *radio = *(struct radio **)hw->priv;

	if (radio->tap.dev)
		return -EBUSY;
	radio->tap.type = htons(ETH_P_ALL);
	radio->tap.func = tap;
	radio->tap.dev = ieee80211_vif_to_wdev(vif)->netdev;
	dev_add_pack(&radio->tap);
	return 0;
}

static void radio_remove_interface(struct ieee80211_hw *hw, struct ieee80211_vif *vif)
{
	struct radio *radio = *(struct radio **)hw->priv;

	__dev_remove_pack(&radio->tap);
	radio->tap.dev = NULL;
}

/* Sets what limits a station's A-MSDUs. */
static void limit_amsdu(struct ieee80211_sta *sta, struct station *station, unsigned int number)
{
	struct ieee80211_sta_aggregates *to = &sta->deflink.agg;
	unsigned int tid;

	if (!amsdu || !station->ht || !number || number > MOST_PEERS)
		return;
	if (amsdu_len[number - 1])
		to->max_amsdu_len = amsdu_len[number - 1];
	if (amsdu_rate_len[number - 1])
		to->max_rc_amsdu_len = amsdu_rate_len[number - 1];
	for (tid = 0; tid < IEEE80211_NUM_TIDS; tid++)
		to->max_tid_amsdu_len[tid] = amsdu_tid_len[tid];
	sta->max_amsdu_subframes = amsdu_subframes[number - 1];
	ieee80211_sta_recalc_aggregates(sta);
	station->amsdu_len = to->max_amsdu_len;
}

/* A station's rate is the highest of those that it announces. */
static int radio_sta_state(struct ieee80211_hw *hw, struct ieee80211_vif *vif, struct ieee80211_sta *sta,
			   enum ieee80211_sta_state from, enum ieee80211_sta_state to)
{
	struct radio *radio = *(struct radio **)hw->priv;
	struct station *station = (void *)sta->drv_priv;
	const u8 *mcs = sta->deflink.ht_cap.mcs.rx_mask;
	unsigned int number = sta->addr[ETH_ALEN - 1];
	struct transmission *each;
	int ac;

	station->ht = sta->deflink.ht_cap.ht_supported && (mcs[0] || mcs[1]);
	if (station->ht)
		station->rate = fls(mcs[0] | mcs[1] << 8) - 1;
	else
		station->rate = fls(sta->deflink.supp_rates[NL80211_BAND_2GHZ] | 1) - 1;
	limit_amsdu(sta, station, number);
	spin_lock_bh(&radio->lock);
	if (number && number <= peers)
		((struct peer *)netdev_priv(radio->air[number]))->sta = to == IEEE80211_STA_NOTEXIST ? NULL : sta;
	for (ac = 0; edca && ac < ARRAY_SIZE(sta->txq) && to == IEEE80211_STA_NOTEXIST; ac++)
		if (sta->txq[ac] && *kept(sta->txq[ac])) {
			ieee80211_free_txskb(hw, *kept(sta->txq[ac]));
			*kept(sta->txq[ac]) = NULL;
		}
	for (ac = 0; ac < IEEE80211_NUM_ACS && to == IEEE80211_STA_NOTEXIST; ac++)
		list_for_each_entry(each, &radio->waiting[ac], list)
			if (each->sta == sta)
				each->sta = NULL;
	if (radio->on_air && radio->on_air->sta == sta && to == IEEE80211_STA_NOTEXIST)
		radio->on_air->sta = NULL;
	if (number && number <= peers && to == IEEE80211_STA_NOTEXIST)
		list_for_each_entry(each, &((struct peer *)netdev_priv(radio->air[number]))->waiting, list)
			each->sta = NULL;
	spin_unlock_bh(&radio->lock);
	return 0;
}

static const struct ieee80211_ops operations = {
	.tx = radio_tx,
	.wake_tx_queue = radio_wake_tx_queue,
	.start = radio_start,
	.stop = radio_stop,
	.config = radio_config,
	.configure_filter = radio_configure_filter,
	.set_rts_threshold = radio_set_rts_threshold,
	.add_interface = radio_add_interface,
	.remove_interface = radio_remove_interface,
	.sta_state = radio_sta_state,
#if LINUX_VERSION_CODE >= KERNEL_VERSION(6, 9, 0)
	.add_chanctx = ieee80211_emulate_add_chanctx,
	.remove_chanctx = ieee80211_emulate_remove_chanctx,
	.change_chanctx = ieee80211_emulate_change_chanctx,
	.switch_vif_chanctx = ieee80211_emulate_switch_vif_chanctx,
#endif
};

static int peer_poll(struct napi_struct *napi, int budget)
{
	struct peer *peer = container_of(napi, struct peer, napi);
	struct sk_buff *skb;
	int done = 0;

	while (done < budget && (skb = skb_dequeue(&peer->arrived))) {
		if (gro)
			napi_gro_receive(napi, skb);
		else
			netif_receive_skb(skb);
		done++;
	}
	if (done < budget)
		napi_complete_done(napi, done);
	return done;
}

static int peer_open(struct net_device *dev)
{
	napi_enable(&((struct peer *)netdev_priv(dev))->napi);
	return 0;
}

static int peer_stop(struct net_device *dev)
{
	struct peer *peer = netdev_priv(dev);

	napi_disable(&peer->napi);
	skb_queue_purge(&peer->arrived);
	spin_lock_bh(&peer->radio->lock);
	__skb_queue_purge(&peer->to_send);
	spin_unlock_bh(&peer->radio->lock);
	return 0;
}

static netdev_tx_t peer_xmit(struct sk_buff *skb, struct net_device *dev)
{
	struct peer *peer = netdev_priv(dev);
	struct radio *radio = peer->radio;

	/* As mac80211 does: a sender has enough in its interface to fill aggregates. */
	sk_pacing_shift_update(skb->sk, radio->hw->tx_sk_pacing_shift);
	spin_lock_bh(&radio->lock);
	if (skb_queue_len(&peer->to_send) < MOST_TO_SEND) {
		note_packet(note(radio, ANSWER, peer->number), skb, ETH_HLEN);
		__skb_queue_tail(&peer->to_send, skb);
		transmit(radio);
	} else {
		kfree_skb(skb);
	}
	spin_unlock_bh(&radio->lock);
	return NETDEV_TX_OK;
}

static const struct net_device_ops peer_operations = {
	.ndo_open = peer_open,
	.ndo_stop = peer_stop,
	.ndo_start_xmit = peer_xmit,
};

static void remove_peers(struct radio *radio)
{
	unsigned int number;

	for (number = 1; number <= peers; number++) {
		if (!radio->air[number])
			continue;
		unregister_netdev(radio->air[number]);
		free_netdev(radio->air[number]);
	}
}

/* Creates the stations' interfaces. */
static int add_peers(struct radio *radio)
{
	unsigned int number;

	for (number = 1; number <= peers; number++) {
		const u8 address[ETH_ALEN] = { 2, 0, 0, 0, 1, number };
		struct net_device *dev = alloc_etherdev(sizeof(struct peer));
		struct peer *peer;
		int error;

		if (!dev)
			return -ENOMEM;
		peer = netdev_priv(dev);
		peer->radio = radio;
		peer->number = number;
		skb_queue_head_init(&peer->arrived);
		__skb_queue_head_init(&peer->to_send);
		INIT_LIST_HEAD(&peer->waiting);
		snprintf(dev->name, IFNAMSIZ, "air%u", number);
		eth_hw_addr_set(dev, address);
		dev->netdev_ops = &peer_operations;
		netif_napi_add(dev, &peer->napi, peer_poll);
		error = register_netdev(dev);
		if (error) {
			free_netdev(dev);
			return error;
		}
		radio->air[number] = dev;
	}
	return 0;
}

static int __init sojourn_wifi_init(void)
{
	static const u8 address[ETH_ALEN] = { 2, 0, 0, 0, 0, 1 };
	struct ieee80211_hw *hw;
	struct dentry *directory;
	struct radio *radio;
	int ac, error = -ENOMEM;

	if (peers > MOST_PEERS || (peers && (amsdu || !edca)))
		return -EINVAL;
	hw = ieee80211_alloc_hw(sizeof(radio), &operations);
	if (!hw)
		return -ENOMEM;
	radio = kzalloc(sizeof(*radio), GFP_KERNEL);
	if (!radio)
		goto free_hw;
	radio->blob.data = vzalloc(array_size(MOST_RECORDS, sizeof(struct record)));
	if (!radio->blob.data)
		goto free_radio;
	*(struct radio **)hw->priv = radio;
	radio->hw = hw;
	spin_lock_init(&radio->lock);
	for (ac = 0; ac < IEEE80211_NUM_ACS; ac++)
		INIT_LIST_HEAD(&radio->waiting[ac]);
	start_medium(&radio->medium);
#if LINUX_VERSION_CODE >= KERNEL_VERSION(6, 13, 0)
	hrtimer_setup(&radio->timer, over, CLOCK_MONOTONIC, HRTIMER_MODE_REL_SOFT);
#else
	hrtimer_init(&radio->timer, CLOCK_MONOTONIC, HRTIMER_MODE_REL_SOFT);
	radio->timer.function = over;
#endif
	SET_IEEE80211_PERM_ADDR(hw, address);
	ieee80211_hw_set(hw, HAS_RATE_CONTROL);
	ieee80211_hw_set(hw, SUPPORT_FAST_XMIT);
	ieee80211_hw_set(hw, AP_LINK_PS);
	ieee80211_hw_set(hw, SIGNAL_DBM);
	ieee80211_hw_set(hw, NO_AUTO_VIF);
	if (amsdu) {
		ieee80211_hw_set(hw, TX_AMSDU);
		ieee80211_hw_set(hw, TX_FRAG_LIST);
		hw->max_tx_fragments = fragments;
	}
	hw->queues = IEEE80211_NUM_ACS;
	hw->max_rates = 1;
	hw->max_report_rates = 1;
	hw->max_rate_tries = 1;
	hw->sta_data_size = sizeof(struct station);
	hw->txq_data_size = sizeof(struct sk_buff *);
	hw->wiphy->interface_modes = BIT(NL80211_IFTYPE_AP);
	hw->wiphy->bands[NL80211_BAND_2GHZ] = &band;
	if (aql)
		wiphy_ext_feature_set(hw->wiphy, NL80211_EXT_FEATURE_AQL);
	if (fairness)
		wiphy_ext_feature_set(hw->wiphy, NL80211_EXT_FEATURE_AIRTIME_FAIRNESS);
	error = ieee80211_register_hw(hw);
	if (error)
		goto free_log;
	error = add_peers(radio);
	if (error)
		goto unregister;
	directory = debugfs_create_dir("sojourn_wifi", NULL);
	debugfs_create_blob("log", 0400, directory, &radio->blob);
	debugfs_create_u32("lost", 0400, directory, &radio->lost);
	return 0;

unregister:
	ieee80211_unregister_hw(hw);
	remove_peers(radio);
free_log:
	vfree(radio->blob.data);
free_radio:
	kfree(radio);
free_hw:
	ieee80211_free_hw(hw);
	return error;
}

/* After mac80211 and cfg80211, which are initialised as subsystems and devices. */
late_initcall(sojourn_wifi_init);

MODULE_DESCRIPTION("mac80211's queues above a timed medium");
MODULE_LICENSE("Dual MIT/GPL");
