"""The certificate of the public port: which files stop the start, and what the doctor says of its names and dates."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from cryptography.hazmat.primitives import serialization

from mlp_hub.cli.doctor.certificates import certificate as examined
from mlp_hub.cli.doctor.certificates import check_files
from mlp_hub.cli.errors import MachineFailure
from mlp_hub.settings import Settings
from support.certificates import certificate

NAMES = ("hub.example.org", "*.users.example.net")
YEAR = (-1, 365)


def settings(cert: Path, key: Path | None = None, **variables: str) -> Settings:
    given = {
        "MLP_PUBLIC_URL": "https://hub.example.org/",
        "MLP_USERS_DOMAIN": "users.example.net",
        "MLP_TLS_CERT": str(cert),
        **({"MLP_TLS_KEY": str(key)} if key else {}),
        **variables,
    }
    return Settings.load(given)


def made(directory: Path, name: str, *names: str, days: tuple[float, float] = YEAR) -> Path:
    (directory / name).mkdir()
    return certificate(directory / name, *names, days=days)


@pytest.mark.parametrize(
    ("names", "days", "status", "found"),
    [
        (NAMES, YEAR, "ok", r"for hub\.example\.org, \*\.users\.example\.net until 20"),
        (("HUB.example.org", "*.Users.example.net"), YEAR, "ok", "until"),
        (("*.example.org", "*.users.example.net"), YEAR, "ok", "until"),
        (NAMES, (-1, 13), "warn", "it ends on 20"),
        (NAMES, (-9, -1), "fail", "it ended on 20"),
        (NAMES, (1, 9), "fail", "it is valid only from 20.* on: "),
        (("hub.example.org",), YEAR, "fail", r"it is not for \*\.users\.example\.net: "),
        (("*.users.example.net",), YEAR, "fail", r"it is not for hub\.example\.org: "),
        # one of a user's names, and a wildcard too high up
        (("hub.example.org", "ann.users.example.net"), YEAR, "fail", r"it is not for \*\.users"),
        (("hub.example.org", "*.example.net"), YEAR, "fail", r"it is not for \*\.users"),
        (("*.org", "*.users.example.net"), YEAR, "fail", r"it is not for hub\.example\.org: "),
    ],
)
def test_the_doctor_says_what_browsers_would_not_take(
    tmp_path: Path, names: tuple[str, ...], days: tuple[float, float], status: str, found: str
) -> None:
    (check,) = examined(settings(certificate(tmp_path, *names, days=days)))
    assert (check.name, check.status) == ("certificate", status)
    assert re.search(found, check.found), check.found
    assert bool(check.remedy) is (status != "ok")


def test_without_a_certificate_there_is_nothing_to_say() -> None:
    check_files(Settings.load({}))
    assert examined(Settings.load({})) == []


def encrypted(pem: Path) -> Path:
    key = serialization.load_pem_private_key(pem.read_bytes(), None)
    form = serialization.PrivateFormat.PKCS8, serialization.BestAvailableEncryption(b"secret")
    path = pem.with_name("encrypted.pem")
    path.write_bytes(key.private_bytes(serialization.Encoding.PEM, *form))
    return path


def test_files_that_cannot_be_used_stop_the_start_with_a_sentence(tmp_path: Path) -> None:
    one, two = made(tmp_path, "one", *NAMES), made(tmp_path, "two", *NAMES)
    text = tmp_path / "text.pem"
    text.write_text("no certificate")
    for cert, key, says in (
        (tmp_path / "gone.pem", None, r"gone\.pem cannot be read: No such file"),
        (one, tmp_path / "gone.pem", r"gone\.pem cannot be read: No such file"),
        (tmp_path, None, "cannot be read: Is a directory"),
        (one, two, r"The key in .*two/tls\.pem is not the one of the certificate in .*one/tls\.pem"),
        (text, None, r"text\.pem cannot be used as certificate and key: "),
        (one, text, r"text\.pem cannot be used as certificate and key: "),
        (one, encrypted(one), r"encrypted\.pem cannot be used as certificate and key: "),
    ):
        with pytest.raises(MachineFailure, match=says) as caught:
            check_files(settings(cert, key))
        assert caught.value.remedy
        (check,) = examined(settings(cert, key))
        assert (check.status, check.found) == ("fail", caught.value.msg)
    check_files(settings(one))
    check_files(settings(one, one))


@pytest.mark.skipif(os.geteuid() != 0, reason="another user is needed whose file it is not")
def test_a_file_that_the_hub_may_not_read_is_named(tmp_path: Path) -> None:
    pem = certificate(tmp_path, *NAMES)
    pem.chmod(0o000)
    code = (
        "import os, sys; from pathlib import Path; from mlp_hub.cli.doctor import certificates as c; os.setuid(65534);"
        f"\ntry: c._readable(Path({str(pem)!r}), 'MLP_TLS_CERT')"
        "\nexcept Exception as failure: print(failure.text())"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.endswith(
        "tls.pem cannot be read: Permission denied\nSet MLP_TLS_CERT to a file that the hub may read.\n"
    )
