"""What to type: commands of tc, and a section of OpenWrt's sqm-scripts.

tc-cake(8) counts overhead beyond the IP packet, tc-stab(8) and HTB beyond the Ethernet frame.
"""

from __future__ import annotations

from sojourn.lines.household import ETHERNET, Line, Setting, htb_kbps

DEVICE, INGRESS = "eth1", "ifb0"


def tc(line: Line, setting: Setting) -> list[str]:
    """The commands, with ``eth1`` as the port to the modem."""
    ifb = [
        f"ip link add {INGRESS} type ifb",
        f"ip link set {INGRESS} up",
        f"tc qdisc replace dev {DEVICE} handle ffff: ingress",
        # With a number it can be typed again; u32 is there where matchall is not.
        f"tc filter replace dev {DEVICE} parent ffff: protocol all pref 1 handle 800::800 u32 match u32 0 0"
        f" action mirred egress redirect dev {INGRESS}",
    ]
    return [
        *_shaper(DEVICE, line, setting.discipline, setting.up_kbps, "up"),
        *ifb,
        *_shaper(INGRESS, line, setting.discipline, setting.down_kbps, "down"),
    ]


def _shaper(device: str, line: Line, discipline: str, kbps: int, way: str) -> list[str]:
    if discipline == "cake":
        return [f"tc qdisc replace dev {device} root cake bandwidth {kbps}kbit {line.keyword} nat  # {way}"]
    size = f" overhead {line.overhead - ETHERNET}" if line.overhead != ETHERNET else ""
    size += f" mpu {line.mpu}" if line.mpu else ""
    size += " linklayer atm" if line.framing == "atm" else ""
    return [
        f"tc qdisc replace dev {device} root handle 1: htb default 1  # {way}",
        f"tc class replace dev {device} parent 1: classid 1:1 htb rate {htb_kbps(line, kbps)}kbit{size}",
        f"tc qdisc replace dev {device} parent 1:1 {discipline}",
    ]


def sqm(line: Line, setting: Setting) -> list[str]:
    """The section of /etc/config/sqm. CAKE gets the line's keyword, as there is no other way to tell it of PTM."""
    options: dict[str, object] = {"enabled": 1, "interface": "wan", "qdisc": setting.discipline}
    if setting.discipline == "cake":
        own = f"nat {line.keyword}"
        # layer_cake.qos keeps CAKE's tins, as here, unless it is to forget the code points.
        options |= {"script": "layer_cake.qos", "download": setting.down_kbps, "upload": setting.up_kbps}
        options |= {"linklayer": "none", "qdisc_advanced": 1, "qdisc_really_really_advanced": 1}
        options |= {"squash_dscp": 0, "squash_ingress": 0, "iqdisc_opts": own, "eqdisc_opts": own}
    else:
        down, up = (htb_kbps(line, kbps) for kbps in (setting.down_kbps, setting.up_kbps))
        # simplest.qos is HTB with one queue below.
        options |= {"script": "simplest.qos", "download": down, "upload": up}
        linklayer = "atm" if line.framing == "atm" else "ethernet"
        options |= {"linklayer": linklayer, "overhead": line.overhead - ETHERNET}
        options |= {"linklayer_advanced": 1, "tcMPU": line.mpu} if line.mpu else {}
    return ["config queue", *(f"\toption {name} '{value}'" for name, value in options.items())]
