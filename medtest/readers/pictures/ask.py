"""A vision-language system as a reader: it is asked about what the pools of a case and its source name.

Any system of ours that answers questions can be asked: over an API, in a folder, or simulated; calls, limits, cache and
ledger are its own. Its answers are read by the parser of typed answers (:mod:`medtest.language.questions.answers`), and
what it is asked is :mod:`medtest.readers.pictures.pool_questions`'s.
"""

from __future__ import annotations

import hashlib
import tempfile
from collections.abc import Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from itertools import count
from pathlib import Path
from typing import Any, ClassVar, Final

import numpy as np
from filelock import FileLock, Timeout
from pydantic import Field

from medtest.core.cases import Address, AnswerOutput, Ask, Image, Json, image_sha256
from medtest.core.errors import FolderInUse, MedtestError, Mistake, UserMistakes
from medtest.core.plugins import TRUSTED
from medtest.core.scenes import Scene
from medtest.language.questions.answers.values.answer import Answer
from medtest.readers.pictures.base import PictureContent, PictureReader, PictureSettings
from medtest.readers.pictures.named_system import named_system, print_of
from medtest.readers.pictures.pool_questions import following, presence, questions_of, said_yes, scene_of
from medtest.readers.typed import read_answer
from medtest.systems.answering.api_system import ApiSystem
from medtest.systems.answering.asking import Asking, AskingSystem, BudgetLimits

SYSTEM_PROMPT: Final = (
    "You are shown one picture. Answer the question about it, and nothing else: yes or no; a number in figures; or the"
    " names of colours. If the picture does not show it clearly enough, answer: cannot tell."
)
_FOLDERS: Final = 64
_LEAST_SEED: Final = 2**31


class AskReaderSettings(PictureSettings):
    """Settings of a vision-language system as a reader.

    Attributes:
        system: Name of the system (``medtest list systems``): ``qwen_vl``, ``openai_compatible``, ``chat_images``…
        settings: Its settings, as ``{base_url: …, model: …, send_images: true}``; its ``system_prompt`` is
            :data:`SYSTEM_PROMPT` unless they say another.
        send_prompts: Questions, which are made of prompts, may be sent to a host that is not this machine; pictures
            may where ``settings`` say ``send_images``.
        max_calls: Most calls of one reading process; null for no limit.
        max_usd: The same in US dollars.
    """

    system: str = "openai_compatible"
    settings: dict[str, Any] = Field(default={}, json_schema_extra=TRUSTED)
    send_prompts: bool = Field(default=False, json_schema_extra=TRUSTED)
    max_calls: int | None = Field(default=None, ge=1, json_schema_extra=TRUSTED)
    max_usd: float | None = Field(default=None, gt=0, allow_inf_nan=False, json_schema_extra=TRUSTED)


@dataclass(frozen=True, kw_only=True)
class _Question:
    """One question about one picture of a batch."""

    picture: int
    key: object
    ask: Ask


class PictureAsker(PictureReader):
    """Asks whether each thing is there; of what is there how many, which colour, and which relations hold.

    Where boxes are it does not say. A server that fails on a question is an ERROR of the cases that wait for it, and is
    asked again when they are run again; an answer that says nothing clearly is none.
    """

    Settings = AskReaderSettings
    settings: AskReaderSettings
    asks_words: ClassVar[bool] = True

    def __init__(self, name: str, settings: Any) -> None:
        super().__init__(name, settings)
        self._system: AskingSystem | None = None
        self._folders: list[Path] = []
        self._lock: FileLock | None = None
        self._own: tempfile.TemporaryDirectory[str] | None = None
        self._numbers = count()

    def _named(self) -> AskingSystem | list[Mistake]:
        own = self.settings
        given = {"system_prompt": SYSTEM_PROMPT, **own.settings}
        found = named_system(own.system, given, where=self.name, task="answer")
        if isinstance(found, list | AskingSystem):
            return found
        what = f"{own.system}, which draws no questions"
        return [Mistake(where=self.name, key="system", found=what, allowed="a system that is asked")]

    def _made(self) -> AskingSystem:
        """Return the system, not opened.

        Raises:
            UserMistakes: It is none, or its settings are wrong.
        """
        found = self._named()
        if isinstance(found, list):
            raise UserMistakes(found)
        return found

    def check(self) -> list[Mistake]:
        """Return what is wrong with the system that is named, or its settings."""
        found = self._named()
        if isinstance(found, list):
            return found
        away = isinstance(found, ApiSystem) and not found.endpoint().loopback
        refused = []
        if away and not self.settings.send_prompts:
            fix = "say send_prompts=true if what the prompts name may be sent there: it may be clinical"
            refused = [Mistake(where=self.name, key="send_prompts", found="false", fix=fix, needed="send_prompts=true")]
        return [*found.check(), *refused, *super().check()]

    def without_card(self) -> dict[str, Json]:
        """Return what its scenes depend on: the system with all that shapes its answers."""
        return {**super().without_card(), "system": print_of(self._made())}

    def notice(self) -> str:
        """Return who is asked and where pictures go, and what is known of how well it sees."""
        return " ".join(one for one in (self._made().notice(), super().notice()) if one)

    def keep_in(self, folders: Iterable[Path]) -> None:
        """Say in which runs' folders pictures lie; ledger and answers of the system lie in the first."""
        self._folders = list(folders)
        super().keep_in(self._folders)

    def open(self, *, device: str, threads: int) -> None:
        """Open the system, with a folder of its own for each process that reads.

        Raises:
            MedtestError: It cannot be opened.
        """
        if not self._folders:
            self._own = tempfile.TemporaryDirectory(prefix="medtest-ask-")
        folder = self._free_folder(Path(self._own.name) if self._own is not None else self._folders[0])
        system = self._made()
        limits = BudgetLimits(max_usd=self.settings.max_usd, max_calls=self.settings.max_calls)
        system.keep_in(folder, folder, budget=limits, cache="use")
        system.open(device=device, threads=threads)
        self._system = system

    def _free_folder(self, within: Path) -> Path:
        """Return a folder that no other process of this reader holds, and hold it.

        Raises:
            FolderInUse: All are held.
        """
        for number in range(_FOLDERS):
            folder = within / f"reader-{self.name}-{number}"
            folder.mkdir(parents=True, exist_ok=True)
            lock = FileLock(folder / "reader.lock", thread_local=False)
            with suppress(Timeout):
                lock.acquire(timeout=0)
                self._lock = lock
                return folder
        raise FolderInUse(f"{self.name}: all of its {_FOLDERS} folders are in use")

    def close(self) -> None:
        """Let go of the system."""
        if self._system is not None:
            self._system.close()
            self._system = None
        if self._lock is not None:
            self._lock.release()
            self._lock = None
        if self._own is not None:
            self._own.cleanup()
            self._own = None

    def look(self, images: Sequence[Image], contents: Sequence[PictureContent]) -> list[Scene]:
        """Return what the system says of each picture: first what is there, then more of that.

        Raises:
            MedtestError: The reader is not opened, or a question was not answered: the server failed, or a budget is
                reached.
        """
        asked = [questions_of(content.asked()) for content in contents]
        first = [_Question(picture=at, key=key, ask=ask) for at, one in enumerate(asked) for key, ask in presence(one)]
        answers = self._answers(images, contents, first)
        more = []
        for at, one in enumerate(asked):
            there = frozenset(name for name in one.classes if said_yes(answers[at, name]))
            more += [_Question(picture=at, key=key, ask=ask) for key, ask in following(one, there)]
        answers |= self._answers(images, contents, more)
        return [
            scene_of(one, {key: answer for (picture, key), answer in answers.items() if picture == at})
            for at, one in enumerate(asked)
        ]

    def _answers(
        self, images: Sequence[Image], contents: Sequence[PictureContent], questions: Sequence[_Question]
    ) -> dict[tuple[int, object], Answer]:
        """Return the answer to each question, by picture and key."""
        if self._system is None:
            raise MedtestError(f"{self.name} was asked before it was opened")
        calls = {}
        for one in questions:
            call = self._call(images[one.picture], contents[one.picture], one.ask)
            calls[call.number] = (call, one)
        found: dict[tuple[int, object], Answer] = {}
        for asked in self._system.ask(iter([call for call, _ in calls.values()])) if calls else ():
            _, one = calls[asked.number]
            (output,) = asked.outputs
            if not isinstance(output, AnswerOutput):
                raise MedtestError(f"{self.name} gave no answer to {one.ask.text!r}: {output}")
            found[one.picture, one.key] = read_answer(one.ask, output)
        if len(found) < len(questions):
            raise MedtestError(f"{self.name} answered {len(found)} of {len(questions)} questions")
        return found

    def _call(self, image: Image, content: PictureContent, ask: Ask) -> Asking:
        """Return the call of a question. Its label and its seed follow from the picture and the words alone."""
        print_ = hashlib.sha256(f"{content.picture}\n{ask.text}".encode()).hexdigest()
        shown = np.ascontiguousarray(image)
        address = Address(dataset="pictures", seed_id=content.picture[:32], item=ask.item)
        return Asking(
            number=next(self._numbers),
            label=f"{self.name}/{print_[:24]}",
            addresses=(address,),
            image=shown,
            sha256=image_sha256(shown),
            asks=(ask,),
            seed=int(print_[24:40], 16) % _LEAST_SEED,
        )
