"""Embedding of pictures in a worker process, forked from one that has loaded torch if the run had one."""

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
    """Embed the pictures and texts that are not cached; no process is started if all are.

    Raises:
        MedtestError: A network cannot be loaded, or the process died.
        OutputProblem: The file of features cannot be used.
    """
    pending = lacking(job)
    if not pending.pictures and not pending.texts:
        return Embedding()
    inbox: queue.SimpleQueue[tuple[Worker, Any]] = queue.SimpleQueue()
    worker = ProcessWorker(pending, inbox)
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
                last_line = worker.last_words().splitlines()[-1:]
                raise MedtestError(" ".join(["pictures cannot be embedded: the process", worker.death(), *last_line]))
    finally:
        worker.retire()
        worker.end(patience=_PATIENCE)
