"""Certificates that Kubernetes can read users from."""

import stat
from pathlib import Path

import pytest
from cryptography import x509
from cryptography.x509.oid import NameOID

from testbed.certs import Authority


@pytest.fixture(scope="module")
def authority() -> Authority:
    return Authority.make()


@pytest.mark.filterwarnings("ignore:Attribute's length must be")
def test_user_and_groups_stand_in_the_subject(authority: Authority) -> None:
    name = "system:serviceaccount:a-rather-long-namespace-name:a-rather-long-account-name"
    pair = authority.user(name, groups=["system:serviceaccounts", "dev"])
    certificate = x509.load_pem_x509_certificate(pair.certificate)
    subject = certificate.subject
    assert [each.value for each in subject.get_attributes_for_oid(NameOID.COMMON_NAME)] == [name]
    assert [each.value for each in subject.get_attributes_for_oid(NameOID.ORGANIZATION_NAME)] == [
        "system:serviceaccounts", "dev",
    ]  # fmt: skip


def test_all_certificates_are_signed_by_the_clusters_own_authority(authority: Authority) -> None:
    signer = x509.load_pem_x509_certificate(authority.certificate)
    stranger = x509.load_pem_x509_certificate(Authority.make().certificate)
    for pair in (authority.user("jane"), authority.server()):
        certificate = x509.load_pem_x509_certificate(pair.certificate)
        certificate.verify_directly_issued_by(signer)
        with pytest.raises(Exception, match=r"(?i)invalid|issuer|^$"):
            certificate.verify_directly_issued_by(stranger)


def test_a_saved_authority_goes_on_signing(authority: Authority, tmp_path: Path) -> None:
    authority.save(tmp_path)
    again = Authority.load(tmp_path)
    assert again.certificate == authority.certificate
    x509.load_pem_x509_certificate(again.user("jane").certificate).verify_directly_issued_by(
        x509.load_pem_x509_certificate(authority.certificate)
    )


def test_the_key_is_for_its_owner_alone(authority: Authority, tmp_path: Path) -> None:
    authority.save(tmp_path)
    assert stat.S_IMODE((tmp_path / "ca.key").stat().st_mode) == 0o600
