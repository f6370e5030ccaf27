"""A vision-language system as a reader: it is asked about what the pools of a case and its source name.

Any built-in system that answers questions can be used: over an API, in a folder, or simulated. Calls, limits, cache and
ledger are the system's own. Its answers are read by the parser of typed answers
(:mod:`medtest.language.questions.answers`), and its questions come from :mod:`medtest.readers.pictures.pool_questions`.
"""

from __future__ import annotations

import hashlib
import tempfile
from collections.abc import Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from itertools import count
from pathlib import Path
from typing import ClassVar, Final

import numpy as np
from filelock import FileLock, Timeout
from pydantic import Field

from medtest.core.cases import Address, AnswerOutput, Ask, Image, image_sha256
from medtest.core.errors import FolderInUse, MedtestError, Mistake
from medtest.core.files.paths import package_folder
from medtest.core.plugins import TRUSTED
from medtest.core.scenes import Scene
from medtest.language.questions.answers.values.answer import Answer
from medtest.readers.pictures.base import PictureContent
from medtest.readers.pictures.card import SUFFIX
from medtest.readers.pictures.named_system import SystemReader, SystemReaderSettings, named_system
from medtest.readers.pictures.pool_questions import following, presence, questions_of, said_yes, scene_of
from medtest.readers.typed import read_answer
from medtest.systems.answering.api_system import ApiSystem
from medtest.systems.answering.asking import Asking, AskingSystem, BudgetLimits
from medtest.systems.base import System

SYSTEM_PROMPT: Final = (
    "You are shown one picture. Answer the question about it, and nothing else: yes or no; a number in figures; or the"
    " names of colours. If the picture does not show it clearly enough, answer: cannot tell."
)
_FOLDERS: Final = 64
_LEAST_SEED: Final = 2**31


class AskReaderSettings(SystemReaderSettings):
    """Settings of :class:`PictureAsker`.

    Attributes:
        system: Name of the system (``medtest list systems``): ``qwen_vl``, ``openai_compatible``, ``chat_images``…
        settings: Its settings, such as ``{base_url: …, model: …, send_images: true}``; ``system_prompt`` defaults to
            :data:`SYSTEM_PROMPT`.
        send_prompts: Whether questions, which are made from prompts, may be sent to another host; pictures may be sent
            if ``settings`` contain ``send_images``.
        max_calls: Maximum number of calls of one reading process; null for no limit.
        max_usd: The same in US dollars.
    """

    system: str = "openai_compatible"
    send_prompts: bool = Field(default=False, json_schema_extra=TRUSTED)
    max_calls: int | None = Field(default=None, ge=1, json_schema_extra=TRUSTED)
    max_usd: float | None = Field(default=None, gt=0, allow_inf_nan=False, json_schema_extra=TRUSTED)


@dataclass(frozen=True, kw_only=True)
class _Question:
    """A question about a picture of a batch."""

    picture: int
    key: object
    ask: Ask


class PictureAsker(SystemReader):
    """Asks whether each object is present, and for those that are, about number, colour and relations.

    It does not report boxes. If the server fails on a question, the cases that wait for the answer are ERRORs, and the
    question is asked again when they are rerun; an unclear answer counts as no answer.
    """

    Settings = AskReaderSettings
    settings: AskReaderSettings
    asks_words: ClassVar[bool] = True
    system_task = "answer"
    _system: AskingSystem | None = None
    _lock: FileLock | None = None
    _own: tempfile.TemporaryDirectory[str] | None = None

    def __init__(self, name: str, settings: AskReaderSettings) -> None:
        super().__init__(name, settings)
        self._folders: list[Path] = []
        self._numbers = count()

    def find_system(self) -> System | list[Mistake]:
        """Return the system, or the mistakes in its name or settings; it must be one that answers questions."""
        own = self.settings
        settings = {"system_prompt": SYSTEM_PROMPT, **own.settings}
        system = named_system(own.system, settings, where=self.name, task=self.system_task)
        if isinstance(system, list | AskingSystem):
            return system
        description = f"{own.system}, which answers no questions"
        return [Mistake(where=self.name, key="system", found=description, allowed="a system that answers questions")]

    def check(self) -> list[Mistake]:
        """Return the mistakes in the name of the system or its settings."""
        system, mistakes = self.find_system(), super().check()
        away = isinstance(system, ApiSystem) and not system.endpoint().loopback
        if away and not self.settings.send_prompts:
            fix = "set send_prompts=true if the names in the prompts may be sent there: they may be clinical"
            needed = "send_prompts=true"
            mistakes.append(Mistake(where=self.name, key="send_prompts", found="false", fix=fix, needed=needed))
        return mistakes

    def card_beside(self) -> Path | None:
        """Return the path of the card that ships for a system; None for other systems."""
        if not isinstance(self.find_system(), System):
            return None
        path = package_folder() / "weights" / f"ask-{self.settings.system}{SUFFIX}"
        return path if path.is_file() else None

    def keep_in(self, folders: Iterable[Path]) -> None:
        """Set the run folders that contain pictures; the system's ledger and answers are stored in the first."""
        self._folders = list(folders)
        super().keep_in(self._folders)

    def open(self, *, device: str, threads: int) -> None:
        """Open the system with a separate folder for each reading process.

        Raises:
            MedtestError: It cannot be opened.
        """
        if not self._folders:
            self._own = tempfile.TemporaryDirectory(prefix="medtest-ask-")
        folder = self._free_folder(Path(self._own.name) if self._own is not None else self._folders[0])
        system = self.create_system()
        assert isinstance(system, AskingSystem)  # noqa: S101 - checked by find_system
        limits = BudgetLimits(max_usd=self.settings.max_usd, max_calls=self.settings.max_calls)
        system.keep_in(folder, folder, budget=limits, cache="use")
        system.open(device=device, threads=threads)
        self._system = system

    def _free_folder(self, within: Path) -> Path:
        """Return a folder that no other process of this reader holds, and lock it.

        Raises:
            FolderInUse: All folders are in use.
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
        """Release the system."""
        super().close()
        if self._lock is not None:
            self._lock.release()
            self._lock = None
        if self._own is not None:
            self._own.cleanup()
            self._own = None

    def look(self, images: Sequence[Image], contents: Sequence[PictureContent]) -> list[Scene]:
        """Return the system's description of each picture: first which objects are present, then more about those.

        Raises:
            MedtestError: The reader is not open, or a question was not answered because the server failed or a budget
                is reached.
        """
        question_sets = [questions_of(content.asked()) for content in contents]
        first = [
            _Question(picture=at, key=key, ask=ask)
            for at, questions in enumerate(question_sets)
            for key, ask in presence(questions)
        ]
        answers = self._answers(images, contents, first)
        more = []
        for at, questions in enumerate(question_sets):
            present = frozenset(name for name in questions.classes if said_yes(answers[at, name]))
            more += [_Question(picture=at, key=key, ask=ask) for key, ask in following(questions, present)]
        answers |= self._answers(images, contents, more)
        return [
            scene_of(questions, {key: answer for (picture, key), answer in answers.items() if picture == at})
            for at, questions in enumerate(question_sets)
        ]

    def _answers(
        self, images: Sequence[Image], contents: Sequence[PictureContent], questions: Sequence[_Question]
    ) -> dict[tuple[int, object], Answer]:
        """Return the answer to each question by picture and key."""
        if self._system is None:
            raise MedtestError(f"{self.name} is not open")
        calls = {}
        for question in questions:
            call = self._call(images[question.picture], contents[question.picture], question.ask)
            calls[call.number] = (call, question)
        answers: dict[tuple[int, object], Answer] = {}
        for answered in self._system.ask(iter([call for call, _ in calls.values()])) if calls else ():
            _, question = calls[answered.number]
            (output,) = answered.outputs
            if not isinstance(output, AnswerOutput):
                raise MedtestError(f"{self.name} gave no answer to {question.ask.text!r}: {output}")
            answers[question.picture, question.key] = read_answer(question.ask, output)
        if len(answers) < len(questions):
            raise MedtestError(f"{self.name} answered {len(answers)} of {len(questions)} questions")
        return answers

    def _call(self, image: Image, content: PictureContent, ask: Ask) -> Asking:
        """Return the call for a question. Its label and seed depend only on the picture and the words."""
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
