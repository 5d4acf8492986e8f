"""Slows down who guesses passwords, without letting anybody lock somebody else out.

Three kinds of buckets. The tight one is of an account *as tried from one network*: a stranger's tries do not count against the
account's owner elsewhere. A network has a wider one for all accounts together, and an account a wide one for all networks
together, against guesses from many places at once.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from ipaddress import IPv6Address, ip_address, ip_network

from .throttle import Throttle

__all__ = ["LoginThrottle", "network_of"]

_PAIR_TRIES, _PAIR_REFILL_S = 8, 30.0
_NETWORK_TRIES, _NETWORK_REFILL_S = 40, 10.0
_ACCOUNT_TRIES, _ACCOUNT_REFILL_S = 100, 30.0
_NOTED_S = 60.0
"""A network that is refused is written down this often at most: refusing costs nothing, and a row each time would."""
_OWN_IPV6_BITS = 64
"""Whoever has one IPv6 address has a network of this prefix."""


class LoginThrottle:
    """Counts tries of passwords. It lives in one process; each console process counts for itself.

    Args:
        clock: seconds, monotonic.
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._pairs = Throttle(_PAIR_TRIES, _PAIR_REFILL_S, clock)
        self._networks = Throttle(_NETWORK_TRIES, _NETWORK_REFILL_S, clock)
        self._accounts = Throttle(_ACCOUNT_TRIES, _ACCOUNT_REFILL_S, clock)
        self._noted = Throttle(1, _NOTED_S, clock)

    def take(self, account: str, address: str) -> float:
        """A try begins; returns the seconds to wait where it may not. 0: go on."""
        taken: list[tuple[Throttle, str]] = []
        for throttle, key in self._buckets(account, address):
            if wait := throttle.take(key):
                for other, its_key in taken:
                    other.give_back(its_key)
                return wait
            taken.append((throttle, key))
        return 0.0

    def worth_noting(self, address: str) -> bool:
        """Whether a refusal should be written down; asked once for each."""
        return not self._noted.take(network_of(address))

    def succeeded(self, account: str, address: str) -> None:
        """The try was the right password: it counts for nothing, and neither do its owner's slips before it."""
        (pairs, pair), *rest = self._buckets(account, address)
        pairs.forget(pair)
        for throttle, key in rest:
            throttle.give_back(key)

    def _buckets(self, account: str, address: str) -> tuple[tuple[Throttle, str], ...]:
        network = network_of(address)
        return (self._pairs, f"{network} {account}"), (self._networks, network), (self._accounts, account)


def network_of(address: str) -> str:
    """What one person can be expected to have: an IPv4 address, or the /64 around an IPv6 address."""
    try:
        parsed = ip_address(address.partition("%")[0])
    except ValueError:
        return address
    if not isinstance(parsed, IPv6Address):
        return str(parsed)
    if parsed.ipv4_mapped is not None:
        return str(parsed.ipv4_mapped)
    return str(ip_network((parsed, _OWN_IPV6_BITS), strict=False))
