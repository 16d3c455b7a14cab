"""The real control plane as a tool: what it answers for, and that nothing of it is left behind."""

from __future__ import annotations

import asyncio
import os
import signal
import socket
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest

from testbed import build, clusters, flags, ports, process
from testbed.errors import Refused
from testbed.plane import ControlPlane
from testbed.programs import cache_root
from tests.planes import FAST
from tests.waiting import eventually

BARE = flags.Settings(scheduler=False, controller_manager=False)
"""etcd and kube-apiserver: enough where only processes and ports matter."""


async def kubectl(plane: ControlPlane, *arguments: str, kubeconfig: Path | None = None) -> tuple[int, str]:
    """Exit code and output of one call."""
    child = await asyncio.create_subprocess_exec(
        str(plane.kubectl),
        f"--kubeconfig={kubeconfig or plane.kubeconfig}",
        *arguments,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.STDOUT,
    )
    async with asyncio.timeout(30):
        out, _ = await child.communicate()
    return child.returncode or 0, out.decode()


async def test_kubectl_of_the_same_version_works_on_it(real_plane: ControlPlane) -> None:
    assert real_plane.kind == "real"
    assert real_plane.version == "v1.36.3"
    code, out = await kubectl(real_plane, "version")
    assert code == 0
    assert f"Server Version: {real_plane.version}" in out
    assert await kubectl(real_plane, "get", "nodes") == (0, "No resources found\n")


async def test_credentials_make_anybody_a_user_and_the_audit_log_counts_each_request_once(
    real_plane: ControlPlane, tmp_path: Path
) -> None:
    jane = tmp_path / "jane.kubeconfig"
    real_plane.write_kubeconfig(jane, "jane", groups=["dev"])
    code, out = await kubectl(real_plane, "auth", "whoami", "-o", "json", kubeconfig=jane)
    assert code == 0
    assert '"username": "jane"' in out
    assert '"dev"' in out
    code, out = await kubectl(real_plane, "get", "--raw", "/api/v1/pods?watch=1", kubeconfig=jane)
    assert code == 1
    assert "jane" in out

    def seen() -> list[tuple[str, str, int]]:
        return [(each.verb, each.resource, each.code) for each in real_plane.audit() if each.user == "jane"]

    assert await eventually(lambda: ("watch", "pods", 403) in seen() and seen(), within=5) == [
        ("create", "selfsubjectreviews", 201),
        ("watch", "pods", 403),
    ]


async def test_probing_for_readiness_is_in_no_audit(real_plane: ControlPlane) -> None:
    records = real_plane.audit()
    assert records
    assert [record for record in records if record.user == flags.PROBE] == []


async def test_watch_traffic_is_told_by_resource(real_plane: ControlPlane) -> None:
    before = (await real_plane.watch_bytes()).get("configmaps", 0)
    code, out = await kubectl(real_plane, "create", "configmap", "big", f"--from-literal=text={'x' * 50_000}")
    assert code == 0, out

    async def grown() -> bool:
        return (await real_plane.watch_bytes())["configmaps"] > before + 50_000

    await eventually(grown, within=10)  # the controller manager watches config maps


@pytest.mark.parametrize("component", flags.COMPONENTS)
async def test_a_component_can_be_killed_and_started_again(real_plane: ControlPlane, component: str) -> None:
    code, out = await kubectl(real_plane, "create", "namespace", f"before-{component}")
    assert code == 0, out
    await real_plane.stop(component, kill=True)
    assert not real_plane.running(component)
    await real_plane.start(component)
    assert real_plane.running(component)
    with pytest.raises(Refused, match=f"{component} of .* runs already"):
        await real_plane.start(component)

    async def kept() -> bool:
        return (await kubectl(real_plane, "get", "namespace", f"before-{component}"))[0] == 0

    await eventually(kept, within=10, every=0.2)


async def test_two_side_by_side_know_nothing_of_each_other(real_plane: ControlPlane, tmp_path: Path) -> None:
    async with ControlPlane(state_dir=tmp_path, settings=BARE) as other:
        assert other.url != real_plane.url
        assert (await kubectl(other, "create", "namespace", "only-here"))[0] == 0
        assert (await kubectl(real_plane, "get", "namespace", "only-here"))[0] == 1
        code, out = await kubectl(real_plane, "get", "nodes", f"--server={other.url}")
        assert code == 1
        assert "certificate" in out


async def test_a_port_lost_to_a_stranger_costs_another_try(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    stranger = socket.create_server(("127.0.0.1", 0))
    real_claim = ports.claim
    taken: list[int] = []

    def claim_a_taken_one_first() -> ports.Claim:
        claim = real_claim()
        if len(taken) < 3:  # etcd, its peers, kube-apiserver
            taken.append(claim.port)
            if len(taken) == 3:
                claim.port = stranger.getsockname()[1]
        return claim

    monkeypatch.setattr(ports, "claim", claim_a_taken_one_first)
    with stranger:
        async with ControlPlane(state_dir=tmp_path, settings=BARE) as plane:
            assert plane.url != f"https://127.0.0.1:{stranger.getsockname()[1]}"
            assert plane.running("kube-apiserver")


def processes_in(folder: Path) -> list[int]:
    """Processes whose command line names ``folder``, apart from this one."""
    found = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit() and int(entry.name) != os.getpid():
            try:
                words = (entry / "cmdline").read_bytes().split(b"\0")
            except OSError:
                continue
            if any(f"{folder}/".encode() in word for word in words[1:]):
                found.append(int(entry.name))
    return found


async def owner(folder: Path, body: Sequence[str]) -> asyncio.subprocess.Process:
    """A Python process that runs ``body`` and says ``up``."""
    code = "\n".join(["import asyncio, pathlib", "from testbed import flags, plane", *body])
    settings = {**os.environ, "PYTHONPATH": os.pathsep.join(path for path in sys.path if path)}
    child = await asyncio.create_subprocess_exec(
        sys.executable, "-c", code, str(folder), stdout=asyncio.subprocess.PIPE, env=settings
    )
    assert child.stdout is not None
    async with asyncio.timeout(60):
        assert await child.stdout.readline() == b"up\n"
    return child


async def test_when_its_owner_is_killed_nothing_runs_on_and_the_next_start_is_clean(tmp_path: Path) -> None:
    folder = tmp_path / "plane"
    child = await owner(
        folder,
        [
            "import sys",
            "async def main():",
            "    bare = flags.Settings(scheduler=False, controller_manager=False)",
            "    async with plane.ControlPlane(state_dir=pathlib.Path(sys.argv[1]), settings=bare):",
            "        print('up', flush=True)",
            "        await asyncio.Event().wait()",
            "asyncio.run(main())",
        ],
    )
    assert len([pid for pid in processes_in(folder) if pid != child.pid]) == 2
    child.send_signal(signal.SIGKILL)
    await child.wait()
    await eventually(lambda: processes_in(folder) == [], within=5)
    async with ControlPlane(state_dir=folder, settings=BARE) as plane:
        assert plane.running("etcd")
    assert processes_in(folder) == []


async def test_a_named_cluster_outlives_its_command_and_is_cleared_after_a_killed_one(tmp_path: Path) -> None:
    programs = await build.built(cache_root())
    record = await clusters.up(tmp_path, "one", programs=programs, settings=FAST, users=[clusters.User(name="jane")])
    assert [(each.name, each.state) for each in clusters.status(tmp_path)] == [("one", "up")]
    assert Path(record.kubeconfig).is_file()
    assert (tmp_path / "one" / "jane.kubeconfig").is_file()
    with pytest.raises(Refused, match=f"cluster one is up at {record.url}"):
        await clusters.up(tmp_path, "one", programs=programs, settings=FAST)
    # As a command leaves it that was killed before the cluster was ready.
    (tmp_path / "one" / "cluster.json").unlink()
    scheduler = process.find("kube-scheduler", state=tmp_path / "one")
    assert scheduler is not None
    await scheduler.stop(grace=0)
    assert [each.state for each in clusters.status(tmp_path)] == ["stale"]
    await clusters.up(tmp_path, "one", programs=programs, settings=BARE)
    assert len(processes_in(tmp_path / "one")) == 2
    assert await clusters.down(tmp_path, "one") is True
    assert processes_in(tmp_path / "one") == []
    assert not (tmp_path / "one").exists()
    assert clusters.status(tmp_path) == []


async def test_a_cluster_whose_start_fails_at_the_end_does_not_run(tmp_path: Path) -> None:
    programs = await build.built(cache_root())
    nobody = clusters.User(name="x" * 300)  # more than a file name may have
    with pytest.raises(OSError, match="File name too long"):
        await clusters.up(tmp_path, "a", programs=programs, settings=BARE, users=[nobody])
    (standing,) = clusters.status(tmp_path)
    assert standing.state == "stale"
    assert not any(component.pid for component in standing.components)
    assert not list((tmp_path / "a").glob("*.pid"))
