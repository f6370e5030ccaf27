"""Detached signatures with ``ssh-keygen -Y``, which OpenSSH 8.0 and later bring."""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path
from tempfile import TemporaryDirectory

from medtest.core.errors import OutputProblem, typed_error

NAMESPACE = "medtest-evidence"
"""Purpose within which a signature is valid, ``-n`` of ``ssh-keygen``."""
SIGNATURE = ".sig"
_PROGRAM = "ssh-keygen"
_KEY_TYPE = re.compile(r"(?:ssh-|ecdsa-|sk-)\S+ [A-Za-z0-9+/=]+")
_ANYBODY = "signer"


def check_key(key: Path) -> None:
    """Check that a key exists and that ``ssh-keygen`` is installed, before anything is written.

    Raises:
        UserMistakes: The key does not exist, or ``ssh-keygen`` is not installed.
    """
    if not key.is_file():
        raise typed_error(
            "--sign",
            f"{key}, which does not exist",
            "a private key of SSH",
            "ssh-keygen -t ed25519 -f evidence_key makes one",
        )
    _program("--sign")


def sign(path: Path, key: Path) -> Path:
    """Sign a file with a private key; a key with a passphrase asks for it on the terminal.

    Args:
        path: The file.
        key: Private key of SSH, or the public key of one that ``ssh-agent`` holds.

    Returns:
        The signature beside the file, ``NAME.sig``.

    Raises:
        UserMistakes: The key does not exist or cannot sign, or ``ssh-keygen`` is not installed.
    """
    check_key(key)
    target = path.with_name(path.name + SIGNATURE)
    target.unlink(missing_ok=True)
    code, words = _run("--sign", "-Y", "sign", "-f", str(key), "-n", NAMESPACE, str(path.resolve()))
    if code or not target.is_file():
        raise typed_error("--sign", f"{key.name}: {words}", "a private key of SSH")
    return target


def verify(path: Path, signers: Path | None) -> tuple[bool, str]:
    """Check the signature beside a file.

    Args:
        path: The file.
        signers: Public key or ``allowed_signers`` that the signature must belong to; None accepts any key.

    Returns:
        Whether it fits the file, and the expected key if one was named; and the result as one line.

    Raises:
        UserMistakes: ``ssh-keygen`` is not installed, or the file of signers holds no key.
    """
    signature = path.with_name(path.name + SIGNATURE)
    if not signature.is_file():
        return False, f"{signature.name} is missing: nothing is signed"
    content = path.read_bytes()
    if signers is None:
        code, words = _run(
            "--signers", "-Y", "check-novalidate", "-n", NAMESPACE, "-s", str(signature), content=content
        )
        key = re.search(r"SHA256:\S+", words)
        if code or key is None:
            return False, f"does not fit {path.name}: {words}"
        return True, f"fits {path.name}, made with the key {key[0]}; --signers FILE checks whose"
    with TemporaryDirectory(prefix="medtest-signers-") as scratch:
        allowed = Path(scratch) / "allowed_signers"
        allowed.write_text(_allowed(signers), encoding="utf-8")
        unknown, names = _run("--signers", "-Y", "find-principals", "-s", str(signature), "-f", str(allowed))
        if unknown:
            return False, f"was not made with a key of {signers.name}"
        name = names.split()[0]
        code, words = _run(
            *("--signers", "-Y", "verify", "-f", str(allowed), "-I", name, "-n", NAMESPACE, "-s", str(signature)),
            content=content,
        )
    owner = signers.name if name == _ANYBODY else f"{name}, in {signers.name}"
    return not code, f"does not fit {path.name}: {words}" if code else f"by the key of {owner}"


def _allowed(signers: Path) -> str:
    """Return lines of ``allowed_signers``: those of a file, or the public keys of one under a name of ours."""
    try:
        lines = signers.read_text(encoding="utf-8").splitlines()
    except (OSError, ValueError) as error:
        raise _no_signers(signers, str(error)) from error
    lines = [line for line in lines if line.strip() and not line.startswith("#")]
    if not any(_KEY_TYPE.search(line) for line in lines):
        raise _no_signers(signers, f"{signers.name}, which holds no public key")
    return "\n".join(f"{_ANYBODY} {line}" if _KEY_TYPE.match(line) else line for line in lines) + "\n"


def _no_signers(signers: Path, problem: str) -> Exception:
    allowed = "a public key (KEY.pub), or a file of allowed_signers as ssh-keygen reads it"
    return typed_error("--signers", problem, allowed)


def _program(option: str) -> str:
    """Return the path of ``ssh-keygen``."""
    program = shutil.which(_PROGRAM)
    if program is None:
        raise typed_error(option, "no ssh-keygen", "OpenSSH 8.0 or later, installed")
    return program


def _run(option: str, *arguments: str, content: bytes | None = None) -> tuple[int, str]:
    """Run ``ssh-keygen``; return its exit code and its output on one line."""
    program = _program(option)
    try:
        done = subprocess.run(  # noqa: S603 - a fixed program, arguments without a shell
            [program, *arguments],
            input=content,
            stdin=None if content is not None else subprocess.DEVNULL,
            capture_output=True,
            check=False,
        )
    except OSError as error:
        raise OutputProblem(f"ssh-keygen cannot be started: {error.strerror}") from error
    output = (done.stdout + done.stderr).decode("utf-8", errors="replace")
    return done.returncode, " ".join(output.split())[:300]
