"""A call in a thread of its own, which ends with it."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Generic, TypeVar

T = TypeVar("T")


class Aside(Generic[T]):
    """Begins at once."""

    def __init__(self, name: str, call: Callable[[], T]) -> None:
        self._call = call
        self._returned: list[T] = []
        self._raised: BaseException | None = None
        self._thread = threading.Thread(target=self._run, name=name, daemon=True)
        self._thread.start()

    def _run(self) -> None:
        try:
            self._returned.append(self._call())
        except BaseException as error:  # noqa: BLE001 - for whoever asks for the result
            self._raised = error

    def wait(self) -> None:
        """Wait for its end."""
        self._thread.join()

    def result(self) -> T:
        """Wait for its end; what it returned, or raised."""
        self.wait()
        if self._raised is not None:
            raise self._raised
        return self._returned[0]
