"""Ctrl-C is a request first, and an order when repeated."""

import os
import signal
import threading
from collections.abc import Iterator
from typing import Any

import pytest

from deepbf.training.console import StopOnInterrupt


class InterruptedTestError(Exception):
    """What the handler of this module raises, so that a failure never ends the whole test run."""


def handler(*_: Any) -> None:
    raise InterruptedTestError


@pytest.fixture(autouse=True)
def own_handler() -> Iterator[None]:
    before = signal.signal(signal.SIGINT, handler)
    yield
    signal.signal(signal.SIGINT, before)


def test_the_first_interrupt_is_noted_and_the_handler_put_back() -> None:
    with StopOnInterrupt() as stop:
        assert not stop.requested
        os.kill(os.getpid(), signal.SIGINT)
        assert stop.requested
    assert signal.getsignal(signal.SIGINT) is handler


def test_the_second_interrupt_raises() -> None:
    with StopOnInterrupt():
        os.kill(os.getpid(), signal.SIGINT)
        with pytest.raises(KeyboardInterrupt):
            os.kill(os.getpid(), signal.SIGINT)
    assert signal.getsignal(signal.SIGINT) is handler


def test_an_error_inside_puts_the_handler_back() -> None:
    with pytest.raises(ZeroDivisionError), StopOnInterrupt():
        raise ZeroDivisionError
    assert signal.getsignal(signal.SIGINT) is handler


def test_outside_the_main_thread_it_leaves_signals_alone() -> None:
    seen = []

    def work() -> None:
        with StopOnInterrupt() as stop:
            seen.extend([signal.getsignal(signal.SIGINT), stop.requested])

    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    assert seen == [handler, False]
    assert signal.getsignal(signal.SIGINT) is handler
