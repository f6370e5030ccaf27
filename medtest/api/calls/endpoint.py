"""Endpoints of requests, and permissions to send data off this machine."""

from __future__ import annotations

import ipaddress
import os
import re
from dataclasses import dataclass
from urllib.parse import urlsplit

from medtest.api.redact import names_variable, redact
from medtest.core.errors import Mistake

_VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")


@dataclass(frozen=True, slots=True, kw_only=True)
class Endpoint:
    """Endpoint of requests.

    Attributes:
        base_url: ``https://host/v1``; ``http`` only to loopback.
        key_variable: Name of the environment variable with the key; "" for servers without a key.
        send_images: Whether the user allows pictures to leave this machine.
        send_prompts: Whether the user allows prompts for pictures to leave this machine.
        name: Replaces the address in content keys, if the address changes each time (a server started by medtest); ""
            for the address.
    """

    base_url: str
    key_variable: str = ""
    send_images: bool = False
    send_prompts: bool = False
    name: str = ""

    @property
    def provider(self) -> str:
        """Name in content keys."""
        return self.name or self.base_url

    @property
    def limited_as(self) -> str:
        """Scope of a server's limits: scheme, host, port and the key's variable. Not for display."""
        parts = urlsplit(self.base_url)
        port = parts.port or {"https": 443, "http": 80}.get(parts.scheme, 0)
        return f"{parts.scheme}://{(parts.hostname or '').lower()}:{port} {self.key_variable}"

    @property
    def loopback(self) -> bool:
        """Whether the host is this machine, by its name or address alone (without name lookup)."""
        try:
            host = urlsplit(self.base_url).hostname or ""
        except ValueError:
            return False
        if host == "localhost":
            return True
        try:
            return ipaddress.ip_address(host).is_loopback
        except ValueError:
            return False

    def mistakes(self, where: str = "configuration", *, pictures: bool = True, prompts: bool = False) -> list[Mistake]:
        """Return the endpoint's mistakes, for requests with or without pictures, or with prompts for pictures.

        The key's variable must be set; its value is not read.
        """
        mistakes: list[Mistake] = []
        shown = redact(self.base_url)
        if set("@?#") & set(self.base_url):
            shown = "an address with user name, password or query (not shown)"
        try:
            parts = urlsplit(self.base_url)
            port_is_one = parts.port != 0
        except ValueError:  # brackets without an address, or an invalid port
            parts, port_is_one = urlsplit(""), False
        usable = parts.scheme in ("http", "https") and parts.hostname and port_is_one
        if (
            not usable
            or "@" in parts.netloc
            or parts.query
            or parts.fragment
            or any(sign.isspace() for sign in self.base_url)
        ):
            mistakes.append(
                Mistake(where=where, key="base_url", found=shown, allowed="https://host/v1, without user or query")
            )
            return mistakes + self._key_mistakes(where)
        if parts.scheme == "http" and not self.loopback:
            mistakes.append(
                Mistake(
                    where=where,
                    key="base_url",
                    found=shown,
                    allowed="https, or http to 127.0.0.1 or localhost",
                    fix="plain http does not encrypt the key and the pictures",
                )
            )
        sent = (
            ("images", pictures, self.send_images, "pictures, possibly of patients,"),
            ("prompts", prompts, self.send_prompts, "prompts, possibly clinical,"),
        )
        for kind, needed, allowed, content in sent:
            if needed and not self.loopback and not allowed:
                setting = f"send_{kind}=true"
                fix = f"set {setting} if the {content} may be sent to {parts.hostname}"
                mistakes.append(Mistake(where=where, key=f"send_{kind}", found="false", fix=fix, needed=setting))
        mistakes += self._key_mistakes(where)
        return mistakes

    def _key_mistakes(self, where: str) -> list[Mistake]:
        if not self.key_variable:
            return []
        allowed = "the name of an environment variable that holds the key"
        if not _VARIABLE.fullmatch(self.key_variable):
            # The value may be the key itself, so it is not repeated.
            return [Mistake(where=where, key="key_variable", found="something else (not shown)", allowed=allowed)]
        if os.environ.get(self.key_variable, "").strip():
            return []
        if not names_variable(self.key_variable):
            # Nor is anything that could be a key by its letters; variable names are in capitals by convention.
            problem = "a variable that is not set (not shown: it could be the key itself)"
            return [Mistake(where=where, key="key_variable", found=problem, allowed=allowed)]
        name = self.key_variable
        unset = f"{name} is not set"
        return [Mistake(where=where, key="key_variable", found=unset, fix=f"export {name}=…", needed=name)]
