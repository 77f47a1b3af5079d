"""A real Apache Kafka for tests: its jars fetched once by Maven, a broker started for the files that want one.

python -m support.stores.kafka_broker fetch      # what `make test-tools` does, in `tests`
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import shutil
import signal
import socket
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from support.maven import alone, fetched

VERSION = "4.1.0"
SHA256 = "f034c5681d2d056d3e793a7771edde9940023a8434365c2cea93791fb75a7c65"
"""Of the list of all jars with their own sums."""
CACHE = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "mlp-hub" / "kafka"
ROOT = CACHE / f"kafka-{VERSION}"
PATIENCE_S = 180.0
_POM = f"""<project xmlns="http://maven.apache.org/POM/4.0.0"><modelVersion>4.0.0</modelVersion>
<groupId>test</groupId><artifactId>broker</artifactId><version>1</version><dependencies><dependency>
<groupId>org.apache.kafka</groupId><artifactId>kafka_2.13</artifactId><version>{VERSION}</version>
</dependency></dependencies></project>"""
_JAVA = ("-Xms32m", "-Xmx256m", "-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC")


def digest(folder: Path) -> str:
    """Return the sum of all jars of a folder."""
    lines = []
    for jar in sorted(folder.glob("*.jar")):
        with jar.open("rb") as content:
            lines.append(f"{jar.name} {hashlib.file_digest(content, 'sha256').hexdigest()}\n")
    return hashlib.sha256("".join(lines).encode()).hexdigest()


def fetch() -> Path:
    """Have the jars in the cache, and return where they are."""
    with alone(CACHE):
        if ROOT.is_dir():
            return ROOT
        with fetched("Kafka", CACHE, "dependency:copy-dependencies", to="libs", pom=_POM) as made:
            found = digest(made / "libs")
            if found != SHA256:
                raise SystemExit(
                    f"the jars of Kafka are not what was tried: their SHA-256 is {found}, not {SHA256}"
                )
            (made / "libs").rename(ROOT)
    return ROOT


class KafkaBroker:
    """One broker in a directory of its own; it dies with who started it.

    Beside its port for anybody it may have one, `sasl_port`, whose clients need the name and password of `sasl`.
    """

    def __init__(
        self,
        place: Path,
        port: int,
        controller_port: int,
        sasl: tuple[str, str] | None = None,
        sasl_port: int = 0,
        **more: str,
    ) -> None:
        self.place = place
        self.port = port
        self.bootstrap = f"127.0.0.1:{port}"
        self.guarded = f"127.0.0.1:{sasl_port}"
        self._controller = f"127.0.0.1:{controller_port}"
        self._sasl = sasl
        self._more = more
        self._process: subprocess.Popen[bytes] | None = None
        self._starter = ThreadPoolExecutor(1)

    def start(self) -> None:
        """Start it, the first time or again with what it has, and return when it answers."""
        # from a thread that stays: the signal of a parent's death is that of the thread which started it
        self._starter.submit(self._start).result()

    def _start(self) -> None:
        jars = str(fetch() / "*")
        if not (self.place / "server.properties").exists():
            self._configure()
            command = ["java", *_JAVA, "-cp", jars, "kafka.tools.StorageTool", "format", "--standalone"]
            command += ["-t", "AAAAAAAAAAAAAAAAAAAAAQ", "-c", str(self.place / "server.properties")]
            subprocess.run(command, check=True, capture_output=True, cwd=self.place)
        command = ["setpriv", "--pdeathsig", "KILL", "--", "java", *_JAVA, "-cp", jars]
        command += ["kafka.Kafka", str(self.place / "server.properties")]
        with (self.place / "log").open("ab") as log:
            self._process = subprocess.Popen(
                command, stdin=subprocess.DEVNULL, stdout=log, stderr=log, cwd=self.place, process_group=0
            )
        deadline = time.monotonic() + PATIENCE_S
        while not self.answers():
            if self._process.poll() is not None or time.monotonic() > deadline:
                said = (self.place / "log").read_text(errors="replace")
                raise AssertionError(f"Kafka did not start: {said[-4000:]}")
            time.sleep(0.1)

    def answers(self) -> bool:
        """Whether its port is open."""
        with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", self.port), 5):
            return True
        return False

    def stop(self, *, kill: bool = False) -> None:
        """End it, at once as a power cut does with `kill`; what it acknowledged stays."""
        if self._process is not None:
            with contextlib.suppress(ProcessLookupError):
                self._process.send_signal(signal.SIGKILL if kill else signal.SIGTERM)
            try:
                self._process.wait(60)
            except subprocess.TimeoutExpired:
                self._process.kill()
                self._process.wait()
            self._process = None

    def _configure(self) -> None:
        self.place.mkdir(parents=True, exist_ok=True)
        values = {
            "process.roles": "broker,controller",
            "node.id": "1",
            "controller.quorum.bootstrap.servers": self._controller,
            "listeners": f"CLIENTS://{self.bootstrap},CONTROLLER://{self._controller}",
            "advertised.listeners": f"CLIENTS://{self.bootstrap}",
            "listener.security.protocol.map": "CLIENTS:PLAINTEXT,CONTROLLER:PLAINTEXT",
            "inter.broker.listener.name": "CLIENTS",
            "controller.listener.names": "CONTROLLER",
            "log.dirs": str(self.place / "data"),
            "num.partitions": "3",
            "offsets.topic.replication.factor": "1",
            "offsets.topic.num.partitions": "1",
            "transaction.state.log.replication.factor": "1",
            "transaction.state.log.min.isr": "1",
            "group.initial.rebalance.delay.ms": "0",
        }
        if self._sasl:
            name, password = self._sasl
            login = "org.apache.kafka.common.security.plain.PlainLoginModule required"
            for key in ("listeners", "advertised.listeners"):
                values[key] += f",GUARDED://{self.guarded}"
            values["listener.security.protocol.map"] += ",GUARDED:SASL_PLAINTEXT"
            values["sasl.enabled.mechanisms"] = "PLAIN"
            values["listener.name.guarded.plain.sasl.jaas.config"] = (
                f'{login} username="{name}" password="{password}" user_{name}="{password}";'
            )
        values |= {key.replace("_", "."): value for key, value in self._more.items()}
        text = "".join(f"{key}={value}\n" for key, value in values.items())
        (self.place / "server.properties").write_text(text)


def why_not() -> str | None:
    """Say why no broker can be started here, or None."""
    for program in ("java", "mvn", "setpriv"):
        if program == "mvn" and ROOT.is_dir():
            continue
        if shutil.which(program) is None:
            return f"there is no {program} here"
    return None


def main() -> int:
    """Fetch, and say what was done in one line."""
    there = ROOT.is_dir()
    fetch()
    sys.stdout.write("there\n" if there else "fetched\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
