"""The scripts that are rendered, run on this machine with stand-ins for the programs of a node.

Nothing is changed outside the folder of the test: paths of the host are replaced, and the programs are recorders.
"""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import pytest

from interlace.fabric.environment import default_interfaces
from interlace.fabric.family import IDS, Family, find
from interlace.manifests.canary import canary
from interlace.manifests.installer import install_script, installer, prepare_script
from interlace.manifests.workload import script

WITH_INSTALLER = [id_ for id_ in IDS if find(id_).installer]
WITH_TEST = [id_ for id_ in IDS if find(id_).test]


class Host:
    """A folder as the root of a node, with programs that write down how they were called."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.bin = root / "programs"
        self.bin.mkdir()
        self.log = root / "calls"
        self.log.touch()

    def program(self, name: str, body: str = "") -> None:
        path = self.bin / name
        path.write_text(f'#!/bin/bash\necho "{name} $*" >> {self.log}\n{body}\n')
        path.chmod(0o755)

    def run(
        self, text: str, *, shell: str = "sh", env: dict[str, str] | None = None
    ) -> subprocess.CompletedProcess[str]:
        moved = re.sub(r"(?<![\w/.])/(sys|dev|usr/local|var/lib|scripts|third_party|tmp)/", rf"{self.root}/\1/", text)
        moved = moved.replace(f"{self.root}/dev/null", "/dev/null")
        whole = {"PATH": f"{self.bin}:/usr/bin:/bin", **(env or {})}
        return subprocess.run([shell, "-c", moved], env=whole, capture_output=True, text=True, timeout=60, check=False)

    @property
    def calls(self) -> list[str]:
        return self.log.read_text().splitlines()


@pytest.fixture
def host(tmp_path: Path) -> Host:
    return Host(tmp_path)


def mega(host: Host, *, functions: int = 8) -> None:
    """The programs and PCI functions of an A3 Mega node."""
    rules = host.root / "rules"
    mounts = host.root / "mounts"
    mounts.touch()
    host.program("iptables", f'case "$3" in -C) [ -e {rules} ];; -I) touch {rules};; esac')
    host.program("modprobe")
    host.program("mountpoint", f'grep -qx "$2" {mounts}')
    host.program("mount", f'echo "$3" >> {mounts}; cp -r "$2/." "$3/"')
    for index in range(functions + 1):
        device = host.root / f"sys/bus/pci/devices/0000:0{index}:00.0"
        device.mkdir(parents=True)
        (device / "vendor").write_text("0x1ae0\n")
        (device / "device").write_text("0x0084\n" if index < functions else "0x0042\n")
        (device / "resource0").write_text("")
        (device / "resource0").chmod(0o600)


def test_the_node_is_prepared_once_however_often_it_is_asked(host: Host) -> None:
    mega(host)
    text = prepare_script(find("a3-mega"))
    first = host.run(text)
    assert (first.returncode, first.stderr) == (0, "")
    assert "8 apertures are bound under" in first.stdout
    second = host.run(text)
    assert (second.returncode, second.stdout) == (0, first.stdout)
    inserted = [call for call in host.calls if call.startswith("iptables") and " -I " in call]
    assert len(inserted) == 1
    assert len([call for call in host.calls if call.startswith("mount --bind")]) == 8
    resource = host.root / "dev/aperture_devices/0000:00:00.0/resource0"
    assert resource.stat().st_mode & 0o777 == 0o666


def test_a_node_without_apertures_is_named_as_the_wrong_machine(host: Host) -> None:
    mega(host, functions=0)
    ended = host.run(prepare_script(find("a3-mega")))
    assert ended.returncode == 1
    assert "no PCI function 1ae0:0084 on this node: is it of machine type a3-megagpu-8g?" in ended.stderr


def test_a_module_that_does_not_load_stops_the_installer(host: Host) -> None:
    mega(host)
    host.program("modprobe", "exit 1")
    assert host.run(prepare_script(find("a3-mega"))).returncode == 1


def entry(host: Host, family: Family, *, library: bool = True) -> None:
    """The entry script of a plugin image: it fills the folder that is copied."""
    plan = family.installer
    assert plan is not None
    lines = [f'echo "entry $*" >> {host.log}']
    for source in plan.copies:
        folder = host.root / source.lstrip("/")
        lines.append(f"mkdir -p {folder}")
        if source.endswith("lib64") and library:
            lines.append(f"echo new > {folder}/libnccl-net.so")
    scripts = host.root / "scripts"
    scripts.mkdir(exist_ok=True)
    path = scripts / "container_entry.sh"
    path.write_text("#!/bin/sh\n" + "\n".join(lines) + "\n")


@pytest.mark.parametrize("id_", WITH_INSTALLER)
def test_the_plugin_is_installed_and_may_be_installed_again(host: Host, id_: str) -> None:
    family = find(id_)
    entry(host, family)
    plan = family.installer
    assert plan is not None
    text = install_script(plan)
    for _ in range(2):
        ended = host.run(text)
        assert ended.returncode == 0, ended.stderr
    assert host.calls == [f"entry {' '.join(plan.args)}"] * 2
    for target in plan.copies.values():
        if target.endswith("lib64"):
            assert (host.root / target.lstrip("/") / "libnccl-net.so").read_text() == "new\n"


def test_a_library_in_use_is_unlinked_and_not_overwritten(host: Host) -> None:
    family = find("a3-mega")
    entry(host, family)
    used = host.root / "usr/local/nvidia/lib64/libnccl-net.so"
    used.parent.mkdir(parents=True)
    used.write_text("old\n")
    with used.open() as held:
        assert family.installer is not None
        assert host.run(install_script(family.installer)).returncode == 0
        assert held.read() == "old\n"
    assert used.read_text() == "new\n"


@pytest.mark.parametrize("id_", WITH_INSTALLER)
def test_an_installer_that_leaves_no_plugin_fails(host: Host, id_: str) -> None:
    family = find(id_)
    entry(host, family, library=False)
    assert family.installer is not None
    ended = host.run(install_script(family.installer))
    assert ended.returncode == 1
    assert "the installer left no libnccl-net.so in" in ended.stderr


@pytest.mark.parametrize("id_", WITH_INSTALLER)
def test_the_installer_runs_on_the_machines_of_the_family_and_takes_the_place_of_googles(id_: str) -> None:
    family = find(id_)
    found = installer(family, software=family.software_for(None))
    assert found is not None
    assert found["metadata"]["namespace"] == "kube-system"
    name = found["metadata"]["name"]
    assert found["spec"]["selector"] == {"matchLabels": {"k8s-app": name}}
    labels = found["spec"]["template"]["metadata"]["labels"]
    assert labels == {"name": name, "k8s-app": name}
    spec = found["spec"]["template"]["spec"]
    (term,) = spec["affinity"]["nodeAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"]["nodeSelectorTerms"]
    assert term["matchExpressions"] == [
        {"key": "node.kubernetes.io/instance-type", "operator": "In", "values": list(family.machines)}
    ]
    steps = [step["name"] for step in spec["initContainers"]]
    assert steps == (["pre-installation", name] if id_ == "a3-mega" else [name])


def test_nothing_is_installed_where_the_site_does_it() -> None:
    family = find("gb200-nvl72")
    assert installer(family, software=family.software_for(None)) is None
    assert prepare_script(family) == ""
    assert prepare_script(find("a4")) == ""


@pytest.mark.parametrize("id_", WITH_TEST)
@pytest.mark.parametrize("index", ["0", "1"])
def test_the_scripts_of_the_test_are_bash(id_: str, index: str) -> None:
    ended = subprocess.run(["bash", "-n", "-c", script(find(id_))], capture_output=True, text=True, check=False)
    assert (ended.returncode, ended.stderr) == (0, "")


def cluster(host: Host) -> dict[str, str]:
    (host.root / "tmp").mkdir()
    for name in ("service", "ssh", "mpirun", "taskset"):
        host.program(name)
    return {
        "NODES": "2",
        "JOB_COMPLETION_INDEX": "0",
        "COLLECTIVE": "all_gather",
        "DATA_MIN": "1M",
        "DATA_MAX": "8G",
        "NCCL_NET": "gIB",
        "LD_LIBRARY_PATH": "/lib64",
        "SECRET": "x",
    }


@pytest.mark.parametrize("id_", WITH_TEST)
def test_the_first_pod_measures_over_all_and_says_when_it_is_done(host: Host, id_: str) -> None:
    family = find(id_)
    env = cluster(host)
    ended = host.run(script(family), shell="bash", env=env)
    assert (ended.returncode, ended.stderr) == (0, "")
    gpus = family.node.gpus
    assert (host.root / "tmp/hosts").read_text() == "".join(
        f"nccl-test-{index}.nccl-test slots={gpus}\n" for index in range(2)
    )
    (run,) = [call for call in host.calls if call.startswith("mpirun ")]
    assert f"-np {2 * gpus} " in run
    assert "-x NCCL_NET" in run
    assert "-x LD_LIBRARY_PATH" in run
    assert "SECRET" not in run
    assert "--mca btl_tcp_if_include eth0 --mca oob_tcp_if_include eth0" in run
    assert run.endswith("all_gather_perf -b 1M -e 8G -f 2 -g 1 -w 5 -n 20 -c 1")
    assert ("taskset -c 32-63 " in run) == (id_ == "a3-mega")
    assert host.calls[-1].startswith("ssh ")
    assert host.calls[-1].endswith(f"nccl-test-1.nccl-test touch {host.root}/tmp/interlace-done")


def test_a_failed_measurement_ends_the_job_and_still_tells_the_others(host: Host) -> None:
    env = cluster(host)
    host.program("mpirun", "exit 3")
    ended = host.run(script(find("a3-mega")), shell="bash", env=env)
    assert ended.returncode == 3
    assert "interlace-done" in host.calls[-1]


def test_the_other_pods_end_when_they_are_told(host: Host) -> None:
    env = {**cluster(host), "JOB_COMPLETION_INDEX": "1"}
    (host.root / "tmp/interlace-done").touch()
    ended = host.run(script(find("a3-mega")), shell="bash", env=env)
    assert (ended.returncode, ended.stderr) == (0, "")
    assert not [call for call in host.calls if call.startswith("mpirun")]


def test_a_pod_whose_peer_never_answers_gives_up(host: Host) -> None:
    env = cluster(host)
    host.program("ssh", "exit 255")
    text = script(find("a3-mega")).replace("SECONDS + 900", "SECONDS + 0")
    ended = host.run(text, shell="bash", env=env)
    assert ended.returncode == 1
    assert "nccl-test-0.nccl-test does not answer on port 222" in ended.stderr
    text = text.replace("JOB_COMPLETION_INDEX", "INDEX")
    ended = host.run(text, shell="bash", env={**env, "INDEX": "1"})
    assert ended.returncode == 1
    assert "the first Pod did not say that it is done" in ended.stderr


def test_an_ssh_server_that_does_not_start_is_named(host: Host) -> None:
    env = cluster(host)
    host.program("service", "exit 1")
    ended = host.run(script(find("a4")), shell="bash", env=env)
    assert ended.returncode == 1
    assert "the SSH server did not start" in ended.stderr


def looks(id_: str) -> str:
    family = find(id_)
    names = tuple(network.name for network in family.gpu_networks)
    pod = canary(
        family,
        software=family.software_for(None),
        interfaces=default_interfaces(family),
        networks=names,
        namespace="default",
    )[-1]
    text: str = pod["spec"]["containers"][0]["command"][-1]
    return text


def furnish(host: Host, id_: str) -> None:
    """All that the canary of a family looks at."""
    family = find(id_)
    root = host.root
    for network in family.gpu_networks:
        (root / "sys/class/net" / network.interface).mkdir(parents=True)
    devices = list(family.pod.sidecar.devices) if family.pod.sidecar else []
    if family.node.mnnvl:
        devices.append("/dev/nvidia-caps-imex-channels/channel0")
    for device in devices:
        path = root / device.lstrip("/")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.symlink_to("/dev/null")
    for index in range(family.node.nics):
        (root / "dev/infiniband").mkdir(parents=True, exist_ok=True)
        (root / f"dev/infiniband/uverbs{index}").touch()
    (root / "dev/aperture_devices/0000:00:00.0").mkdir(parents=True)
    folder = root / (family.pod.lib or "lib").lstrip("/")
    folder.mkdir(parents=True)
    (folder / "libnccl-net.so").touch()


@pytest.mark.parametrize("id_", IDS)
def test_a_canary_passes_where_everything_is_there(host: Host, id_: str) -> None:
    furnish(host, id_)
    ended = host.run(looks(id_))
    assert ended.returncode == 0, ended.stdout
    lines = ended.stdout.splitlines()
    assert lines
    assert all(line.startswith("ok: ") for line in lines)


@pytest.mark.parametrize("id_", IDS)
def test_a_canary_on_a_bare_node_names_each_thing_that_is_missing(host: Host, id_: str) -> None:
    ended = host.run(looks(id_))
    assert ended.returncode == 1
    assert all(line.startswith("missing: ") for line in ended.stdout.splitlines())


@pytest.mark.parametrize(
    ("id_", "gone", "says"),
    [
        ("a3-mega", "dev/dmabuf_import_helper", "missing: device /dev/dmabuf_import_helper"),
        ("a3-high", "dev/nvidia7", "missing: device /dev/nvidia7"),
        ("a4", "dev/infiniband/uverbs3", "missing: 8 RDMA devices"),
        ("a3-ultra", "usr/local/gib/lib64/libnccl-net.so", "missing: plugin /usr/local/gib/lib64/libnccl-net.so"),
        ("a4x", "dev/nvidia-caps-imex-channels/channel0", "missing: IMEX channel"),
    ],
)
def test_one_thing_that_is_missing_fails_the_canary(host: Host, id_: str, gone: str, says: str) -> None:
    furnish(host, id_)
    (host.root / gone).unlink()
    ended = host.run(looks(id_))
    assert ended.returncode == 1
    assert [line for line in ended.stdout.splitlines() if line.startswith("missing")] == [
        re.sub(r" /(dev|usr)/", rf" {host.root}/\1/", says)
    ]
