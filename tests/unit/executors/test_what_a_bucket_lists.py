"""What a bucket lists, held against what files may be named; and which addresses are spoken to for users."""

from __future__ import annotations

import socket
from collections.abc import Callable, Iterator

import pytest

from mlp_hub.domain.errors import Refused
from mlp_hub.domain.public_addresses import is_public
from mlp_hub.executors.shared_volume.fetch import store
from mlp_hub.executors.shared_volume.fetch.addresses import ForbiddenAddressError, reachable
from mlp_hub.executors.shared_volume.fetch.copier import CopyProgress, Standstill
from mlp_hub.executors.shared_volume.fetch.listing import SourceObject, below, listed


def test_keys_below_a_prefix_are_files_and_directories() -> None:
    found = listed("cats", [("cats/", 0, ""), ("cats/a/", 0, ""), ("cats/a/one", 3, "t"), ("catsup", 1, "u")])
    assert found.objects == [SourceObject("cats/a/one", ("a", "one"), 3, "t")]
    assert found.directories == [("a",)]
    assert found.size == 3


@pytest.mark.parametrize(
    ("prefix", "key", "path"),
    [
        ("", "a/b", "a/b"),
        ("a/", "a/b", "b"),
        ("a", "a/b", "b"),
        ("a/b.jpg", "a/b.jpg", "b.jpg"),
        ("a", "ab", None),
    ],
)
def test_a_prefix_is_a_directory_or_one_object(prefix: str, key: str, path: str | None) -> None:
    assert below(prefix, key) == path


@pytest.mark.parametrize(
    "key",
    [
        "../out",
        "a/../../out",
        "/etc/passwd",
        "a//b",
        "a/./b",
        "a\0b",
        "n" * 256,
        "a%2Fb",
        "/".join("d" * 65),
        "\udcff",
        "full/",
    ],
)
def test_a_key_that_is_not_a_path_is_refused(key: str) -> None:
    with pytest.raises(Refused, match="these keys cannot become files"):
        listed("", [("fine", 1, "t"), (key, 1, "t")])


@pytest.mark.parametrize("keys", [("a", "a/b"), ("a/b", "a"), ("a", "a")])
def test_no_path_is_two_things(keys: tuple[str, ...]) -> None:
    with pytest.raises(Refused):
        listed("", [(key, 1, "t") for key in keys])


@pytest.mark.parametrize(
    "address",
    [
        "127.0.0.1",
        "10.0.0.1",
        "172.16.0.1",
        "192.168.1.1",
        "169.254.169.254",
        "100.64.0.1",
        "0.0.0.0",  # noqa: S104 - it is refused
        "224.0.0.1",
        "::1",
        "::",
        "fe80::1%eth0",
        "fd00::1",
        "::ffff:127.0.0.1",
        "2002:7f00:1::",
        "64:ff9b::a00:1",
        "ff02::1",
        "fec0::1",
        "64:ff9b:1::7f00:1",
        "::127.0.0.1",
        "::ffff:0:7f00:1",
        "5f00::1",
        "3fff::1",
        "192.88.99.1",
    ],
)
def test_addresses_that_are_none_of_the_internet_are_not_spoken_to(address: str) -> None:
    assert not is_public(address)
    with pytest.raises(ForbiddenAddressError):
        reachable(address.partition("%")[0], 80, ())


def test_addresses_of_the_internet_are() -> None:
    assert all(map(is_public, ("8.8.8.8", "2001:4860:4860::8888", "::ffff:8.8.8.8")))


def test_an_address_named_by_the_operator_is_reachable_at_that_port_only() -> None:
    assert reachable("127.0.0.1", 9000, ("127.0.0.1:9000",))
    assert reachable("::1", 9000, ("[::1]:9000",))
    with pytest.raises(ForbiddenAddressError):
        reachable("127.0.0.1", 9001, ("127.0.0.1:9000",))


def looked_up(*answers: str) -> Callable[..., list[tuple[int, int, int, str, tuple[str, int]]]]:
    """A name that means one address after the other."""
    left = list(answers)

    def find(
        _host: str, port: int, *_: object, **__: object
    ) -> list[tuple[int, int, int, str, tuple[str, int]]]:
        return [
            (socket.AF_INET, socket.SOCK_STREAM, 6, "", (left.pop(0) if len(left) > 1 else left[0], port))
        ]

    return find


def test_attack_a_name_that_means_another_address_a_moment_later_changes_nothing(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(socket, "getaddrinfo", looked_up("8.8.8.8", "127.0.0.1"))
    assert reachable("rebind.example", 80, ()) == [(socket.AF_INET, ("8.8.8.8", 80))], (
        "to this very one it is connected"
    )
    with pytest.raises(ForbiddenAddressError):
        reachable("rebind.example", 80, ())


def pages(*keys: list[str]) -> tuple[store._Pages, Iterator[str]]:
    counted = store._Pages()

    def listing() -> Iterator[str]:
        for page in keys:
            counted.ask("http://s/b?list-type=2")
            yield from page

    return counted, counted.bounded(listing())


def test_a_list_of_pages_with_keys_is_read_to_its_end() -> None:
    _, found = pages(["a", "b"], ["c"], ["d"])
    assert list(found) == ["a", "b", "c", "d"]


def test_attack_a_page_without_a_new_key_ends_the_list() -> None:
    _, found = pages(["a"], [], ["never"])
    with pytest.raises(store.EndlessListError):
        list(found)


def test_attack_a_list_ends_after_as_many_pages_as_there_may_be(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(store, "MOST_PAGES", 3)
    _, found = pages(*(["a"] for _ in range(10)))
    with pytest.raises(store.EndlessListError):
        list(found)


def test_attack_a_source_that_drips_stands_still() -> None:
    now = 0.0
    progress = CopyProgress(total=1 << 30)
    still = Standstill(progress, lambda: now)
    for _ in range(10):  # what comes at a rate goes on for ever
        now += 600
        progress.add(4 << 20)
        assert not still.is_over()
    now += 600
    progress.add(1000)
    assert not still.is_over()
    now += 600
    progress.add(1000)
    assert still.is_over()
