"""The cluster's certificates: an authority, who may do what, and kubeconfigs that hold all they need."""

from __future__ import annotations

import base64
import datetime as dt
import ipaddress
import json
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat, PublicFormat
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

from mlp_cluster.place import DOMAIN, NODE, Place

_YEARS = dt.timedelta(days=3650)

CLIENTS = {
    "admin": ("admin", "system:masters"),
    "controller-manager": ("system:kube-controller-manager", ""),
    "scheduler": ("system:kube-scheduler", ""),
    "proxy": ("system:kube-proxy", ""),
    "front-proxy": ("front-proxy", ""),
}
"""Who calls the API server, with their groups."""


class Authority:
    """Signs certificates, and writes them below a folder."""

    def __init__(self, folder: Path) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self.folder = folder
        self.key = ec.generate_private_key(ec.SECP256R1())
        self.name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "mlp-cluster")])
        signs = x509.KeyUsage(
            digital_signature=True,
            key_cert_sign=True,
            crl_sign=True,
            content_commitment=False,
            key_encipherment=False,
            data_encipherment=False,
            key_agreement=False,
            encipher_only=False,
            decipher_only=False,
        )
        builder = (
            self._builder(self.name, self.key)
            .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
            .add_extension(signs, critical=True)
        )
        self.certificate = builder.sign(self.key, hashes.SHA256())
        self._write("ca", self.certificate, self.key)

    def _builder(self, subject: x509.Name, key: ec.EllipticCurvePrivateKey) -> x509.CertificateBuilder:
        now = dt.datetime.now(dt.UTC)
        return (
            x509.CertificateBuilder()
            .subject_name(subject)
            .issuer_name(self.name)
            .public_key(key.public_key())
            .serial_number(x509.random_serial_number())
            .not_valid_before(now - dt.timedelta(minutes=5))
            .not_valid_after(now + _YEARS)
            # newer Pythons refuse a chain without these two
            .add_extension(x509.SubjectKeyIdentifier.from_public_key(key.public_key()), critical=False)
            .add_extension(
                x509.AuthorityKeyIdentifier.from_issuer_public_key(self.key.public_key()), critical=False
            )
        )

    def issue(self, file: str, common: str, group: str = "", names: tuple[str, ...] = ()) -> None:
        """Write a certificate for a caller or for a server of these names."""
        parts = [x509.NameAttribute(NameOID.COMMON_NAME, common)]
        if group:
            parts.append(x509.NameAttribute(NameOID.ORGANIZATION_NAME, group))
        key = ec.generate_private_key(ec.SECP256R1())
        usage = [ExtendedKeyUsageOID.CLIENT_AUTH, ExtendedKeyUsageOID.SERVER_AUTH]
        builder = self._builder(x509.Name(parts), key).add_extension(
            x509.ExtendedKeyUsage(usage), critical=False
        )
        if names:
            builder = builder.add_extension(
                x509.SubjectAlternativeName([_general(n) for n in names]), critical=False
            )
        self._write(file, builder.sign(self.key, hashes.SHA256()), key)

    def _write(self, file: str, certificate: x509.Certificate, key: ec.EllipticCurvePrivateKey) -> None:
        (self.folder / f"{file}.crt").write_bytes(certificate.public_bytes(Encoding.PEM))
        secret = self.folder / f"{file}.key"
        secret.touch(0o600)
        secret.write_bytes(key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()))


def _general(name: str) -> x509.GeneralName:
    try:
        return x509.IPAddress(ipaddress.ip_address(name))
    except ValueError:
        return x509.DNSName(name)


def write(place: Place) -> None:
    """Write all certificates and kubeconfigs of a cluster."""
    authority = Authority(place.folder / "pki")
    for file, (common, group) in CLIENTS.items():
        authority.issue(file, common, group)
    service = "kubernetes.default.svc"
    addresses = ("127.0.0.1", place.node, place.first_service)
    authority.issue(
        "apiserver",
        "kube-apiserver",
        "",
        (*addresses, "localhost", "kubernetes", "kubernetes.default", service, f"{service}.{DOMAIN}"),
    )
    authority.issue("kubelet", f"system:node:{NODE}", "system:nodes", (place.node, NODE))
    authority.issue("volcano", "volcano", "", ("volcano-admission-service.volcano-system.svc",))
    authority.issue("accounts", "service-accounts")
    public = x509.load_pem_x509_certificate((authority.folder / "accounts.crt").read_bytes()).public_key()
    (authority.folder / "accounts.pub").write_bytes(
        public.public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo)
    )
    for file in ("controller-manager", "scheduler", "proxy", "kubelet"):
        _kubeconfig(place, file, authority.folder / f"{file}.kubeconfig")
    _kubeconfig(place, "admin", place.kubeconfig)  # the last: who finds it finds all


def _kubeconfig(place: Place, file: str, to: Path) -> None:
    def data(name: str) -> str:
        return base64.b64encode((place.folder / "pki" / name).read_bytes()).decode()

    cluster = {"server": f"https://{place.node}:6443", "certificate-authority-data": data("ca.crt")}
    user = {"client-certificate-data": data(f"{file}.crt"), "client-key-data": data(f"{file}.key")}
    name = place.name
    whole = {
        "apiVersion": "v1",
        "kind": "Config",
        "current-context": name,
        "clusters": [{"name": name, "cluster": cluster}],
        "users": [{"name": file, "user": user}],
        "contexts": [{"name": name, "context": {"cluster": name, "user": file}}],
    }
    draft = to.with_suffix(".draft")
    draft.touch(0o600)
    draft.write_text(json.dumps(whole, indent=1))  # JSON is YAML
    draft.rename(to)
