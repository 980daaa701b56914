# Copyright: (c) 2026, The kubenode.memory authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Build one of the small Go programs of the tests against a published release of k8s.io/kubernetes.

    build_kubernetes.py kubelet v1.37.2

prints the path of the binary, and builds it first if need be. Binaries live outside the repository, below
``$KUBENODE_MEMORY_CACHE`` (default ``${XDG_CACHE_HOME:-~/.cache}/kubenode-memory``), and are keyed by target, release,
toolchain and the content of everything that goes into them. Concurrent calls for one binary wait for one build.
"""

from __future__ import annotations

import argparse
import contextlib
import fcntl
import hashlib
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import typing as t

TESTS = pathlib.Path(__file__).resolve().parent.parent
TARGETS = {
    "oracle": TESTS / "differential" / "oracle",
    "kubelet": TESTS / "kubelet" / "cmd" / "kubelet",
    "kube-apiserver": TESTS / "kubelet" / "cmd" / "kube-apiserver",
    "kube-controller-manager": TESTS / "kubelet" / "cmd" / "kube-controller-manager",
    "kubeadm": TESTS / "kubelet" / "cmd" / "kubeadm",
}
DEFAULT_BUILDS = (
    ("kubelet", "v1.37.2"),
    ("kube-apiserver", "v1.37.2"),
    ("kubeadm", "v1.37.2"),
    ("kube-controller-manager", "v1.37.2"),
    ("oracle", "v1.37.2"),
    ("kubelet", "v1.34.4"),
    ("oracle", "v1.34.4"),
    ("oracle", "v1.35.4"),
    ("oracle", "v1.36.3"),
)
GO_ENVIRONMENT = {
    "GOFLAGS": "-mod=mod -buildvcs=false",
    "GOTOOLCHAIN": "local",
    "GOWORK": "off",
    "CGO_ENABLED": "0",
    # memory for time: the compiler collects its garbage less often
    "GOGC": "800",
}
# Nobody debugs these programs, and they are built more often than they are slow: neither DWARF nor inlining. With
# GOGC that takes three tenths off a cold build.
COMPILER_FLAGS = "all=-dwarf=false -l"
MODULE = "k8s.io/kubernetes"
GO_MOD = """module kubenode.test/{target}

go 1.24

require k8s.io/kubernetes {release}

replace (
{replaces})
"""


class BuildError(Exception):
    """A build that cannot be done; the text says what to do."""


class Release(t.NamedTuple):
    """A release of Kubernetes, as in v1.37.2."""

    major: int
    minor: int
    patch: int

    @classmethod
    def parse(cls, text: str) -> Release:
        found = re.fullmatch(r"v(\d+)\.(\d+)\.(\d+)", text)
        if not found:
            raise BuildError(f"{text!r} is not a release; it looks like v1.37.2")
        return cls(*map(int, found.groups()))

    def __str__(self) -> str:
        return "v{}.{}.{}".format(*self)

    @property
    def staging(self) -> str:
        """The version under which k8s.io/api and its siblings are published."""
        return f"v0.{self.minor}.{self.patch}"

    @property
    def build_flags(self) -> t.List[str]:
        return ["-trimpath", "-tags", self.tags, "-gcflags", COMPILER_FLAGS, "-ldflags", self.ldflags]

    @property
    def tags(self) -> str:
        """Build tags: one for this release and one for each earlier minor, so that sources can say 'since'."""
        return ",".join(f"kube_1_{minor}" for minor in range(34, self.minor + 1))

    @property
    def ldflags(self) -> str:
        variables = {"gitVersion": str(self), "gitMajor": str(self.major), "gitMinor": str(self.minor)}
        stamps = ["-X k8s.io/component-base/version.{}={}".format(*item) for item in variables.items()]
        return " ".join(["-s", "-w", *stamps])


def cache_root() -> pathlib.Path:
    chosen = os.environ.get("KUBENODE_MEMORY_CACHE")
    if chosen:
        return pathlib.Path(chosen)
    base = os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache")
    return pathlib.Path(base) / "kubenode-memory"


def go(*arguments: str, cwd: t.Optional[pathlib.Path] = None) -> str:
    """Run the go command and return its standard output; its own messages go to standard error."""
    if not shutil.which("go"):
        raise BuildError("the go command is not in PATH; install Go 1.26 or later")
    done = subprocess.run(
        ["go", *arguments],
        cwd=cwd,
        env={**os.environ, **GO_ENVIRONMENT},
        stdout=subprocess.PIPE,
        text=True,
        check=False,
    )
    if done.returncode:
        raise BuildError("go {} failed with exit code {}".format(" ".join(arguments), done.returncode))
    return done.stdout


def sources(target: str) -> t.List[pathlib.Path]:
    found = sorted(TARGETS[target].glob("*.go"))
    if not found:
        raise BuildError(f"there is no Go source in {TARGETS[target]}")
    return found


def build_key(target: str, release: Release) -> str:
    """Hash of everything that decides the binary: sources, recipe and toolchain."""
    recipe = json.dumps([GO_ENVIRONMENT, GO_MOD, release.build_flags, go("env", "GOVERSION", "GOARCH")])
    digest = hashlib.sha256(recipe.encode())
    for path in sources(target):
        digest.update(path.name.encode() + b"\0" + path.read_bytes() + b"\0")
    return f"{target}-{release}-{digest.hexdigest()[:12]}"


def staging_modules(release: Release, workdir: pathlib.Path) -> t.List[str]:
    """The modules that k8s.io/kubernetes replaces by directories of its own tree."""
    listed = json.loads(go("list", "-m", "-json", f"{MODULE}@{release}", cwd=workdir))
    go_mod = json.loads(go("mod", "edit", "-json", listed["GoMod"], cwd=workdir))
    return sorted(r["Old"]["Path"] for r in go_mod["Replace"] if r["New"]["Path"].startswith("./staging/"))


def write_module(target: str, release: Release, workdir: pathlib.Path) -> None:
    """Lay out the main package with a go.mod that takes every staging module in its published version."""
    for path in sources(target):
        shutil.copy(str(path), str(workdir))
    go_mod = workdir / "go.mod"
    go_mod.write_text(f"module kubenode.test/{target}\n", encoding="utf-8")
    modules = staging_modules(release, workdir)
    replaces = "".join(f"\t{name} => {name} {release.staging}\n" for name in modules)
    go_mod.write_text(GO_MOD.format(target=target, release=release, replaces=replaces), encoding="utf-8")


def compile_into(target: str, release: Release, workdir: pathlib.Path, binary: pathlib.Path) -> None:
    write_module(target, release, workdir)
    built = workdir / "built"
    go("build", *release.build_flags, "-o", str(built), ".", cwd=workdir)
    os.replace(str(built), str(binary))


@contextlib.contextmanager
def locked(path: pathlib.Path) -> t.Iterator[None]:
    with path.open("w") as handle:
        fcntl.flock(handle, fcntl.LOCK_EX)
        yield


def build(target: str, release: Release) -> pathlib.Path:
    """Return the path of the binary, built if it was not there."""
    key = build_key(target, release)
    root = cache_root()
    binary = root / "bin" / key
    for folder in ("bin", "build", "lock"):
        (root / folder).mkdir(parents=True, exist_ok=True)
    with locked(root / "lock" / key):
        if not binary.exists():
            workdir = root / "build" / key
            shutil.rmtree(str(workdir), ignore_errors=True)
            workdir.mkdir()
            compile_into(target, release, workdir, binary)
            shutil.rmtree(str(workdir))
    return binary


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="Build a test program against k8s.io/kubernetes; prints its path.")
    parser.add_argument("target", nargs="?", choices=sorted(TARGETS))
    parser.add_argument("release", nargs="?", help="such as v1.37.2")
    parser.add_argument("--all", action="store_true", help="build everything that the tests need by default")
    parsed = parser.parse_args()
    if parsed.all == bool(parsed.target) or bool(parsed.target) != bool(parsed.release):
        parser.error("give a target and a release, or --all")
    return parsed


def main() -> int:
    wanted = arguments()
    pairs = DEFAULT_BUILDS if wanted.all else ((wanted.target, wanted.release),)
    try:
        for target, release in pairs:
            print(build(target, Release.parse(release)), flush=True)
    except BuildError as error:
        print(f"build_kubernetes: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
