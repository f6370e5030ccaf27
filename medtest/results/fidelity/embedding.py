"""Embedding what is not kept yet, in a worker process: a fork of one that has loaded torch, where a run had such."""

from __future__ import annotations

import queue
from collections.abc import Callable
from typing import Any, Final

from medtest.core.errors import MedtestError
from medtest.readers.embeddings.work import Embedding, EmbeddingJob, lacking
from medtest.runner.pool.messages import Gone
from medtest.runner.pool.process_worker import ProcessWorker
from medtest.runner.pool.worker import Worker

_PATIENCE: Final = 5.0


def embed(job: EmbeddingJob, progress: Callable[[str], None] = lambda line: None) -> Embedding:
    """Embed what is not kept yet; no process is started where all is.

    Raises:
        MedtestError: A network cannot be loaded, or the process died.
        OutputProblem: The file of features cannot be used.
    """
    rest = lacking(job)
    if not rest.pictures and not rest.texts:
        return Embedding()
    inbox: queue.SimpleQueue[tuple[Worker, Any]] = queue.SimpleQueue()
    worker = ProcessWorker(rest, inbox)
    worker.give("embed")
    try:
        while True:
            _, message = inbox.get()
            if isinstance(message, str):
                progress(message)
            elif isinstance(message, Embedding):
                if message.problem:
                    raise MedtestError(message.problem)
                return message
            elif isinstance(message, Gone):
                said = worker.last_words().splitlines()[-1:]
                raise MedtestError(" ".join(["pictures cannot be embedded: the process", worker.death(), *said]))
    finally:
        worker.retire()
        worker.end(patience=_PATIENCE)
