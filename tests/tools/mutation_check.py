# Copyright: (c) 2026, The kubenode.memory authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Breaks each comparison and each rule of the policy core in turn; the tests have to go red every time.

    mutation_check.py [--part K/N] [FILE...]    prints every mutant that survives; fails if one is not explained

A mutant lives in the memory of one process. pytest collects the tests once; then a process is forked for each mutant,
gets its code in place of the functions', and runs the tests, those that killed others first, until one is red. What is
evaluated while a module is imported cannot be exchanged like that: such a mutant has a process that imports it.
"""

from __future__ import annotations

import argparse
import contextlib
import dataclasses
import importlib.machinery
import importlib.util
import io
import os
import resource
import sys
import tempfile
import time
import traceback
import types
import typing as t
from pathlib import Path

import hypothesis
import pytest

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
from tools.mutants import Mutant, mutants

ROOT = Path(__file__).resolve().parents[2]
POLICY = "plugins/module_utils/_policy"
PACKAGE = "ansible_collections.kubenode.memory." + POLICY.replace("/", ".")
TESTS: t.Mapping[str, t.Sequence[str]] = {
    "machine_state.py": ("policy/test_frozen.py", "policy/test_machine_state.py", "policy/test_static_policy.py"),
    "checkpoint.py": ("policy/test_frozen.py", "policy/test_checkpoint_fields.py", "policy/test_checkpoint.py"),
    "static_policy.py": ("policy/test_frozen.py", "policy/test_static_policy.py"),
    "tolerance.py": ("policy/test_frozen.py", "policy/test_tolerance.py", "policy/test_static_policy.py"),
}
"""The tests below tests/unit that are about a file; the vectors see more, at ten times the cost."""

CPU_SECONDS = 60
PATIENCE = 3
"""A mutant of a function has so many times the processor time that the tests need without it."""
MEMORY = 2 << 30
WHOLE = "1/1"
RED = (pytest.ExitCode.TESTS_FAILED, pytest.ExitCode.INTERRUPTED)

Key = t.Tuple[str, str, str, str]
EXPLAINED: t.Mapping[Key, str] = {
    ("machine_state.py", "", "720", "721"): "no product of factorials is 721",
    (
        "machine_state.py",
        "_can_be_tried",
        "6",
        "7",
    ): "7! is above MAX_ORDERS by itself; the 6 only spares the factorials of large numbers",
    (
        "machine_state.py",
        "_can_be_tried",
        "max(sizes)",
        "min(sizes)",
    ): "a size above 6 is above MAX_ORDERS by itself; the comparison only spares the factorials of large numbers",
    ("machine_state.py", "_with_last", "1", "2"): "-1 and -2 both sort before the first place, which is 0",
}
"""(file, function, expression, what it became): why no test can tell the mutant from the code."""


class CheckError(Exception):
    """The check itself does not work."""


@dataclasses.dataclass(frozen=True)
class Subject:
    """A file of the policy core, as a module and with its tests."""

    file: str

    @property
    def path(self) -> Path:
        return ROOT / POLICY / self.file

    @property
    def module(self) -> str:
        return f"{PACKAGE}.{self.path.stem}"

    @property
    def text(self) -> str:
        return self.path.read_text(encoding="utf-8")

    def pytest(self, *plugins: object) -> int:
        """Run its tests until one fails, without shrinking, always the same examples."""
        hypothesis.settings.register_profile(
            "mutants",
            deadline=None,
            derandomize=True,
            phases=(hypothesis.Phase.explicit, hypothesis.Phase.generate),
        )
        options = ["-q", "-x", "-s", "--hypothesis-profile=mutants", "--rootdir", str(ROOT)]
        with tempfile.TemporaryDirectory() as cache:
            tests = [str(ROOT / "tests/unit" / name) for name in TESTS[self.file]]
            return int(pytest.main([*options, "-o", f"cache_dir={cache}", *tests], plugins=list(plugins)))


# --- a process for each mutant ---------------------------------------------------------------------------------------


@dataclasses.dataclass
class Process:
    """A forked process; `said` is what it wrote, `survived` whether its tests stayed green."""

    pid: int
    output: int

    def wait(self) -> t.Tuple[bool, str]:
        """:raises CheckError: if it ended in any other way than green, red or by a limit"""
        with os.fdopen(self.output, encoding="utf-8") as pipe:
            said = pipe.read()
        _pid, status = os.waitpid(self.pid, 0)
        if os.WIFSIGNALED(status):
            return False, ""
        code = os.WEXITSTATUS(status)
        if code not in (pytest.ExitCode.OK, *RED):
            raise CheckError(f"exit code {code}\n{said}")
        return code == pytest.ExitCode.OK, said


def forked(run: t.Callable[[t.TextIO], int], cpu_seconds: int = CPU_SECONDS) -> Process:
    """Run a function in a process of its own, which is silent and limited; it may write to the given stream."""
    output, say = os.pipe()
    pid = os.fork()
    if pid:
        os.close(say)
        return Process(pid, output)
    code = int(pytest.ExitCode.INTERNAL_ERROR)
    with os.fdopen(say, "w", encoding="utf-8") as stream:
        try:
            with open(os.devnull, "r+b") as null:
                for descriptor in range(3):
                    os.dup2(null.fileno(), descriptor)
            resource.setrlimit(resource.RLIMIT_CPU, (cpu_seconds, cpu_seconds))
            resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
            code = run(stream)
        except BaseException:  # also the exit of a thread or of a library: this process has nobody above it
            traceback.print_exc(file=stream)
        stream.flush()
        os._exit(code)


def cpu_of_children() -> float:
    """Seconds of processor time of the processes that have ended."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def each_forked(
    todo: t.Iterable[Mutant], start: t.Callable[[Mutant], Process], workers: int
) -> t.Iterator[t.Tuple[Mutant, bool, str]]:
    """(mutant, whether it survived, what its process said), so many processes at a time."""
    running: t.List[t.Tuple[Mutant, Process]] = []
    for mutant in todo:
        if len(running) == workers:
            oldest, process = running.pop(0)
            yield (oldest, *process.wait())
        running.append((mutant, start(mutant)))
    for mutant, process in running:
        yield (mutant, *process.wait())


# --- mutants of functions --------------------------------------------------------------------------------------------


def exchange_functions(module: types.ModuleType, source: str) -> None:
    """Give the functions and methods of a module the code that they have in `source`."""
    fresh = types.ModuleType(module.__name__)
    fresh.__package__ = module.__package__
    # dataclasses look their module up
    with _in_place_of(module.__name__, fresh):
        exec(compile(source, str(module.__file__), "exec", dont_inherit=True), fresh.__dict__)
    for name, function in _functions(module).items():
        function.__code__ = _functions(fresh)[name].__code__


@contextlib.contextmanager
def _in_place_of(name: str, module: types.ModuleType) -> t.Iterator[None]:
    present = sys.modules[name]
    sys.modules[name] = module
    try:
        yield
    finally:
        sys.modules[name] = present


def _functions(module: types.ModuleType) -> t.Dict[str, types.FunctionType]:
    """By qualified name, the functions that the module's own source defines."""
    found: t.Dict[str, types.FunctionType] = {}
    for holder in (module, *(value for value in vars(module).values() if isinstance(value, type))):
        for value in vars(holder).values():
            plain = value.fget if isinstance(value, property) else value
            if isinstance(plain, types.FunctionType) and plain.__module__ == module.__name__:
                found[plain.__qualname__] = plain
    return found


class Loop:
    """A plugin that takes the place of pytest's loop over the tests; `survivors` are what is left of the mutants."""

    def __init__(self, subject: Subject, todo: t.Sequence[Mutant], workers: int) -> None:
        self.subject, self.todo, self.workers = subject, todo, workers
        self.survivors: t.List[Mutant] = []
        self.killers: t.Dict[str, int] = {}
        self.failed = False

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        self.failed |= report.failed

    def pytest_runtestloop(self, session: pytest.Session) -> bool:
        began = cpu_of_children()
        green, said = forked(lambda say: self._run(session, None, say)).wait()
        if not green:
            raise CheckError(f"{self.subject.file}: the tests are not green without a mutant: {said}")
        limit = 1 + int(PATIENCE * (cpu_of_children() - began))

        def start(mutant: Mutant) -> Process:
            return forked(lambda say: self._run(session, mutant, say), limit)

        for mutant, survived, killer in each_forked(self.todo, start, self.workers):
            if survived:
                self.survivors.append(mutant)
            self.killers[killer] = self.killers.get(killer, 0) + 1
        return True

    def _run(self, session: pytest.Session, mutant: t.Optional[Mutant], say: t.TextIO) -> int:
        """The tests until one is red; its name is said."""
        if mutant is not None:
            exchange_functions(sys.modules[self.subject.module], mutant.source)
        for item in sorted(session.items, key=lambda item: -self.killers.get(item.nodeid, 0)):
            item.config.hook.pytest_runtest_protocol(item=item, nextitem=None)
            if self.failed:
                say.write(item.nodeid)
                return int(pytest.ExitCode.TESTS_FAILED)
        return int(pytest.ExitCode.OK)


# --- mutants of what is evaluated at import --------------------------------------------------------------------------


class MutantLoader(importlib.machinery.SourceFileLoader):
    """Loads a module from a source in memory; a finder of that module too."""

    def __init__(self, subject: Subject, source: str) -> None:
        super().__init__(subject.module, str(subject.path))
        self.source = source

    def find_spec(self, name: str, path: object = None, target: object = None) -> t.Any:
        return importlib.util.spec_from_file_location(name, self.path, loader=self) if name == self.name else None

    def get_code(self, fullname: str) -> types.CodeType:
        return compile(self.source, str(self.path), "exec", dont_inherit=True)


def importing(subject: Subject, mutant: Mutant) -> Process:
    """A process that imports the mutant and runs the tests."""

    def run(say: t.TextIO) -> int:
        sys.meta_path.insert(0, t.cast(t.Any, MutantLoader(subject, mutant.source)))
        return subject.pytest()

    return forked(run)


# --- the check -------------------------------------------------------------------------------------------------------


def survivors_of_import(subject: Subject, todo: t.Sequence[Mutant], workers: int) -> t.Iterator[Mutant]:
    """Those of the mutants of what is evaluated at import; nothing may have imported the subject yet."""
    at_import = [mutant for mutant in todo if mutant.at_import]
    for mutant, survived, _said in each_forked(at_import, lambda mutant: importing(subject, mutant), workers):
        if survived:
            yield mutant


def survivors_of_functions(subject: Subject, todo: t.Sequence[Mutant], workers: int) -> t.Sequence[Mutant]:
    """Those of the mutants of functions.

    :raises CheckError: if the tests are not green without a mutant
    """
    loop = Loop(subject, [mutant for mutant in todo if not mutant.at_import], workers)
    with contextlib.redirect_stdout(io.StringIO()) as output:
        code = subject.pytest(loop)
    if code != pytest.ExitCode.OK:
        raise CheckError(output.getvalue())
    return loop.survivors


def judged(subject: Subject, survivors: t.Iterable[Mutant], is_whole: bool) -> int:
    """Print the survivors; returns how many have no explanation, and how many explanations no survivor (any more)."""
    unexplained = 0
    idle = {key for key in EXPLAINED if key[0] == subject.file and is_whole}
    for mutant in survivors:
        key = (subject.file, mutant.scope, mutant.before, mutant.after)
        unexplained += key not in EXPLAINED
        idle.discard(key)
        print(f"survives: {subject.file}, {mutant}: {EXPLAINED.get(key, 'NOT EXPLAINED')}", flush=True)
    for key in sorted(idle):
        print(f"explained, but killed or gone: {', '.join(key)}")
    return unexplained + len(idle)


def chosen(subject: Subject, part: str) -> t.Sequence[Mutant]:
    """Every Nth mutant of a file, beginning with the Kth."""
    first, _slash, every = part.partition("/")
    return list(mutants(subject.text))[int(first) - 1 :: int(every)]


def main() -> int:
    parser = argparse.ArgumentParser(description="Breaks the policy core; the tests have to go red every time.")
    parser.add_argument("files", nargs="*", metavar="FILE", help=f"of {POLICY}; by default {', '.join(TESTS)}")
    parser.add_argument("--part", default=WHOLE, metavar="K/N", help="every Nth mutant, from the Kth on")
    parser.add_argument("--workers", type=int, default=os.cpu_count() or 1)
    arguments = parser.parse_args()
    subjects = [Subject(file) for file in arguments.files or TESTS]
    todo = {subject: chosen(subject, arguments.part) for subject in subjects}
    began = time.monotonic()
    left = {one: list(survivors_of_import(one, todo[one], arguments.workers)) for one in subjects}
    for one in subjects:
        left[one] += survivors_of_functions(one, todo[one], arguments.workers)
    unexplained = sum(judged(one, left[one], arguments.part == WHOLE) for one in subjects)
    for one in subjects:
        print(f"{one.file}: {len(todo[one])} mutants, {len(left[one])} survive")
    print(f"{time.monotonic() - began:.0f} s, {cpu_of_children():.0f} s of CPU")
    print(f"{sum(map(len, todo.values()))} mutants, {unexplained} unexplained survivors")
    return 1 if unexplained else 0


if __name__ == "__main__":
    sys.exit(main())
