"""How images are named: what is one, what tells one from all others, and what lies below what an operator allows."""

from __future__ import annotations

import pytest

from mlp_hub.domain.errors import Reason, Refused
from mlp_hub.domain.runtime.image import check_image, digest_in, is_below

DIGEST = "0123456789abcdef" * 4


@pytest.mark.parametrize(
    "image",
    [
        "python",
        "python:3.12",
        "registry.example.org/ml/train:1",
        "registry.example.org:5000/ml/train",
        f"registry.example.org/ml/train@sha256:{DIGEST}",
        f"registry.example.org/ml/train:1@sha256:{DIGEST}",
        "localhost/a_b/c--d__e.f:V1.2-x_",
    ],
)
def test_it_is_one(image: str) -> None:
    check_image(image)


@pytest.mark.parametrize(
    "image",
    [
        "",
        " python",
        "python ",
        "python 3",
        "python\n",
        "python\nevil",
        "python\0",
        "--privileged",
        "-v/:/host python",
        "Python",
        "registry.example.org/ML/train",
        "registry.example.org//train",
        "registry.example.org/ml/",
        "/ml/train",
        "../ml/train",
        "https://registry.example.org/ml/train",
        "user@registry.example.org/ml/train",
        "python:",
        "python:-x",
        "python:" + "x" * 129,
        "python@sha256:" + DIGEST[1:],
        "python@sha256:" + DIGEST.upper(),
        "python@md5:" + DIGEST,
        "pythön",
        "\N{CYRILLIC SMALL LETTER ER}ython",
        "python:\N{FULLWIDTH DIGIT ONE}",
        "$(id)",
        "a;b",
        "python,evil",
    ],
)
def test_an_invalid_image_name_is_refused_with_a_valid_form(image: str) -> None:
    with pytest.raises(Refused, match=r"is not the name of an image; write HOST/NAME:TAG") as refused:
        check_image(image)
    assert refused.value.reason is Reason.INVALID
    assert digest_in(image) == ""
    assert not is_below(image, ["*"])


def test_a_long_text_is_read_at_once_and_not_repeated() -> None:
    for letters in ("a" * 500, "a-" * 250, "a." * 249 + "/", "a/" * 250, "-" * 500, "a" + "-" * 499):
        with pytest.raises(Refused) as refused:
            check_image(letters + "\n")
        assert len(str(refused.value.message)) < 250


def test_only_a_digest_tells_an_image_from_all_others() -> None:
    assert digest_in(f"ml/train:1@sha256:{DIGEST}") == DIGEST
    assert digest_in("ml/train:1") == ""


@pytest.mark.parametrize(
    ("image", "allowed", "below"),
    [
        ("registry.example.org/ml/train:1", ["registry.example.org/ml"], True),
        ("registry.example.org/ml/train:1", ["registry.example.org/ml/"], True),
        ("registry.example.org/ml/train:1", ["registry.example.org/ml/train"], True),
        ("registry.example.org/ml/train:1", ["registry.example.org/ml/train:1"], True),
        (f"registry.example.org/ml/train@sha256:{DIGEST}", ["registry.example.org/ml"], True),
        ("registry.example.org/ml/train:1", ["other", "*"], True),
        ("registry.example.org/ml/train:1", [], False),
        ("registry.example.org/ml/train:1", [""], False),
        ("registry.example.org/ml/train:1", ["/"], False),
        ("registry.example.org/ml/train:2", ["registry.example.org/ml/train:1"], False),
        (f"registry.example.org/ml/train:1@sha256:{DIGEST}", ["registry.example.org/ml/train:1"], False),
        ("registry.example.org/mlevil/train:1", ["registry.example.org/ml"], False),
        ("registry.example.org.evil.example/ml/train:1", ["registry.example.org"], False),
        ("evil.example/registry.example.org/ml/train:1", ["registry.example.org/ml"], False),
        ("registry.example.org:5000/ml/train", ["registry.example.org"], False),
        ("registry.example.org:5000/ml/train", ["registry.example.org:5000"], True),
        ("localhost:5000/ml/train", ["localhost:5000"], True),
        ("registry.example.org/train", ["registry.example.org"], True),
        ("python:3.12", ["python"], True),
        ("tensorflow/tensorflow:2", ["tensorflow/"], True),
    ],
)
def test_allowed_images_are_matched_by_whole_parts_of_a_name(
    image: str, allowed: list[str], *, below: bool
) -> None:
    assert is_below(image, allowed) is below


@pytest.mark.parametrize(
    ("image", "allowed"),
    [
        ("python/evil:1", "python"),  # of whoever has the name python at Docker Hub
        ("python:3/evil", "python:3"),  # of a host named python, at its port 3
        ("evil:5000/python", "evil"),
        ("python:3.12/evil", "python:3.12"),
    ],
)
def test_attacks_an_official_docker_hub_image_does_not_match_an_owner_of_the_same_name(
    image: str, allowed: str
) -> None:
    assert not is_below(image, [allowed])
