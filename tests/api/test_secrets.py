"""Keys and pictures are shown nowhere: canaries in every channel that a person or a file could see."""

from __future__ import annotations

import base64
import io
import json
import logging
import os
import re
import subprocess
import sys
import traceback
from pathlib import Path
from urllib.parse import quote

import pytest
from api_parts import ask_all, campaign, picture, questions
from hypothesis import given
from hypothesis import strategies as st

from medtest.api.calls.client import Caller, Endpoint
from medtest.api.calls.request import CallState, Parameters, Request
from medtest.api.calls.retry import Retries
from medtest.api.drawn import keepers
from medtest.api.faulty.server import Faults, serving
from medtest.api.redact import guard, guard_logs, reason_of, redact, visible, without_users
from medtest.core.errors import UserMistakes

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


@pytest.mark.parametrize(
    "faults", [Faults(), Faults(key="other"), Faults(reset=1), Faults(error=1), Faults(truncated=1)]
)
def test_a_whole_campaign_shows_neither(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, faults: Faults, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("CANARY_KEY", PLAIN_CANARY)
    shown = io.StringIO()
    handler = logging.StreamHandler(shown)
    root = logging.getLogger()
    level = root.level
    root.addHandler(handler)
    root.setLevel(logging.DEBUG)
    rules = Retries(attempts=2, first_pause=0.01, call_seconds=5)
    try:
        with (
            serving(faults) as server,
            campaign(tmp_path, server.base_url, key_variable="CANARY_KEY", retries=rules) as running,
        ):
            got = list(running.iterate(questions(3)))
            shown.write(repr(got) + repr(running.caller) + repr(running.caller.endpoint) + running.progress().line())
    finally:
        root.removeHandler(handler)
        root.setLevel(level)
    printed = capfd.readouterr()
    shown_texts = [shown.getvalue(), printed.out, printed.err]
    assert "send_request_headers" in shown.getvalue()  # the logs were on
    files = [path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()]
    assert files
    coded = picture().data_url().split(",")[1][:40]
    for secret in (PLAIN_CANARY, coded, "base64,iVBOR"):
        assert not any(secret in text for text in shown_texts)
        assert not any(secret.encode() in content for content in files)
    assert not any(b"question 0" in content for content in files)  # nor prompts
    assert not any(picture().png[:60] in content for content in files)


def test_the_key_reaches_the_server_and_only_the_environment_holds_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CANARY_KEY", "first")
    with serving(Faults(key=PLAIN_CANARY)) as server:
        endpoint = Endpoint(base_url=server.base_url, key_variable="CANARY_KEY")
        caller = Caller(endpoint, PARAMETERS)
        # Set after the caller was created: it is read when a request leaves.
        monkeypatch.setenv("CANARY_KEY", PLAIN_CANARY)
        import asyncio

        async def body() -> None:
            reply = await caller.call(Request(address="a", prompt="p"))
            assert reply.state == CallState.ANSWERED
            assert PLAIN_CANARY not in str(vars(caller)) + str(vars(caller._http)) + str(vars(caller._http._opened))
            await caller.close()

        asyncio.run(body())


@pytest.mark.parametrize(
    "key",
    [
        "sk-proj-" + "".join(["can", "ary"]) + "12345678901234",  # the line itself is in the traceback
        "".join(["can", "ary"]) + "0123456789abcdef",
        "".join(["can", "ary"]) + "password",
        "".join(["CAN", "ARY"]) + "IOSFODNN7EXAMPLE",
    ],
)
def test_a_key_in_the_place_of_its_variable_is_not_repeated(key: str) -> None:
    with pytest.raises(UserMistakes) as caught:
        Caller(Endpoint(base_url="http://127.0.0.1:1/v1", key_variable=key), PARAMETERS)
    shown = "".join(traceback.format_exception(caught.value))
    assert "canary" not in shown.lower()
    assert "environment variable" in shown


@pytest.mark.parametrize(
    "url",
    [
        "https://user:{}@host.example/v1",
        "https://host.example/v1?key={}",
        "https://host.example/v1#{}",
        "user:{}@host.example",
        "http://10.0.0.1/v1?token={}",
    ],
)
def test_an_address_with_a_secret_in_it_is_refused_and_not_repeated(url: str) -> None:
    secret = "".join(["can", "ary"])
    with pytest.raises(UserMistakes) as caught:
        Caller(Endpoint(base_url=url.format(secret), send_images=True), PARAMETERS)
    assert [mistake.key for mistake in caught.value.mistakes] == ["base_url"]
    assert "canary" not in "".join(traceback.format_exception(caught.value))


def test_a_variable_that_is_not_set_is_named() -> None:
    (mistake,) = Endpoint(base_url="http://127.0.0.1:1/v1", key_variable="OPENAI_API_KEY_2026X").mistakes()
    assert "OPENAI_API_KEY_2026X is not set" in mistake.found


@pytest.mark.parametrize(
    ("endpoint", "keys"),
    [
        (Endpoint(base_url="http://example.org/v1", send_images=True), ["base_url"]),
        (Endpoint(base_url="http://10.0.0.5:8000/v1", send_images=True), ["base_url"]),
        (Endpoint(base_url="https://example.org/v1"), ["send_images"]),
        (Endpoint(base_url="http://localhost.example.org/v1"), ["base_url", "send_images"]),
        (Endpoint(base_url="http://127.0.0.1@example.org/v1", send_images=True), ["base_url"]),
        (Endpoint(base_url="ftp://127.0.0.1/v1"), ["base_url"]),
        (Endpoint(base_url="nonsense", send_images=True), ["base_url"]),
        (Endpoint(base_url="http://[::1]:8000/v1"), []),
        (Endpoint(base_url="http://127.0.0.9:8000/v1"), []),
        (Endpoint(base_url="https://example.org/v1", send_images=True), []),
        (Endpoint(base_url="http://localhost/v1", key_variable="SURELY_NOT_SET_1"), ["key_variable"]),
    ],
)
def test_where_requests_may_go(endpoint: Endpoint, keys: list[str]) -> None:
    assert [mistake.key for mistake in endpoint.mistakes()] == keys


@pytest.mark.parametrize(
    "url", ["http://[::1/v1", "https://host:abc/v1", "https://host:99999/v1", "https://ho st/v1", "https://host/v1 "]
)
def test_a_malformed_address_is_one_message(url: str) -> None:
    with pytest.raises(UserMistakes) as caught:
        Caller(Endpoint(base_url=url), PARAMETERS)
    assert [mistake.key for mistake in caught.value.mistakes] == ["base_url"]


def test_text_alone_may_leave_without_send_images() -> None:
    import asyncio

    endpoint = Endpoint(base_url="https://example.invalid/v1")
    assert endpoint.mistakes(pictures=False) == []
    caller = Caller(endpoint, PARAMETERS, pictures=False)
    reply = asyncio.run(caller.call(Request(address="a", prompt="p", pictures=(picture(),))))
    assert "send_images" in reply.reason  # and no request was sent


def test_redirects_are_not_followed(tmp_path: Path) -> None:
    import http.server
    import threading

    class Away(http.server.BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            self.rfile.read(int(self.headers["content-length"]))
            self.send_response(307)
            self.send_header("location", target)
            self.send_header("content-length", "0")
            self.end_headers()

        def log_message(self, *args: object) -> None:
            pass

    with serving() as other:
        target = other.base_url + "/chat/completions"
        away = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Away)
        threading.Thread(target=away.serve_forever, daemon=True).start()
        try:
            (got,) = ask_all(tmp_path, f"http://127.0.0.1:{away.server_address[1]}/v1", questions(1))
        finally:
            away.shutdown()
            away.server_close()
        assert got.state == CallState.ERROR
        assert "307" in got.reason
        assert other.counts["received"] == 0


def test_a_proxy_is_used_for_other_hosts_and_not_for_this_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import asyncio
    import socket
    import threading

    heard: list[bytes] = []
    proxy = socket.create_server(("127.0.0.1", 0))

    def listen() -> None:
        while True:
            try:
                connection, _ = proxy.accept()
            except OSError:
                return
            with connection:
                heard.append(connection.recv(4096))

    threading.Thread(target=listen, daemon=True).start()
    for name in ("HTTP_PROXY", "HTTPS_PROXY", "http_proxy", "https_proxy"):
        monkeypatch.setenv(name, f"http://127.0.0.1:{proxy.getsockname()[1]}")
    for name in ("NO_PROXY", "no_proxy"):
        monkeypatch.delenv(name, raising=False)
    with serving() as server:
        (got,) = ask_all(tmp_path, server.base_url, questions(1))
    assert got.state == CallState.ANSWERED
    assert heard == []

    async def body() -> None:
        caller = Caller(Endpoint(base_url="https://example.invalid/v1"), PARAMETERS, pictures=False, call_seconds=5)
        reply = await caller.call(Request(address="a", prompt="p"))
        assert reply.state is None
        await caller.close()

    asyncio.run(body())
    proxy.close()
    assert heard
    assert heard[0].startswith(b"CONNECT example.invalid:443")


def test_the_command_line_holds_no_key() -> None:
    """The key is only in the environment: only the keeper of drawn images starts a process, without the key."""
    room = Path(__file__).parents[2] / "medtest" / "api"
    code = "".join(path.read_text(encoding="utf-8") for path in room.rglob("*.py"))
    starts = [path.name for path in room.rglob("*.py") if "subprocess" in path.read_text(encoding="utf-8")]
    assert starts == ["keepers.py"]
    assert not any("KEY" in name for name in keepers._HANDED_ON)
    assert code.count("os.environ") == code.count("os.environ.get(") > 0
    assert "getenv" not in code
    env = {**os.environ, "PYTHONPATH": str(room.parents[1])}
    done = subprocess.run(
        [sys.executable, "-c", "import sys, medtest.api.campaign; print('openai' in sys.modules)"],
        capture_output=True,
        text=True,
        env=env,
        check=True,
    )
    assert done.stdout.strip() == "False"  # loaded at its use
