from __future__ import annotations

import asyncio
import os
import signal

import pytest

from interlace.cli.exits import Code, Exit
from interlace.cli.running import run
from interlace.kube.errors import ConfigError, Unreachable


def ending(error: BaseException) -> Exit:
    async def main() -> Code:
        raise error

    with pytest.raises(Exit) as ended:
        run(main())
    return ended.value


def test_a_good_answer_ends_without_an_exit() -> None:
    async def main() -> Code:
        return Code.GOOD

    run(main())


def test_a_bad_answer_is_an_exit_without_words() -> None:
    async def main() -> Code:
        return Code.BAD

    with pytest.raises(Exit) as ended:
        run(main())
    assert (ended.value.code, ended.value.message) == (Code.BAD, "")


@pytest.mark.parametrize(
    ("error", "code", "message"),
    [
        (ConfigError("kubeconfig x: no"), Code.REFUSED, "kubeconfig x: no"),
        (ValueError("seven is no number"), Code.REFUSED, "seven is no number"),
        (Unreachable("no answer", url="https://x"), Code.FAILED, "no answer"),
        (PermissionError(13, "Permission denied", "/x"), Code.FAILED, "/x: Permission denied"),
        (TimeoutError(), Code.FAILED, "it took too long"),
        (Exit(Code.UNKNOWN, "cannot tell"), Code.UNKNOWN, "cannot tell"),
        (ExceptionGroup("a", [ExceptionGroup("b", [ConfigError("deep")])]), Code.REFUSED, "deep"),
    ],
)
def test_each_error_has_its_code_and_its_sentence(error: Exception, code: Code, message: str) -> None:
    ended = ending(error)
    assert (ended.code, ended.message) == (code, message)


def test_a_cause_goes_before_the_exit_that_followed_from_it() -> None:
    ended = ending(ExceptionGroup("both", [Exit(Code.GOOD), Unreachable("gone", url="https://x")]))
    assert (ended.code, ended.message) == (Code.FAILED, "gone")


def test_a_fault_of_our_own_keeps_its_traceback() -> None:
    async def main() -> Code:
        raise KeyError("ours")

    with pytest.raises(KeyError, match="ours"):
        run(main())


def test_a_reader_that_went_away_is_left_to_click() -> None:
    async def main() -> Code:
        raise BrokenPipeError(32, "Broken pipe")

    with pytest.raises(BrokenPipeError):
        run(main())


SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


@pytest.mark.parametrize("number", SIGNALS)
def test_a_signal_lets_the_verb_clean_up_and_ends_with_130(number: signal.Signals) -> None:
    told: list[str] = []
    before = [signal.getsignal(each) for each in SIGNALS]

    async def main() -> Code:
        os.kill(os.getpid(), number)
        try:
            await asyncio.Event().wait()
        finally:
            os.kill(os.getpid(), number)  # an impatient user
            await asyncio.sleep(0)
            told.append("clean")
        return Code.GOOD

    try:
        with pytest.raises(Exit) as ended:
            run(main(), on_signal=lambda: told.append("noticed"))
    finally:
        for each, handler in zip(SIGNALS, before, strict=True):
            signal.signal(each, handler)
    assert ended.value.code is Code.INTERRUPTED
    assert told == ["noticed", "clean"]


def test_a_signal_that_is_ignored_stays_so() -> None:
    before = signal.signal(signal.SIGHUP, signal.SIG_IGN)

    async def main() -> Code:
        os.kill(os.getpid(), signal.SIGHUP)
        await asyncio.sleep(0)
        return Code.BAD

    try:
        with pytest.raises(Exit) as ended:
            run(main())
    finally:
        signal.signal(signal.SIGHUP, before)
    assert ended.value.code is Code.BAD
