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
from dataclasses import replace
from itertools import count
from pathlib import Path
from typing import Any, ClassVar, Final

import numpy as np
from filelock import FileLock, Timeout
from pydantic import Field, model_validator

from medtest.api.wire.likely import MOST_LIKELY, yes_or_no
from medtest.core.cases import Address, AnswerOutput, Ask, Image, Json, image_sha256
from medtest.core.errors import FolderInUse, MedtestError, Mistake
from medtest.core.files.paths import package_folder
from medtest.core.plugins import TRUSTED, wrong_at
from medtest.core.scenes import Belief, Scene
from medtest.language.questions.answers.values.answer import Answer
from medtest.language.questions.values import Kind
from medtest.readers.pictures.base import PictureContent, PromptedContent
from medtest.readers.pictures.card import SUFFIX
from medtest.readers.pictures.named_system import SystemReader, SystemReaderSettings, named_system
from medtest.readers.pictures.pool_questions import (
    WHOLE_PROMPT,
    asked_for,
    following,
    presence,
    questions_of,
    said_yes,
    scene_of,
    weighed,
    whole_prompt,
)
from medtest.readers.typed import ANSWERED, read_answer
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
        soft: Number of likely tokens whose log-probabilities are requested with each answer of yes or no, 20 at most
            (some servers allow 5); 0 for no soft scores. Colours and numbers are then also asked for by yes or no.
        whole_prompt: With ``soft``, whether to ask whether the picture shows the whole prompt (VQAScore).
    """

    system: str = "openai_compatible"
    send_prompts: bool = Field(default=False, json_schema_extra=TRUSTED)
    max_calls: int | None = Field(default=None, ge=1, json_schema_extra=TRUSTED)
    max_usd: float | None = Field(default=None, gt=0, allow_inf_nan=False, json_schema_extra=TRUSTED)
    soft: int = Field(default=0, ge=0, le=MOST_LIKELY)
    whole_prompt: bool = False

    @model_validator(mode="after")
    def _check_soft(self) -> AskReaderSettings:
        if self.whole_prompt and not self.soft:
            raise wrong_at("whole_prompt", "false, or soft=20: its score is the probability of yes")
        return self

    def counted(self) -> dict[str, Any]:
        """Return the settings on which plain answers depend; those of soft scores are in the fingerprint."""
        return {name: value for name, value in super().counted().items() if name not in ("soft", "whole_prompt")}


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
        self._most_likely, self._told_likely = settings.soft, False

    @property
    def asks_prompt(self) -> bool:
        """True if it asks whether a picture shows the whole prompt."""
        return self.settings.whole_prompt

    def fingerprint(self) -> dict[str, Json]:
        """Return everything the scenes depend on: with soft scores, their settings too."""
        own = self.settings
        soft: dict[str, Json] = {"soft": own.soft, "whole_prompt": own.whole_prompt} if own.soft else {}
        return {**super().fingerprint(), **soft}

    def about(self) -> dict[str, Json]:
        """Return the name, the card, and whether log-probabilities are requested."""
        return {**super().about(), **({"soft": True} if self.settings.soft else {})}

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
        if self.settings.soft and isinstance(system, AskingSystem) and not system.tells_likely:
            found = f"{self.settings.soft} with {self.settings.system}, which tells no log-probabilities"
            allowed = "0; openai_compatible, transformers and systems made of them tell log-probabilities"
            mistakes.append(Mistake(where=self.name, key="soft", found=found, allowed=allowed))
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

        With soft scores it has the probabilities of yes. If the first answers have none, no further ones are requested.

        Raises:
            MedtestError: The reader is not open, or a question was not answered because the server failed or a budget
                is reached.
        """
        question_sets = [questions_of(content.asked()) for content in contents]
        first: list[tuple[int, object, Ask]] = [
            (at, key, ask) for at, questions in enumerate(question_sets) for key, ask in presence(questions)
        ]
        if self.settings.whole_prompt and self._most_likely:
            first += [
                (at, WHOLE_PROMPT, whole_prompt(content.prompt))
                for at, content in enumerate(contents)
                if isinstance(content, PromptedContent) and content.prompt
            ]
        answers, beliefs = self._answers(images, contents, first)
        more: list[tuple[int, object, Ask]] = []
        for at, questions in enumerate(question_sets):
            present = frozenset(name for name in questions.classes if said_yes(answers[at, name]))
            more += [(at, key, ask) for key, ask in following(questions, present)]
            if self._most_likely:
                more += [(at, key, ask) for key, ask in weighed(questions, present)]
        further = self._answers(images, contents, more)
        answers, beliefs = answers | further[0], beliefs | further[1]
        scenes = [
            scene_of(questions, {key: answer for (picture, key), answer in answers.items() if picture == at})
            for at, questions in enumerate(question_sets)
        ]
        return [
            replace(scene, beliefs=tuple(belief for (picture, _), belief in beliefs.items() if picture == at))
            for at, scene in enumerate(scenes)
        ]

    def _answers(
        self, images: Sequence[Image], contents: Sequence[PictureContent], questions: Sequence[tuple[int, object, Ask]]
    ) -> tuple[dict[tuple[int, object], Answer], dict[tuple[int, object], Belief]]:
        """Return the answer to each question by picture and key, and the probability of yes where it is reported.

        Args:
            images: The pictures.
            contents: Their contents.
            questions: Index of the picture, key and words of each question.
        """
        if self._system is None:
            raise MedtestError(f"{self.name} is not open")
        calls = {}
        for picture, key, ask in questions:
            call = self._call(images[picture], contents[picture], ask)
            calls[call.number] = (call, picture, key, ask)
        answers: dict[tuple[int, object], Answer] = {}
        beliefs: dict[tuple[int, object], Belief] = {}
        likely: set[bool] = set()
        for answered in self._system.ask(iter([call for call, *_ in calls.values()])) if calls else ():
            call, picture, key, ask = calls[answered.number]
            (output,) = answered.outputs
            if not isinstance(output, AnswerOutput):
                raise MedtestError(f"{self.name} gave no answer to {ask.text!r}: {output}")
            at = picture, key
            answers[at] = read_answer(ask, output)
            if call.most_likely and output.state == ANSWERED:
                likely.add(bool(output.likely))
                if (chance := yes_or_no(output.likely)) is not None:
                    kind, names = asked_for(key)
                    beliefs[at] = Belief(
                        kind=kind, names=names, yes=round(chance[0], 6), neither=round(chance[1], 6)
                    )  # as in its record
        if len(answers) < len(questions):
            raise MedtestError(f"{self.name} answered {len(answers)} of {len(questions)} questions")
        self._told_likely |= True in likely
        if likely and not self._told_likely:
            self._most_likely = 0
        return answers, dict(sorted(beliefs.items(), key=lambda item: (item[0][0], item[1].kind, item[1].names)))

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
            most_likely=self._most_likely if ask.kind == Kind.YES_NO else 0,
        )
