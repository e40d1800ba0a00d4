"""Workers of a Dask cluster that do the steps of a fit."""

from __future__ import annotations

import contextlib
import logging
import queue
import secrets
import shutil
import threading
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

from distributed import Client, LocalCluster, as_completed, get_client

from spngp.outofcore.work import Summary

_SECONDS = 5.0  # until a scheduler must have answered


class Workers:
    """Steps shared by the workers of a cluster.

    No step waits for another one on the same level, so a worker that dies loses what it was doing and nothing else.

    Parameters
    ----------
    client : distributed.Client
    directory : Path
        That all workers see.
    """

    def __init__(self, client: Client, directory: Path) -> None:
        self._client, self._directory = client, directory
        directory.mkdir(parents=True, exist_ok=True)
        _check_shared(client, directory)

    def map(self, step: Callable[[Any], Summary], items: Sequence[Any], advance: Callable[[], None]) -> list[Summary]:
        """All steps; what they know is a task of its own, which is done again if it dies with a worker."""
        if not items:
            return []
        name, token = getattr(getattr(step, "args", [None, step])[1], "__name__", "step"), secrets.token_hex(6)
        known = self._client.submit(_known, step, key=f"spngp-known-{token}", pure=False)
        tasks = self._client.map(_do, [known] * len(items), items, key=f"spngp-{name}-{token}", pure=False)
        try:
            for task in as_completed(tasks):
                task.result()
                advance()
            return [task.result() for task in tasks]
        finally:
            self._client.cancel([known, *tasks])

    def close(self) -> None:
        """Remove the directory."""
        shutil.rmtree(self._directory, ignore_errors=True)

    def compute(self, tasks: Sequence[Any]) -> None:
        """Compute delayed tasks, whose results are nothing."""
        futures = self._client.compute(list(tasks))
        try:
            for future in as_completed(futures):
                future.result()
        finally:
            self._client.cancel(futures)


def _known(step: Callable[[Any], Summary]) -> Callable[[Any], Summary]:
    return step


def _do(step: Callable[[Any], Summary], item: Any) -> Summary:
    return step(item)


def _check_shared(client: Client, directory: Path) -> None:
    """Raise an error unless all workers see the directory."""
    token = directory / f".seen-{secrets.token_hex(6)}"
    token.touch()
    try:
        seen = client.run(_exists, str(token), on_error="return")
    finally:
        token.unlink(missing_ok=True)
    if not seen:
        raise ValueError("the Dask cluster has no workers; start some, or scale the cluster up")
    for worker, there in seen.items():
        if isinstance(there, OSError):  # it has died meanwhile: another one will do its steps
            continue
        if isinstance(there, Exception):
            raise there
        if not there:
            raise ValueError(
                f"worker {worker} does not see {directory}; give directory=, a directory that all workers share"
            )


def _exists(path: str) -> bool:
    return Path(path).exists()


def default_client() -> Client:
    """The client that was made last; an error if there is none."""
    try:
        return get_client(timeout=0)
    except ValueError:
        raise ValueError("there is no Dask client; make one: distributed.Client(), or pass client=") from None


def _client_of(scheduler: str) -> Client:
    """A client of the scheduler at an address; an error if none has answered after some seconds."""
    found: queue.SimpleQueue[Client | Exception] = queue.SimpleQueue()

    def connect() -> None:
        try:
            found.put(Client(scheduler, timeout=_SECONDS))
        except Exception as error:
            found.put(error)

    # in a thread of its own: distributed waits for ever for one that takes a connection and says nothing
    threading.Thread(target=connect, daemon=True).start()
    try:
        answer = found.get(timeout=_SECONDS)
    except queue.Empty:
        answer = TimeoutError("it takes connections and says nothing, or is too busy")
    if isinstance(answer, Client):
        return answer
    # what is no scheduler may say anything: a message of some exabytes, for which there is no memory
    if isinstance(answer, OSError | TimeoutError | ValueError | MemoryError):
        seen = " ".join(str(answer).split())[:100] or type(answer).__name__
        raise ValueError(f"no Dask scheduler answers at {scheduler} within {_SECONDS:g} s: {seen}") from None
    raise answer


@contextlib.contextmanager
def cluster(scheduler: str | None, n_workers: int, memory_limit: float) -> Iterator[Client]:
    """A client of the scheduler at an address, or of a cluster of processes that ends with the ``with`` statement.

    ``memory_limit`` are gigabytes for all workers of such a cluster together.
    """
    if scheduler is not None:
        with _client_of(scheduler) as client:
            yield client
        return
    each = int(1e9 * memory_limit / n_workers)
    with (
        LocalCluster(
            n_workers=n_workers,
            threads_per_worker=1,
            memory_limit=each,
            dashboard_address=":0",  # any free port: another cluster may have the usual one
            silence_logs=logging.CRITICAL,  # what a step raises is raised here again
        ) as local,
        Client(local) as client,
    ):
        yield client
