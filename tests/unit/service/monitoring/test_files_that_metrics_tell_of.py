"""The end of a certificate and the last backup are read from their files, and from nothing else that lies there."""

from __future__ import annotations

import datetime as dt
import os
from pathlib import Path

import pytest
from cryptography import x509
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat

from mlp_hub.service.monitoring.operator_files import MOST_BYTES, FilesLook, OperatorFiles, of_files

END = dt.datetime(2031, 2, 3, 4, 5, 6, tzinfo=dt.UTC)


def certificate(end: dt.datetime = END) -> bytes:
    """Return a certificate with its key before it, as some files have it."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "hub.example.org")])
    made = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(1)
        .not_valid_before(end - dt.timedelta(days=90))
        .not_valid_after(end)
        .sign(key, SHA256())
    )
    secret = key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
    return secret + made.public_bytes(Encoding.PEM)


def test_the_end_of_a_certificate_follows_its_file(tmp_path: Path) -> None:
    file = tmp_path / "tls.pem"
    file.write_bytes(certificate())
    files = OperatorFiles(file, None)
    assert files.look() == FilesLook(END.timestamp())
    later = END + dt.timedelta(days=90)
    new = tmp_path / "new.pem"
    new.write_bytes(certificate(later))
    new.replace(file)
    assert files.look().certificate_end == later.timestamp()


@pytest.mark.parametrize(
    "content", [b"", b"\0" * 4096, b"-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n", b"x" * (MOST_BYTES + 9)]
)  # fmt: skip
def test_other_content_is_refused_as_a_certificate(tmp_path: Path, content: bytes) -> None:
    file = tmp_path / "tls.pem"
    file.write_bytes(content)
    assert OperatorFiles(file, None).look() == FilesLook()


def test_nothing_there_is_nothing_shown(tmp_path: Path) -> None:
    files = OperatorFiles(tmp_path / "no.pem", tmp_path / "no.json")
    assert files.look() == FilesLook()
    assert [samples for _, samples in of_files(files.look())] == [[], [], []]
    assert OperatorFiles(tmp_path, tmp_path).look() == FilesLook()
    assert OperatorFiles(None, None).look() == FilesLook()


def test_the_last_backup_is_shown(tmp_path: Path) -> None:
    record = tmp_path / "backup.json"
    record.write_text('{"at": 1700000000.5, "size": 4096}')
    look = OperatorFiles(None, record).look()
    assert look == FilesLook(None, 1700000000.5, 4096)
    assert [(row.name, samples) for row, samples in of_files(look)] == [
        ("mlp_certificate_expiry_timestamp_seconds", []),
        ("mlp_backup_last_timestamp_seconds", [((), 1700000000.5)]),
        ("mlp_backup_last_size_bytes", [((), 4096.0)]),
    ]


@pytest.mark.parametrize(
    "text",
    [
        "",
        "{",
        "[]",
        '{"at": 1}',
        '{"at": null, "size": 1}',
        '{"at": "x", "size": 1}',
        '{"at": NaN, "size": 1}',
        '{"at": Infinity, "size": 1}',
        '{"at": 1, "size": Infinity}',
        '{"at": {}, "size": []}',
    ],
)
def test_a_torn_record_counts_as_no_backup(tmp_path: Path, text: str) -> None:
    record = tmp_path / "backup.json"
    record.write_text(text)
    assert OperatorFiles(None, record).look() == FilesLook()


@pytest.mark.skipif(os.geteuid() == 0, reason="root reads everything")
def test_a_certificate_that_cannot_be_read_is_not_shown(tmp_path: Path) -> None:
    file = tmp_path / "tls.pem"
    file.write_bytes(certificate())
    file.chmod(0)
    assert OperatorFiles(file, None).look() == FilesLook()
