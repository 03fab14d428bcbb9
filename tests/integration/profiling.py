"""Calls of functions, as they are made within a block and by it alone."""

from __future__ import annotations

import gc
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType


@contextmanager
def calling(called: Callable[[FrameType], object]) -> Iterator[None]:
    """Have `called` told of each call of a Python function in this thread.

    The garbage collector rests meanwhile: what other tests left has finalizers, 500 calls at times.
    """

    def seen(frame: FrameType, event: str, _arg: object) -> None:
        if event == "call":
            called(frame)

    gc.collect()
    gc.disable()
    sys.setprofile(seen)
    try:
        yield
    finally:
        sys.setprofile(None)
        gc.enable()
