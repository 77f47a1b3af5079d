"""The way out: slirp4netns on the sandbox's own network, closed towards this machine."""

from __future__ import annotations

import contextlib
import fcntl
import os
import select
import socket
import struct
import time
from typing import Any

from mlp_hub.sandbox.shim import cgroups, linux, slirp

_NS_GET_USERNS = 0xB701
_RTM_NEWROUTE, _NLM_REQUEST_ACK_CREATE = 24, 0x1 | 0x4 | 0x400
_RTN_PROHIBIT, _RT_TABLE_MAIN, _RTPROT_STATIC = 8, 254, 4
_RTA_DST, _RTA_PRIORITY = 1, 6
LINK_LOCAL = ("169.254.0.0", 16)  # addresses of cloud metadata services among them
# the inside's own, but a socket that is bound to the tap sends there too, and slirp4netns takes it for this machine's
LOOPBACK = ("127.0.0.0", 8)


class NetworkError(Exception):
    """The way out could not be made; the sandbox must not start."""


def host_addresses() -> list[str]:
    """List this machine's IPv4 addresses but loopback's."""
    found: set[str] = set()
    address = ""
    with contextlib.suppress(OSError), open("/proc/net/fib_trie") as file:
        for line in file:
            text = line.strip()
            if text.startswith("|-- "):
                address = text[4:]
            elif text == "/32 host LOCAL" and not address.startswith("127."):
                found.add(address)
    return sorted(found)


def prohibit(networks: list[tuple[str, int]]) -> None:
    """Add routes to the calling process's network that refuse these (address, prefix length)."""
    with socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, 0) as link:
        link.bind((0, 0))
        for number, (address, length) in enumerate(networks, 1):
            route = struct.pack(
                "=BBBBBBBBI", 2, length, 0, 0, _RT_TABLE_MAIN, _RTPROT_STATIC, 0, _RTN_PROHIBIT, 0
            )
            route += struct.pack("=HH4s", 8, _RTA_DST, socket.inet_aton(address))
            route += struct.pack("=HHI", 8, _RTA_PRIORITY, 1)
            head = struct.pack("=IHHII", 16 + len(route), _RTM_NEWROUTE, _NLM_REQUEST_ACK_CREATE, number, 0)
            link.send(head + route)
            answer = link.recv(4096)
            error = -struct.unpack_from("=i", answer, 16)[0]
            if error not in (0, 17):  # 17: it is there already
                raise OSError(error, f"prohibit {address}/{length}: {os.strerror(error)}")


def _wait_loopback(child: int, timeout: float = 5.0) -> None:
    """Return when bubblewrap has set up the loopback of the sandbox.

    It tells its process number before that. slirp4netns brings the loopback up too, whereby the kernel gives it
    its address: bubblewrap then finds the address taken and dies, in some of a hundred starts.
    """
    deadline = time.monotonic() + timeout
    with contextlib.suppress(OSError):  # the child has ended: what comes next will say so
        while time.monotonic() < deadline:
            with open(f"/proc/{child}/net/fib_trie") as file:
                if "127.0.0.1" in file.read():
                    return
            time.sleep(0.001)


class Outbound:
    """slirp4netns on the network of a sandbox, in its groups; ends with this process, however that ends."""

    def __init__(
        self, child: int, way: dict[str, Any], uid: int | None, groups: cgroups.Groups, timeout: float = 10.0
    ) -> None:
        _wait_loopback(child)
        net = os.open(f"/proc/{child}/ns/net", os.O_RDONLY | os.O_CLOEXEC)
        owner = fcntl.ioctl(net, _NS_GET_USERNS)
        try:
            self._start((net, owner), way, uid, groups, timeout)
            self._close_to_host(net, owner)
        finally:
            os.close(net)
            os.close(owner)

    def _start(
        self,
        spaces: tuple[int, int],
        way: dict[str, Any],
        uid: int | None,
        groups: cgroups.Groups,
        timeout: float,
    ) -> None:
        net, owner = spaces
        ready, ready_w = os.pipe()
        gone, self._alive = os.pipe()
        foreign = not os.path.samestat(os.fstat(owner), os.stat("/proc/self/ns/user"))
        command = [
            way["program"], "--configure", "--mtu=65520", "--disable-host-loopback", f"--ready-fd={ready_w}",
            f"--exit-fd={gone}", *(["--enable-seccomp"] if way["seccomp"] else []),
        ]  # fmt: skip
        self.pid = os.fork()
        if self.pid == 0:
            try:
                groups.enter()  # what it does for the tenant is the tenant's
                null = os.open("/dev/null", os.O_RDWR)
                for fd in (0, 1, 2):
                    os.dup2(null, fd)
                for fd in (ready_w, gone):
                    os.set_inheritable(fd, True)
                command += slirp.become(way["runs_as"], uid, net, owner if foreign else None)
                os.execve(way["program"], [*command, "tap0"], {"PATH": "/usr/bin:/bin"})
            finally:
                os._exit(127)
        os.close(ready_w)
        os.close(gone)
        poll = select.poll()
        poll.register(ready, select.POLLIN)
        # a failure only closes the pipe: the sandbox would then start without a network
        answered = bool(poll.poll(timeout * 1000)) and os.read(ready, 1) != b""
        os.close(ready)
        if not answered:
            self.end()
            raise NetworkError("slirp4netns did not get the network ready (is /dev/net/tun usable?)")

    def _close_to_host(self, net: int, owner: int) -> None:
        closed = [
            *((address, 32) for address in host_addresses()),
            LINK_LOCAL,
            LOOPBACK,
        ]  # asked in our own network
        helper = os.fork()
        if helper == 0:
            status = 1
            try:
                with contextlib.suppress(OSError):  # EINVAL: it is our own user namespace
                    linux.setns(owner, linux.CLONE_NEWUSER)
                linux.setns(net, linux.CLONE_NEWNET)
                prohibit(closed)
                status = 0
            finally:
                os._exit(status)
        if os.waitpid(helper, 0)[1] != 0:
            self.end()
            raise NetworkError("this machine's addresses could not be closed to the sandbox")

    def end(self) -> None:
        """End it and reap it."""
        os.close(self._alive)
        with contextlib.suppress(OSError):
            os.kill(self.pid, 9)
        with contextlib.suppress(OSError):
            os.waitpid(self.pid, 0)


def wanted(spec: dict[str, Any]) -> bool:
    """Whether the sandbox asks for a way out."""
    return bool(spec["network"] == "outbound")
