"""Network addresses to which requests may go (RELIABILITY T22)."""

from __future__ import annotations

import ipaddress
from typing import Final

Address = ipaddress.IPv4Address | ipaddress.IPv6Address

_NETWORKS: Final = tuple(map(ipaddress.ip_network, (
    "64:ff9b::/96", "64:ff9b:1::/48",  # NAT64: an IPv4 address of any kind behind it
    "2002::/16", "2001::/32",  # 6to4, Teredo: the same
    "::ffff:0:0/96", "::/96",  # IPv4-mapped and -compatible
    "fec0::/10", "192.88.99.0/24",
)))  # fmt: skip
"""Networks that `is_global` takes for global, or does on some versions (measured)."""


def is_open(address: Address) -> bool:
    """Return True for an address of the open internet."""
    return (
        address.is_global
        and not address.is_multicast
        and not address.is_reserved
        and not any(address in network for network in _NETWORKS)
    )


def is_private(address: Address) -> bool:
    """Return True for an address of this machine or of a private network.

    False for link-local ones: there cloud providers serve credentials.
    """
    return address.is_loopback or (
        address.is_private
        and not address.is_link_local
        and not address.is_unspecified
        and not address.is_multicast
        and not address.is_reserved
        and not any(address in network for network in _NETWORKS)
    )
