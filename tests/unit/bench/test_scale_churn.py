"""Churn: the same steps for the same seed, and every kind of them."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

from bench.scale.churn import RACE_STEPS, STEPS, Churn


class _Jobs:
    """Notes what is asked for; every domain that was started is there."""

    def __init__(self) -> None:
        self.asked: list[str] = []
        self.there: set[str] = set()

    def domain(self, name: str) -> Any:
        return SimpleNamespace() if name in self.there else None

    def pods(self, name: str) -> list[Any]:
        return [SimpleNamespace(metadata=SimpleNamespace(name=f"{name}-{number}")) for number in (2, 1, 3)]

    async def start(self, name: str, *, count: int, gpus: int) -> None:
        self.there.add(name)
        self.asked.append(f"start {name} {count} {gpus}")

    async def scale(self, name: str, *, count: int, gpus: int) -> None:
        self.asked.append(f"scale {name} {count} {gpus}")

    async def remove(self, name: str) -> None:
        self.there.discard(name)
        self.asked.append(f"remove {name}")

    async def remove_domain(self, name: str) -> None:
        self.there.discard(name)
        self.asked.append(f"remove domain {name}")

    async def remove_pod(self, pod: Any, *, force: bool) -> None:
        self.asked.append(f"{'force' if force else 'delete'} {pod.metadata.name}")


async def _shake(seed: int, *, steps: int = 60) -> tuple[Churn, list[str]]:
    jobs = _Jobs()
    churn = Churn(jobs, names=["a", "b"], most=9, seed=seed, gpus=0)  # type: ignore[arg-type]
    for _ in range(steps):
        await churn.step()
    return churn, jobs.asked


async def test_the_same_seed_gives_the_same_steps() -> None:
    assert (await _shake(1))[1] == (await _shake(1))[1]
    assert (await _shake(1))[1] != (await _shake(2))[1]


async def test_every_kind_of_step_comes() -> None:
    churn, asked = await _shake(3, steps=200)
    assert set(churn.done) == set(STEPS)
    assert {line.split()[0] for line in asked} == {"start", "scale", "remove", "delete", "force"}


async def test_a_job_that_is_not_there_is_created_first() -> None:
    _, asked = await _shake(4, steps=1)
    assert asked[-1].startswith("start ")


async def test_a_race_leaves_its_domains_there() -> None:
    jobs = _Jobs()
    jobs.there = {"a", "b"}
    race = Churn(jobs, names=["a", "b"], most=9, seed=5, gpus=0, steps=RACE_STEPS)  # type: ignore[arg-type]
    for _ in range(100):
        await race.step()
    assert set(race.done) == set(RACE_STEPS)
    assert not any(line.startswith(("remove", "start")) for line in jobs.asked)
