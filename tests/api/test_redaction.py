"""Redaction of texts: keys, pictures, users of addresses and control characters."""

from __future__ import annotations

import base64
import io
import json
import logging
import re
from urllib.parse import quote

import pytest
from api_parts import picture
from hypothesis import given
from hypothesis import strategies as st

from medtest.api.calls.request import Parameters
from medtest.api.redact import guard, guard_logs, reason_of, redact, visible, without_users

CANARY = 'canary/k3y+"quoted"\\=='
PLAIN_CANARY = "zq-canary-0123456789-secret"
PARAMETERS = Parameters(model="simulated")


def test_values_of_guarded_variables_in_every_form(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CANARY_KEY", CANARY)
    guard("CANARY_KEY")
    for form in (CANARY, json.dumps({"k": CANARY}), quote(CANARY, safe=""), f"Bearer {CANARY}", f"x{CANARY}y"):
        assert "k3y" not in redact(form)


@given(st.binary(min_size=0, max_size=600))
def test_no_picture_survives(content: bytes) -> None:
    coded = base64.b64encode(content).decode()
    for text in (f'{{"url": "data:image/png;base64,{coded}"}}', f"data:image/png;base64,{coded} and more"):
        clean = redact(text)
        assert "data:image/png,[hidden]" in clean
        assert len(coded) < 8 or coded not in clean
    if len(coded) >= 160:
        assert coded not in redact(f"body={coded}")


@pytest.mark.parametrize(
    "text",
    [
        "Incorrect API key provided: sk-proj-AAAAbbbbCCCCddddEEEE1234.",
        "Authorization: Bearer abcdef.ghijk-lmn",
        "headers={'api-key': 'abcdefghij1234'}",
        "key AIzaSyA1234567890abcdefghijk",
    ],
)
def test_shapes_of_keys(text: str) -> None:
    clean = redact(text)
    assert "[hidden]" in clean
    for secret in ("AAAAbbbb", "abcdef.ghijk", "abcdefghij1234", "A1234567890"):
        assert secret not in clean


@pytest.mark.parametrize(
    "text",
    [
        "HTTP 503: The server is overloaded; case kvasir/abc/blur_s3_f0_r1 of 12, see https://example.org/x?y=1",
        "The patient is a bearer of the gene; bearers have polyps.",
        "Bearer HLA-B27-positive, bearer BRCA1/BRCA2-mutated, bearer **mutation**, immunohistochemically a bearer too",
        "Prior authorization: required; authorization: patient",
        "A keyhole-gastrojejunostomy; die skelettszintigraphische Untersuchung; sk-ill",
    ],
)
def test_ordinary_words_stay(text: str) -> None:
    assert redact(text) == text


WORDS = st.text(alphabet="abcdefghijklmnopqrstuvwxyzäöüéßπ", min_size=1, max_size=31)
"""Words of a language; the longest of medical English in use have 31 letters or fewer."""
NOTATION = st.from_regex(r"[A-Z]{1,4}[0-9]{1,2}[A-Z]?", fullmatch=True)
"""Genes, proteins, classes: BRCA1, HLA, B27, IIa."""
SPOKEN = st.lists(WORDS | WORDS.map(str.capitalize) | NOTATION, min_size=1, max_size=4)
BETWEEN = st.sampled_from([" ", ", ", "-", "/", ". "])
KEY = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789"
SECRETS = st.one_of(
    st.text(alphabet=KEY, min_size=16, max_size=64).filter(lambda key: any(sign.isdigit() for sign in key)),
    st.text(alphabet="0123456789abcdef", min_size=32, max_size=64),
    st.uuids().map(str),
    st.binary(min_size=24, max_size=60).map(lambda key: "eyJ" + base64.urlsafe_b64encode(key).decode() + "1"),
)


@given(SPOKEN, BETWEEN, st.sampled_from(["bearer ", "Bearer ", "BEARER\n", "the bearer "]))
def test_sentences_about_bearers_stay(words: list[str], between: str, begin: str) -> None:
    sentence = begin + between.join(words)
    assert redact(sentence) == sentence


@given(SECRETS, st.sampled_from(["bearer ", "Bearer ", "got Bearer\t", "authorization: Bearer ", "Authorization: "]))
def test_tokens_of_bearers_go(key: str, begin: str) -> None:
    longest = max(re.findall(r"[A-Za-z0-9]+", key), key=len)
    clean = redact(f"{begin}{key}, said the server")
    assert longest not in clean
    assert clean.endswith(", said the server")


@given(st.sampled_from(["sk-", "sk-proj-", "pk_", "gsk_", "hf_", "AIza"]), SECRETS)
def test_keys_of_vendors_go(begin: str, key: str) -> None:
    key = re.sub(r"[^A-Za-z0-9]", "", key)
    assert key not in redact(f"Incorrect API key provided: {begin}{key}.")


@pytest.mark.parametrize(
    ("text", "secret"),
    [
        ("401 {'Authorization': 'Bearer sk-live-short1'}", "sk-live-short1"),
        ("GET https://api.example.org/v1?key=AIzaSyD-9tSrke72PouQMnMX-a7eZSW0jkFMBWY&alt=json", "7eZSW0jkFMBWY"),
        ("postgres://reader:opensesame@db.example.org/x is down", "opensesame"),
        ("api_key=ab12cd34 was refused", "ab12cd34"),
        ("X-Api-Key: 0a1b2c3d4e5f", "0a1b2c3d4e5f"),
        ('{"access_token": "q1w2e3r4t5y6", "client_secret": "zx12cv34bn"}', "q1w2e3r4t5y6"),
        ('{"access_token": "q1w2e3r4t5y6", "client_secret": "zx12cv34bn"}', "zx12cv34bn"),
        ("OPENAI_API_KEY='9f8e7d6c5b4a3210'", "9f8e7d6c5b4a3210"),
        ("sk-ant-api03-AbCdEfGhIjKlMnOpQrStUvWx-1_y2Z-zAA", "zAA"),
        ("ghp_16C7e42F292c6912E7710c838347Ae178B4a", "16C7e42F"),
        ("github_pat_11ABCDEFG0abcdefghijkl_mnopqrstuvwxyz", "mnopq"),
        ("xoxb-123456789012-abcdefGHIJKL", "abcdefGHIJKL"),
        ("AKIAIOSFODNN7EXAMPLE is no user", "IOSFODNN7"),
        ("glpat-aB3dE6gH9jK2mN5pQ8sT", "aB3dE6"),
        ("eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0In0.dBjftJeZ4CVP-mB92K27uh", "B92K27uh"),
    ],
)
def test_keys_that_systems_raise_with(text: str, secret: str) -> None:
    clean = redact(text)
    assert secret not in clean and "[hidden]" in clean
    assert redact(clean) == clean


CONTROLS = [*map(chr, (*range(9), *range(0x0B, 0x20), *range(0x7F, 0xA0), *range(0x202A, 0x202F)))]
CONTROLS += [chr(code) for code in (*range(0x2066, 0x206A), 0xD800, 0xD83D, 0xDC80, 0xDFFF)]


@pytest.mark.parametrize("sign", CONTROLS, ids=lambda sign: f"{ord(sign):04x}")
def test_control_characters_are_escaped(sign: str) -> None:
    clean = redact(f"two{sign} polyps")
    assert clean == f"two{sign.encode('unicode_escape').decode()} polyps" and sign not in clean
    assert clean.encode().decode() == clean == redact(clean)


PRINTABLE = st.text(st.characters(exclude_categories=["Cc", "Cs"], exclude_characters="".join(CONTROLS)), max_size=40)


@given(PRINTABLE)
def test_characters_of_every_script_stay_unchanged(text: str) -> None:
    assert visible(text) == text


def test_lines_marks_of_direction_and_joined_signs_stay() -> None:
    text = "One.\n\tTwo\r\n\N{RIGHT-TO-LEFT MARK}\u05d0\u05d1 \u0645\u06cc\N{ZERO WIDTH NON-JOINER}\u062e"
    text += " \U0001f469\N{ZERO WIDTH JOINER}\U0001f52c e\N{COMBINING ACUTE ACCENT} \\x1b"
    assert redact(text) == text
    assert redact("done\rALL IS WELL") == "done\\rALL IS WELL"  # a lone return overwrites the line of a terminal


class Nameless(Exception):
    def __str__(self) -> str:
        raise RuntimeError("not even this")


@pytest.mark.parametrize(
    ("text", "clean"),
    [
        ("postgresql://reader:open@db.example:5432/x is down", "postgresql://db.example:5432/x is down"),
        ("postgresql://reader:op@en@db.example", "postgresql://db.example"),
        ("postgresql://reader:op@e/n@db.example", "postgresql://db.example"),
        ("[http://reader@a.example/v1,http://reader:open@b.example]", "[http://a.example/v1,http://b.example]"),
        ("http://db.example/v1 of me@example.org", "http://db.example/v1 of me@example.org"),
    ],
)
def test_users_of_addresses_are_removed_with_any_password(text: str, clean: str) -> None:
    assert without_users(text) == clean
    assert without_users(clean, "…@") == clean


def test_any_exception_is_one_line() -> None:
    assert reason_of(Nameless()) == "Nameless"
    assert reason_of(ValueError("half \ud83d of\n\x1b[31mit")) == "half \\ud83d of \\x1b[31mit"
    assert len(reason_of(ValueError("sk-" * 3_000_000))) <= 300


def test_half_a_key_is_cut_off_too(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CANARY_KEY", PLAIN_CANARY)
    guard("CANARY_KEY")
    assert "zq-can" not in reason_of(ValueError("x" * 290 + " " + PLAIN_CANARY))


def test_log_records_with_tracebacks_are_clean(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CANARY_KEY", PLAIN_CANARY)
    guard("CANARY_KEY")
    guard_logs()
    guard_logs()
    shown = io.StringIO()
    handler = logging.StreamHandler(shown)
    logger = logging.getLogger("openai._base_client")
    logger.addHandler(handler)
    try:
        try:
            raise ValueError(f"header {PLAIN_CANARY}")
        except ValueError:
            logger.exception("failed with %s and %s", PLAIN_CANARY, picture().data_url())
    finally:
        logger.removeHandler(handler)
    assert "failed with [hidden]" in shown.getvalue()
    assert "ValueError" in shown.getvalue()
    assert "canary" not in shown.getvalue()
    assert "iVBOR" not in shown.getvalue()
