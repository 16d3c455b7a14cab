"""Container images without a registry: a root file system from files of this machine, packed as an OCI tar.

Two are made: a tiny one around the testbed's static helper, and our own, with the interpreter that runs this,
the locked dependencies and the package, laid out as the ``Dockerfile`` does it. What `ctr images import`
reads is one uncompressed layer, so that making and unpacking cost no time.
"""

from __future__ import annotations

import hashlib
import importlib.metadata
import io
import json
import os
import py_compile
import re
import subprocess
import sys
import sysconfig
import tarfile
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import BinaryIO

from testbed.errors import BedError

PREFIX = "usr/local"
LIBRARIES = "usr/lib"
EXTRAS = ("webhook",)
"""What the components need beyond the command line's own requirements."""
_ARCHITECTURES = {"x86_64": "amd64", "aarch64": "arm64"}
_LEFT_OUT = {"test", "tests", "idlelib", "tkinter", "turtledemo", "ensurepip", "lib2to3", "site-packages", "pydoc_data"}
_NAMES = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*")


@dataclass(frozen=True, slots=True, kw_only=True)
class Root:
    """A root file system and how it is started; all paths inside it without the leading slash."""

    files: Mapping[str, Path]
    """Path inside to the file to copy."""
    links: Mapping[str, str] = field(default_factory=dict)
    texts: Mapping[str, str] = field(default_factory=dict)
    """Executable files written here."""
    command: Sequence[str] = ()
    env: Mapping[str, str] = field(default_factory=dict)


def write_image(target: Path, *, name: str, root: Root) -> None:
    """Pack an image called ``name``, a whole name with registry and tag, as an OCI tar."""
    plain = io.BytesIO()
    write_layer(plain, root)
    content = plain.getvalue()
    digest = _digest(content)
    architecture = {"architecture": _architecture(), "os": "linux"}
    config = json.dumps(
        {
            **architecture,
            "config": {"Cmd": list(root.command), "Env": [f"{key}={value}" for key, value in root.env.items()]},
            "rootfs": {"type": "layers", "diff_ids": [digest]},
        }
    ).encode()
    manifest = json.dumps(
        {
            "schemaVersion": 2,
            "mediaType": "application/vnd.oci.image.manifest.v1+json",
            "config": _descriptor("application/vnd.oci.image.config.v1+json", config),
            "layers": [_descriptor("application/vnd.oci.image.layer.v1.tar", content)],
        }
    ).encode()
    annotations = {
        "io.containerd.image.name": name,
        "org.opencontainers.image.ref.name": name.rsplit(":", 1)[1],
    }
    described = _descriptor("application/vnd.oci.image.manifest.v1+json", manifest)
    index = {
        "schemaVersion": 2,
        "mediaType": "application/vnd.oci.image.index.v1+json",
        "manifests": [described | {"platform": architecture, "annotations": annotations}],
    }
    with tarfile.open(target, "w") as archive:
        _add(archive, "oci-layout", b'{"imageLayoutVersion":"1.0.0"}')
        _add(archive, "index.json", json.dumps(index).encode())
        for blob in (content, config, manifest):
            _add(archive, "blobs/" + _digest(blob).replace(":", "/"), blob)


def write_layer(target: BinaryIO, root: Root) -> None:
    """Write the files alone, as a tar."""
    with tarfile.open(fileobj=target, mode="w|", format=tarfile.PAX_FORMAT) as layer:
        tree = _Tree(layer)
        for folder in ("dev", "etc", "proc", "run", "sys", "tmp", "var"):
            tree.folder(folder)
        for inside, path in sorted(root.files.items()):
            tree.file(inside, path)
        for inside, text in sorted(root.texts.items()):
            tree.text(inside, text)
        for inside, to in sorted(root.links.items()):
            tree.link(inside, to)


def helper_root(helper: Path, *, verbs: Sequence[str] = ("pause",)) -> Root:
    """Nothing but the helper, also callable as each of ``verbs``; it waits unless told otherwise."""
    return Root(
        files={"bin/helper": helper},
        links={f"bin/{verb}": "helper" for verb in verbs},
        command=["/bin/helper", "pause"],
        env={"PATH": "/bin"},
    )


@contextmanager
def own_root() -> Iterator[Root]:
    """Ours, from the interpreter and the environment that run this; its files are there inside the context.

    Raises ``BedError``.
    """
    version = f"python{sys.version_info.major}.{sys.version_info.minor}"
    library = f"{PREFIX}/lib/{version}"
    files = dict(_standard_library(library))
    files |= _distributions(f"{library}/site-packages")
    files[f"{PREFIX}/bin/{version}"] = Path(os.path.realpath(sys.executable))
    # nvidia-imex of a driver container, and ours that is simulated, may be started by a script.
    files["bin/sh"] = Path("/bin/sh").resolve()
    with tempfile.TemporaryDirectory() as scratch:
        files |= _package(Path(scratch), f"{library}/site-packages")
        files |= dict(_compiled(Path(scratch), files))
        files |= shared_libraries([path for path in files.values() if _is_program(path)])
        yield Root(
            files=files,
            links={f"{PREFIX}/bin/python3": version, f"{PREFIX}/bin/python": version},
            texts={f"{PREFIX}/bin/interlace": f"#!/{PREFIX}/bin/python3\n{_ENTRY}"},
            command=["interlace", "--help"],
            env={"PATH": f"/{PREFIX}/bin:/usr/bin:/bin", "PYTHONHOME": f"/{PREFIX}", "PYTHONDONTWRITEBYTECODE": "1"},
        )


_ENTRY = "import sys\nfrom interlace.cli.main import main\nsys.exit(main())\n"


class _Tree:
    """Writes a layer; each folder once and before what lies in it."""

    def __init__(self, layer: tarfile.TarFile) -> None:
        self._layer = layer
        self._made: set[str] = set()

    def folder(self, path: str) -> None:
        parts = path.split("/")
        for depth in range(1, len(parts) + 1):
            part = "/".join(parts[:depth])
            if part not in self._made:
                self._made.add(part)
                info = tarfile.TarInfo(part)
                info.type, info.mode = tarfile.DIRTYPE, 0o1777 if part == "tmp" else 0o755
                self._layer.addfile(info)

    def file(self, inside: str, path: Path) -> None:
        self.folder(inside.rpartition("/")[0])
        stat = path.stat()
        info = tarfile.TarInfo(inside)
        # Python compares its compiled files with the time of the source, in whole seconds.
        info.size, info.mtime = stat.st_size, int(stat.st_mtime)
        info.mode = 0o755 if stat.st_mode & 0o111 else 0o644
        with path.open("rb") as file:
            self._layer.addfile(info, file)

    def text(self, inside: str, text: str) -> None:
        self.folder(inside.rpartition("/")[0])
        info = tarfile.TarInfo(inside)
        info.size, info.mode = len(text.encode()), 0o755
        self._layer.addfile(info, io.BytesIO(text.encode()))

    def link(self, inside: str, to: str) -> None:
        self.folder(inside.rpartition("/")[0])
        info = tarfile.TarInfo(inside)
        info.type, info.linkname, info.mode = tarfile.SYMTYPE, to, 0o777
        self._layer.addfile(info)


def _standard_library(inside: str) -> Iterator[tuple[str, Path]]:
    for root in {Path(sysconfig.get_path("stdlib")), Path(sysconfig.get_path("platstdlib"))}:
        for folder, folders, names in os.walk(root):
            folders[:] = [name for name in folders if name not in _LEFT_OUT and not name.startswith("config-")]
            for name in names:
                path = Path(folder) / name
                # Links of a distribution's Python lead to files of its own; a broken one is nothing to run.
                if path.suffix != ".a" and not name.startswith("_tkinter") and path.exists():
                    yield f"{inside}/{path.relative_to(root)}", path


def _distributions(inside: str) -> dict[str, Path]:
    """Files of all that the components require, without our own."""
    found: dict[str, Path] = {}
    seen: set[str] = set()
    wanted = _requirements("interlace", extras=EXTRAS)
    while wanted:
        name = wanted.pop()
        if name in seen:
            continue
        seen.add(name)
        try:
            distribution = importlib.metadata.distribution(name)
        except importlib.metadata.PackageNotFoundError:
            raise BedError(f"{name}, which the image needs, is not installed; run `make venv`") from None
        wanted |= _requirements(name)
        for file in distribution.files or ():
            path = Path(str(distribution.locate_file(file)))
            # Programs of other packages lie elsewhere, and none of them is called.
            if not str(file).startswith("..") and path.is_file():
                found[f"{inside}/{file}"] = path
    return found


def _requirements(name: str, *, extras: Sequence[str] = ()) -> set[str]:
    """Names of what a distribution requires on this system, also for ``extras``."""
    from packaging.requirements import Requirement  # noqa: PLC0415 - of the tools, not of the package

    found = set()
    for line in importlib.metadata.requires(name) or ():
        requirement = Requirement(line)
        marker = requirement.marker
        if marker is None or any(marker.evaluate({"extra": extra}) for extra in ("", *extras)):
            found.add(requirement.name.lower())
    return found


def _package(scratch: Path, inside: str) -> dict[str, Path]:
    """Our package, compiled, so that a read-only root starts as fast as another one."""
    import interlace  # noqa: PLC0415 - the one that is tested, wherever it lies

    source = Path(interlace.__file__).parent
    subprocess.run(
        [sys.executable, "-I", "-c", _COPY, str(source), str(scratch / "interlace")], check=True, capture_output=True
    )
    files = (path for path in scratch.rglob("*") if path.is_file())
    return {f"{inside}/{path.relative_to(scratch)}": path for path in files}


_COPY = """
import compileall, py_compile, shutil, sys
shutil.copytree(sys.argv[1], sys.argv[2], ignore=shutil.ignore_patterns("__pycache__"))
compileall.compile_dir(sys.argv[2], quiet=1, stripdir=sys.argv[2].rpartition("/")[0], workers=1, optimize=[0, 2])
"""


_STARTED = {
    0: (
        "interlace.cli.serve",
        "interlace.domains.__main__",
        "interlace.pods.__main__",
        "interlace.node.nvml",
        "pynvml",
    ),
    2: ("interlace.node.__main__", "interlace.imex.__main__", "yaml", "google.rpc.status_pb2"),
}
"""What Pods start and what that imports later, by level of optimisation; nodes' components go without docstrings."""


def _compiled(scratch: Path, files: Mapping[str, Path]) -> Iterator[tuple[str, Path]]:
    """What the components import of other packages, compiled as they are started: nothing can be written later."""
    names = {os.path.realpath(path): inside for inside, path in files.items() if inside.endswith(".py")}
    for level, modules in _STARTED.items():
        command = [sys.executable, "-P", *["-O"] * level, "-c", _IMPORTED, *modules]
        found = subprocess.run(command, check=True, capture_output=True, text=True).stdout.splitlines()
        for number, source in enumerate(found):
            inside = names.get(os.path.realpath(source))
            if inside is None:
                continue
            folder, _, name = inside.rpartition("/")
            tag = f"{sys.implementation.cache_tag}{f'.opt-{level}' if level else ''}"
            place = f"{folder}/__pycache__/{name.removesuffix('.py')}.{tag}.pyc"
            if place not in files:
                target = scratch / f"{level}-{number}.pyc"
                py_compile.compile(source, cfile=str(target), dfile=f"/{inside}", doraise=True, optimize=level)
                yield place, target


_IMPORTED = """
import importlib, sys
for name in sys.argv[1:]:
    importlib.import_module(name)
for module in list(sys.modules.values()):
    if (getattr(module, "__file__", None) or "").endswith(".py"):
        print(module.__file__)
"""


def _is_program(path: Path) -> bool:
    if not (path.stat().st_mode & 0o111 or ".so" in path.name):
        return False
    with path.open("rb") as file:
        return file.read(4) == b"\x7fELF"


def shared_libraries(programs: Sequence[Path]) -> dict[str, Path]:
    """What the loader finds for the programs: the loader where they look for it, libraries in its default folder."""
    found: dict[str, Path] = {}
    answer = subprocess.run(["ldd", *map(str, programs)], capture_output=True, text=True, check=False).stdout  # noqa: S607
    for line in answer.splitlines():
        words = line.split()
        if len(words) >= 3 and words[1] == "=>" and words[2].startswith("/"):
            found[f"{LIBRARIES}/{words[0]}"] = Path(words[2]).resolve()
        elif words and words[0].startswith("/") and "ld-linux" in words[0]:
            found[words[0].lstrip("/")] = Path(words[0]).resolve()
    return found


def _architecture() -> str:
    machine = os.uname().machine
    if machine not in _ARCHITECTURES:
        raise BedError(f"no images are made for {machine}; run this on one of {', '.join(_ARCHITECTURES)}")
    return _ARCHITECTURES[machine]


def _digest(content: bytes) -> str:
    return f"sha256:{hashlib.sha256(content).hexdigest()}"


def _descriptor(media: str, content: bytes) -> dict[str, object]:
    return {"mediaType": media, "digest": _digest(content), "size": len(content)}


def _add(archive: tarfile.TarFile, path: str, content: bytes) -> None:
    info = tarfile.TarInfo(path)
    info.size = len(content)
    archive.addfile(info, io.BytesIO(content))
