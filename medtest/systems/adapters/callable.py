"""User-defined Python function as a system under test."""

from __future__ import annotations

import importlib
import importlib.util
import inspect
import re
import symtable
import sys
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from types import ModuleType
from typing import Any, ClassVar, Literal

import numpy as np
from pydantic import Field

from medtest.core.cases import Address, Image, ImageSpec, Json
from medtest.core.errors import BadOutput, MedtestError, Mistake, nearest_name
from medtest.core.plugins import TRUSTED
from medtest.systems.adapters.tensors import FORMS, ClassListSettings, classes_of
from medtest.systems.base import LABEL_ONLY, RawAnswer, System
from medtest.systems.files import cached_sha256, file_mistakes, user_path

FORM = "package.module:function or path/to/file.py:function"
_BINDS_UNSEEN = re.compile(r"import\s*\(?\s*\*|\b(?:global|globals|vars|setattr|exec|__getattr__|__dict__|modules)\b")
"""Code that may bind names other than by assignment, def, class or import."""
_MODULE = re.compile(r"[A-Za-z_]\w*(\.[A-Za-z_]\w*)*")


class CallableSettings(ClassListSettings):
    """Settings of a user's function.

    Attributes:
        target: ``package.module:function`` or ``path/to/file.py:function``.
        batch: Whether the function takes B×H×W×3 and returns B answers, instead of one image and one answer.
        gives: Labels only: ``probability`` (a number per class), ``logits``, or ``classes`` (the index or name of a
            class, a list of them if several may be true).
    """

    target: str = Field(default="", json_schema_extra=TRUSTED)
    batch: bool = False
    gives: Literal["probability", "logits", "classes"] = Field(default="probability", json_schema_extra=LABEL_ONLY)


class CallableSystem(System):
    """Function, or a class without required arguments whose instances are called.

    It is called with one uint8 RGB image, H×W×3 (a copy), or with a batch of them, and returns an answer as described
    in :mod:`medtest.core.tasks.border`, or for labels in :mod:`medtest.systems.classification.answers` (see ``gives``
    and ``classes``). A class is instantiated once per worker, which is the place to load weights; if its ``__init__``
    accepts ``device``, it receives ``"cpu"`` or ``"cuda:N"``. An exception becomes the ERROR of that case; a call that
    never returns is stopped by the runner's time limit. In a series it receives the image unchanged (grey, 16 bit,
    floats, volumes) and returns an image or a region; if it accepts ``spec``, it receives the image's
    :class:`medtest.core.cases.ImageSpec` (range, spacing, axes). The SHA-256 of its file enters the run's digest;
    imported files do not.
    """

    Settings = CallableSettings
    settings: CallableSettings
    tasks: ClassVar[tuple[str, ...]] = ("mask", "image", "label", "region")
    needs_device = True
    _function: Callable[..., Any] | None = None

    def __init__(self, name: str, settings: CallableSettings) -> None:
        super().__init__(name, settings)
        self.classes = classes_of(settings)
        self.answer_form = FORMS[settings.gives]

    def check(self) -> Sequence[Mistake]:
        """Return the problems of the target, without importing it."""
        target = self.settings.target
        location, colon, function = target.rpartition(":")
        if not colon or not function.isidentifier() or not location:
            shown = repr(target) if target else "nothing"
            return [Mistake(where=self.name, key="target", found=shown, allowed=FORM)]
        if _is_file(location):
            mistakes = file_mistakes(location, where=self.name, key="target", suffixes=(".py",))
            if mistakes:
                return mistakes
            file = user_path(location)
        else:
            try:
                file = _module_file(location)
            except MedtestError as error:
                return [Mistake(where=self.name, key="target", found=str(error), allowed=FORM)]
        names = _names_in(file)
        if names is None or function in names:
            return ()
        return [self._no_function(file.name, function, [name for name, imported in names.items() if not imported])]

    def _no_function(self, place: str, function: str, names: Iterable[str]) -> Mistake:
        shown = sorted(name for name in names if not name.startswith("_"))
        return Mistake(
            where=self.name,
            key="target",
            found=f"{place} has no {function!r}",
            allowed=", ".join(shown[:20]) or "the name of a function in it",
            nearest=nearest_name(function, shown),
        )

    def fingerprint(self) -> dict[str, Json]:
        """Return the target's name and the SHA-256 of its file."""
        location, _, function = self.settings.target.rpartition(":")
        path = user_path(location) if _is_file(location) else _module_file(location)
        return {"function": function, "file_sha256": cached_sha256(path)}

    def open(self, *, device: str, threads: int) -> None:
        """Import the target; see :class:`medtest.systems.base.System`.

        Raises:
            UserMistakes: It has no such function.
            MedtestError: It cannot be imported, or is not callable.
        """
        location, _, name = self.settings.target.rpartition(":")
        module = _load_file(user_path(location)) if _is_file(location) else _import(location)
        function = getattr(module, name, None)
        if function is None:
            names = [key for key, value in vars(module).items() if callable(value)]
            raise self._no_function(Path(location).name, name, names).as_error()
        if inspect.isclass(function):
            try:
                options = {"device": device} if "device" in inspect.signature(function).parameters else {}
                function = function(**options)
            except (Exception, SystemExit) as error:
                raise MedtestError(f"{name} could not be made: {type(error).__name__}: {error}") from error
        if not callable(function):
            raise MedtestError(f"{self.settings.target}: {type(function).__name__} is not callable")
        self._function = function

    def predict(self, images: Sequence[Image], addresses: Sequence[Address]) -> Sequence[RawAnswer]:
        """Return the function's answer to each image, unchecked."""
        if self._function is None:
            raise MedtestError(f"{self.name} is not open")
        if not self.settings.batch:
            return [self._function(image.copy()) for image in images]
        if len({image.shape for image in images}) > 1:
            return [self._as_answers(self._function(image[None].copy()), 1)[0] for image in images]
        return self._as_answers(self._function(np.stack(images)), len(images))

    def process(
        self, images: Sequence[Image], specs: Sequence[ImageSpec], addresses: Sequence[Address]
    ) -> Sequence[RawAnswer]:
        """Return the function's answer to each image of a series, unchecked."""
        if self._function is None or self.settings.batch or not _takes_spec(self._function):
            return self.predict(images, addresses)
        return [self._function(image.copy(), spec=spec) for image, spec in zip(images, specs, strict=True)]

    @staticmethod
    def _as_answers(output: Any, count: int) -> Sequence[RawAnswer]:
        """Return the answers of a batch as a list of the expected length."""
        try:
            answers = list(output)
        except TypeError:
            raise BadOutput(f"gave {type(output).__name__} where {count} answers are expected") from None
        if len(answers) != count:
            raise BadOutput(f"gave {len(answers)} answers for {count} images")
        return answers

    def close(self) -> None:
        """Release the function."""
        self._function = None


def _takes_spec(function: Callable[..., Any]) -> bool:
    try:
        return "spec" in inspect.signature(function).parameters
    except (TypeError, ValueError):  # builtins and C extensions may have no signature
        return False


def _is_file(location: str) -> bool:
    return location.lower().endswith(".py") or "/" in location or "\\" in location


def _names_in(file: Path) -> dict[str, bool] | None:
    """Return the names that a Python file binds and whether it imports them, without running it; None if unclear."""
    try:
        text = file.read_text(encoding="utf-8")
        whole = symtable.symtable(text, file.name, "exec")
    except (OSError, SyntaxError, ValueError):
        return None
    if file.suffix != ".py" or _BINDS_UNSEEN.search(text):
        return None
    symbols = whole.get_symbols()
    bound = [symbol for symbol in symbols if symbol.is_assigned() or symbol.is_imported() or symbol.is_namespace()]
    return {symbol.get_name(): symbol.is_imported() for symbol in bound}


def _module_file(module: str) -> Path:
    """Return a module's file without importing the module itself."""
    if not _MODULE.fullmatch(module):
        raise MedtestError(f"{module!r} is not a module's name")
    _add_working_directory()
    try:
        spec = importlib.util.find_spec(module)
    except (Exception, SystemExit) as error:
        # finding a.b imports a, whose code may raise anything
        raise MedtestError(f"module {module!r} cannot be found: {type(error).__name__}: {error}") from error
    if spec is None or spec.origin is None or not Path(spec.origin).is_file():
        raise MedtestError(f"module {module!r} cannot be found")
    return Path(spec.origin)


def _add_working_directory() -> None:
    """Make modules of the working directory importable, as ``python -m`` does."""
    folder = str(Path.cwd())
    if folder not in sys.path and "" not in sys.path:
        sys.path.append(folder)


def _import(module: str) -> ModuleType:
    _add_working_directory()
    try:
        return importlib.import_module(module)
    except (Exception, SystemExit) as error:
        raise MedtestError(f"module {module!r} cannot be imported: {type(error).__name__}: {error}") from error


def _load_file(path: Path) -> ModuleType:
    """Import a file under a unique name; its folder is added to the search path, as for a script."""
    folder = str(path.resolve().parent)
    if folder not in sys.path:
        sys.path.append(folder)
    name = f"_medtest_user_{cached_sha256(path)[:16]}"
    if name in sys.modules:
        return sys.modules[name]
    spec = importlib.util.spec_from_file_location(name, path)
    if spec is None or spec.loader is None:
        raise MedtestError(f"{path.name} cannot be imported as Python")
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    try:
        spec.loader.exec_module(module)
    except BaseException as error:
        del sys.modules[name]
        if not isinstance(error, Exception | SystemExit):
            raise
        raise MedtestError(f"{path.name} cannot be imported: {type(error).__name__}: {error}") from error
    return module
