"""Tries of passwords: how many, by whom, and that nobody is locked out by others."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor

import pytest

from roundhouse.console.access.login_throttle import LoginThrottle, network_of
from roundhouse.console.access.throttle import Throttle


class Clock:
    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self) -> float:
        return self.now


def test_tries_run_out_and_come_back() -> None:
    clock = Clock()
    throttle = Throttle(3, 10.0, clock)
    assert [throttle.take("a") for _ in range(5)] == [0, 0, 0, 10.0, 10.0]
    assert throttle.take("b") == 0
    clock.now += 10
    assert throttle.take("a") == 0
    assert throttle.take("a") == 10.0
    throttle.give_back("a")
    assert throttle.take("a") == 0
    throttle.forget("a")
    assert [throttle.take("a") for _ in range(4)] == [0, 0, 0, 10.0]


def test_a_hundred_at_once_get_no_more_than_one_after_the_other() -> None:
    throttle = Throttle(8, 30.0)
    together = threading.Barrier(20)

    def attempt(_: int) -> float:
        together.wait()
        return throttle.take("ann")

    with ThreadPoolExecutor(20) as pool:
        assert sum(wait == 0 for wait in pool.map(attempt, range(20))) == 8


def test_many_other_keys_do_not_make_one_forgotten() -> None:
    throttle = Throttle(8, 30.0, Clock(), most_keys=100)
    for _ in range(8):
        throttle.take("ann")
    for number in range(1000):
        throttle.take(f"made up {number}")
    assert throttle.take("ann") > 0
    assert len(throttle._used) <= 100


def test_a_stranger_does_not_lock_the_owner_out() -> None:
    throttle = LoginThrottle(Clock())
    waits = [throttle.take("ann", "203.0.113.9") for _ in range(50)]
    assert waits[7] == 0
    assert all(waits[8:])
    assert throttle.take("ann", "10.0.0.1") == 0


def test_one_network_gets_so_many_accounts_and_one_account_so_many_networks() -> None:
    throttle = LoginThrottle(Clock())
    tried = [throttle.take(f"account-{number}", "203.0.113.9") for number in range(60)]
    assert sum(wait == 0 for wait in tried) == 40
    tried = [throttle.take("ann", f"198.51.{number // 250}.{number % 250}") for number in range(300)]
    assert sum(wait == 0 for wait in tried) == 100


def test_who_is_refused_takes_nothing_from_the_wider_buckets() -> None:
    throttle = LoginThrottle(Clock())
    for _ in range(1000):
        throttle.take("ann", "203.0.113.9")
    assert throttle.take("bob", "203.0.113.9") == 0
    assert throttle.take("ann", "198.51.100.1") == 0


def test_a_right_password_clears_ones_own_slips() -> None:
    throttle = LoginThrottle(Clock())
    assert [throttle.take("ann", "10.0.0.1") for _ in range(7)] == [0] * 7
    throttle.succeeded("ann", "10.0.0.1")
    assert [throttle.take("ann", "10.0.0.1") for _ in range(9)] == [0] * 8 + [30.0]


@pytest.mark.parametrize(
    ("address", "network"),
    [
        ("10.0.0.1", "10.0.0.1"),
        ("2001:db8:1:2:3:4:5:6", "2001:db8:1:2::/64"),
        ("2001:db8:1:2::9", "2001:db8:1:2::/64"),
        ("2001:db8:1:3::9", "2001:db8:1:3::/64"),
        ("::ffff:10.0.0.1", "10.0.0.1"),
        ("fe80::1%eth0", "fe80::/64"),
        ("unknown", "unknown"),
    ],
)
def test_whoever_has_an_ipv6_address_has_its_network(address: str, network: str) -> None:
    assert network_of(address) == network
