"""Addresses of this machine, and which of them others can reach."""

import ipaddress
from socket import AF_INET

import psutil


def is_loopback(address: str) -> bool:
    parsed = ipaddress.ip_address(address)
    mapped = getattr(parsed, "ipv4_mapped", None)  # ::ffff:127.0.0.1
    return bool((mapped or parsed).is_loopback)


def addresses_of_this_machine() -> list[str]:
    """Those that others may know it by."""
    interfaces = psutil.net_if_addrs().values()
    found = [entry for entries in interfaces for entry in entries if entry.family == AF_INET]
    return [entry.address for entry in found if not is_loopback(entry.address)]
