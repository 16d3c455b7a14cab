"""Which programs the testbed needs, where their source is pinned, and where the built ones lie.

Invariant: a folder of the cache is named by everything that decides its content (go.mod, go.sum, Go
version, build flags), so a program found there is the right one and is never built twice. A program
of one more kind is one more row in ``MODULES``.
"""

from __future__ import annotations

import hashlib
import os
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from testbed.errors import BedError

MODS = Path(__file__).parent / "mods"


@dataclass(frozen=True, slots=True, kw_only=True)
class Module:
    """Programs that come from one pinned Go module."""

    name: str
    """Folder below ``mods``."""
    path: str
    """Import path of the module that is pinned there."""
    programs: Mapping[str, str]
    """Name of a program -> path of its main package below the module."""
    tags: tuple[str, ...] = ()
    cgo: bool = False
    own: tuple[str, ...] = ()
    """Source files of our own, where the module is not somebody else's that go.mod pins."""
    stamp: tuple[str, ...] = ()
    """Linker variables that carry the version; ``{version}`` and ``{minor}`` are filled in."""


MODULES = (
    Module(
        name="etcd",
        path="go.etcd.io/etcd/server/v3",
        programs={"etcd": ""},
    ),
    Module(
        name="kubernetes",
        path="k8s.io/kubernetes",
        programs={
            "kube-apiserver": "cmd/kube-apiserver",
            "kube-scheduler": "cmd/kube-scheduler",
            "kube-controller-manager": "cmd/kube-controller-manager",
            "kubectl": "cmd/kubectl",
            "kubelet": "cmd/kubelet",
        },
        # Without these the servers report a version that kubectl cannot parse.
        stamp=(
            "k8s.io/component-base/version.gitVersion={version}",
            "k8s.io/component-base/version.gitMajor=1",
            "k8s.io/component-base/version.gitMinor={minor}",
            "k8s.io/client-go/pkg/version.gitVersion={version}",
        ),
    ),
    Module(
        name="helper",
        path="testbed.example/helper",
        programs={"helper": ""},
        own=("main.go", "setns_amd64.go", "setns_arm64.go"),
    ),
    Module(
        name="cni",
        path="github.com/containernetworking/plugins",
        programs={
            "bridge": "plugins/main/bridge",
            "loopback": "plugins/main/loopback",
            "host-local": "plugins/ipam/host-local",
        },
    ),
    Module(
        name="runc",
        path="github.com/opencontainers/runc",
        programs={"runc": ""},
        # Without it every sandbox fails, and only the log of containerd says why.
        tags=("seccomp",),
        cgo=True,
    ),
    Module(
        name="containerd",
        path="github.com/containerd/containerd/v2",
        programs={name: f"cmd/{name}" for name in ("containerd", "containerd-shim-runc-v2", "ctr")},
        tags=("no_btrfs", "no_devmapper", "no_zfs"),
    ),
)
CONTROL_PLANE = ("etcd", "kube-apiserver", "kube-scheduler", "kube-controller-manager", "kubectl")
"""What a control plane needs."""
NODE = tuple(name for module in MODULES for name in module.programs if name not in CONTROL_PLANE)
"""What a real node needs beside it."""


def cache_root(env: Mapping[str, str] = os.environ) -> Path:
    """Folder of built programs: ``INTERLACE_TESTBED_CACHE``, else below the user's cache folder."""
    if override := env.get("INTERLACE_TESTBED_CACHE"):
        return Path(override).absolute()
    base = env.get("XDG_CACHE_HOME") or str(Path.home() / ".cache")
    return Path(base) / "interlace" / "testbed"


def pinned_version(module: Module, *, mods: Path = MODS) -> str:
    """Version of ``module`` in its go.mod, e.g. ``v1.36.3``; ``own`` for a module of ours."""
    if module.own:
        return "own"
    path = mods / module.name / "go.mod"
    found = re.search(rf"^(?:require)?\s*{re.escape(module.path)} (v\S+)", path.read_text(), re.MULTILINE)
    if found is None:
        raise BedError(f"{path} pins no version of {module.path}; add a require line for it")
    return found[1]


def build_flags(module: Module, *, mods: Path = MODS) -> list[str]:
    """Arguments of ``go build`` that decide what comes out."""
    version = pinned_version(module, mods=mods)
    stamps = [f"-X {variable.format(version=version, minor=version.split('.')[1])}" for variable in module.stamp]
    flags = ["-mod=readonly", "-trimpath", "-ldflags", " ".join(["-s -w", *stamps])]
    return [*flags, "-tags", ",".join(module.tags)] if module.tags else flags


def key(module: Module, *, go_version: str, mods: Path = MODS) -> str:
    """Name of the module's folder in the cache: readable version, then a hash of all that decides the content."""
    digest = hashlib.sha256()
    for name in ("go.mod", "go.sum", *module.own):
        content = (mods / module.name / name).read_bytes()
        digest.update(b"%s %d\n" % (name.encode(), len(content)) + content)
    for part in (go_version, f"cgo={module.cgo}", *build_flags(module, mods=mods)):
        digest.update(part.encode() + b"\0")
    return f"{module.name}-{pinned_version(module, mods=mods)}-{digest.hexdigest()[:12]}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Programs:
    """Built programs of one Go version."""

    cache: Path
    go_version: str

    def path(self, program: str) -> Path:
        """Where ``program`` lies once it is built."""
        for module in MODULES:
            if program in module.programs:
                return self.cache / key(module, go_version=self.go_version) / program
        raise KeyError(program)

    def missing(self, wanted: Sequence[str] = (*CONTROL_PLANE, *NODE)) -> list[str]:
        """Programs among ``wanted`` that have not been built yet."""
        return [name for name in wanted if not os.access(self.path(name), os.X_OK)]

    def require(self, wanted: Sequence[str]) -> None:
        """Raise ``BedError`` unless every program of ``wanted`` is there."""
        if absent := self.missing(wanted):
            raise BedError(
                f"{', '.join(absent)} not built in {self.cache}; run `python -m testbed get` "
                "(about 7 minutes the first time, seconds afterwards)"
            )
