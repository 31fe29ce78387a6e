# Copyright: (c) 2026, plumbline.sglang contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Snapshots on a host: verified where they are, or staged beside their place, verified there and renamed into it."""

from __future__ import annotations

import contextlib
import fcntl
import functools
import os
import re
import shutil
import stat
import time
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from ..accounts import account, unreadable
from ..problem import Problem, listed
from ..progress import Progress, human_bytes
from ..releases.manifest import digest_of, digests, seal, sealed_mode, text_digest
from ..space import need
from . import manifest as manifests
from .manifest import Record, Recorded, Source
from .snapshot import File, Verdict, examine, listing


class Store:
    """Sees to one model's directory.

    :param model: MODEL of the plan.
    :param manifest_directory: where manifests lie (``/var/lib/sglang/manifests``).
    :param user: name of the service user, who must be able to read everything.
    """

    def __init__(self, model: dict[str, Any], manifest_directory: str, user: str, progress: Progress) -> None:
        self.model = model
        self.path: str = model["path"].rstrip("/")
        self.manifest = manifests.manifest_path(manifest_directory, model["name"])
        self.user = account(user)
        self.progress = progress

    @property
    def _what(self) -> str:
        return f"model {self.model['name']} at {self.path}"

    def _accept(self) -> None:
        """Refuse a model that has no certain place.

        :raises Problem: its path is not absolute.
        """
        if not os.path.isabs(self.path):
            raise Problem(self._what, f"the path {self.path}", "an absolute directory on the host", "take the model from the plan, or mend model.path")

    # A directory that is on the host already.

    def verify(self, check_mode: bool, full: bool = False) -> dict[str, Any]:
        """Verify the directory where it is, never alter it; record what it holds.

        :param full: hash the weights too, and hold them against the manifest.
        :raises Problem: it is not there, not complete, not readable by the service user, or not what was recorded.
        :raises OSError: this process may not look there.
        """
        self._accept()
        if not _is_directory(self.path):
            raise Problem(
                self._what,
                "there is no such directory on this host",
                "a complete model directory",
                "put the model there, or name a directory of the controller to copy it from (model.copy_from)",
            )
        self.progress.line(f"verifying {self.path}")
        verdict = examine(self.path)
        self._complete(verdict, "finish or repeat the download into this directory, then run again; nothing in it was changed")
        self._readable(verdict.files)
        before = self._record()
        record = Record(self.path, self._recorded(self.path, verdict.files, before, full))
        if full:
            self._unchanged_content(before, record)
        changes = _changes(before, record)
        if before != record and not check_mode:
            manifests.dump(self.manifest, self.model["name"], record, {"recorded_at": _now(), "source": "host"})
        result = self._facts(verdict, "verified")
        return {**result, "changed": before != record, "differs": changes if before else [], **_diff(self.manifest, changes)}

    def _recorded(self, root: str, files: Sequence[File], before: Record | None, full: bool = False) -> dict[str, Recorded]:
        known = manifests.intact(before, files) if before else set()
        hashed = [file.path for file in files if full or manifests.is_small(file)]
        values = digests(root, hashed, lambda done: self.progress.beat(lambda: f"hashed {done} of {len(hashed)} files"))
        found = {}
        for file in files:
            old = before.files[file.path] if before and file.path in known else None
            value = values.get(file.path) or (old.sha256 if old else None)
            found[file.path] = Recorded(file.path, file.size, file.mtime_ns, value, old.source_mtime_ns if old else None)
        return found

    def _unchanged_content(self, before: Record | None, now: Record) -> None:
        """Same size and time as recorded, other content: nobody meant that."""
        if before is None:
            return
        wrong = [
            path
            for path, file in now.files.items()
            if path in before.files
            and before.files[path].sha256 not in (None, file.sha256)
            and (before.files[path].size, before.files[path].mtime_ns) == (file.size, file.mtime_ns)
        ]
        if wrong:
            raise Problem(
                self._what,
                f"other content than recorded, at the same size and time: {listed(wrong)}",
                f"the content recorded in {self.manifest}",
                "the storage is failing or was tampered with: copy the model anew",
            )

    # A directory that is copied from the controller.

    def inspect(self, source: Sequence[Source]) -> dict[str, Any]:
        """What a copy would take. Changes nothing.

        Result: ``current`` (bool), ``ask`` (paths of which only the source's hash can tell whether they changed), ``send``
        (paths to be copied), ``bytes``, ``diff``.
        """
        self._accept()
        record, present = self._own()
        intact = manifests.intact(record, present) if record else set()
        ask: list[str] = []
        send: list[str] = []
        for file in source:
            answer = manifests.same(file, record.files[file.path]) if record and file.path in intact else False
            if not answer:
                (ask if answer is None else send).append(file.path)
        strangers = sorted({file.path for file in present} - {file.path for file in source})
        open_to_others = _not_sealed(self.path) if present else []
        current = not ask and not send and not strangers and not open_to_others and record is not None
        if current:
            self._readable(present)
        wanted = sum(file.size for file in source if file.path in {*send, *ask})
        lines = [f"{'copy' if path in send else 'compare'} {path}" for path in sorted(send + ask)] + [f"remove {path}" for path in strangers]
        lines += [f"owner or mode of {path}" for path in open_to_others]
        facts = self._facts(Verdict(list(present), [], []), "current" if current else "would_copy")
        return {**facts, "current": current, "ask": ask, "send": send, "bytes": wanted, "changed": not current, **_diff(self.path, lines)}

    def prepare(self, source: Sequence[Source]) -> dict[str, Any]:
        """Make the stage: what is on the host already is linked into it, the rest is to be sent.

        Result: ``stage`` and ``transfers``: path, size and offset in bytes (what an interrupted copy left is taken up).
        :raises Problem: the place is taken by something else, there is not enough room, or another run is at work on it.
        """
        with self._alone():
            return self._prepare(source)

    def _prepare(self, source: Sequence[Source]) -> dict[str, Any]:
        stage, (record, present) = self.stage(source), self._own()
        intact = manifests.intact(record, present) if record else set()
        reuse = [file.path for file in source if record and file.path in intact and manifests.same(file, record.files[file.path])]
        self._clear_others(stage)
        transfers: list[dict[str, Any]] = []
        for file in source:
            there = os.path.join(stage, file.path)
            if file.path not in reuse:
                size = os.lstat(there).st_size if os.path.isfile(there) and os.lstat(there).st_nlink == 1 else 0
                transfers.append({"path": file.path, "size": file.size, "offset": size if size <= file.size else 0})
        wanted = sum(one["size"] - one["offset"] for one in transfers)
        need(self.path, wanted + (16 << 20), self._what, "Models that no PD group names any more can be removed.")
        os.umask(0o022)
        for file in source:
            there = os.path.join(stage, file.path)
            os.makedirs(os.path.dirname(there), mode=0o755, exist_ok=True)
            if file.path in reuse:
                _link(os.path.join(self.path, file.path), there)
        for one in transfers:
            there = os.path.join(stage, one["path"])
            _own_file(there, keep=one["offset"] > 0)
        return {"changed": True, "stage": stage, "transfers": transfers, "bytes": wanted, "reused": len(reuse)}

    def finish(self, source: Sequence[Source]) -> dict[str, Any]:
        """Verify the stage, give it to root, switch to it, record it.

        :raises Problem: a file arrived other than it was sent (that file is removed from the stage), the whole is no
            complete model, or another run is at work on it.
        """
        with self._alone():
            return self._finish(source)

    def _finish(self, source: Sequence[Source]) -> dict[str, Any]:
        stage, before = self.stage(source), self._record()
        if not os.path.isdir(stage):
            raise Problem(
                self._what,
                f"the stage {stage} is gone: another run has finished or replaced it meanwhile",
                "one run at a time for a model of a host",
                "run again when the other run has ended",
            )
        linked = {file.path for file in source if os.lstat(os.path.join(stage, file.path)).st_nlink > 1}
        values = self._hash_stage(stage, [file for file in source if file.path not in linked])
        wrong = [file.path for file in source if file.path not in linked and file.sha256 != values[file.path]]
        if wrong:
            for path in wrong:
                os.unlink(os.path.join(stage, path))
            raise Problem(
                self._what,
                f"arrived other than sent: {listed(wrong)}",
                "the content that was read on the controller",
                "run again: what arrived whole is kept, these files are sent anew. If it happens again, check memory and storage",
            )
        verdict = examine(stage)
        self._complete(verdict, "mend the source directory on the controller, then run again")
        owner = 0 if os.geteuid() == 0 else None
        seal(stage, owner, owner)
        by_path = {file.path: file for file in source}
        files = {}
        for one in listing(stage)[0]:
            value = values.get(one.path) or (before.files[one.path].sha256 if before and one.path in before.files else None)
            files[one.path] = Recorded(one.path, one.size, one.mtime_ns, value, by_path[one.path].mtime_ns)
        # Before the switch: after a crash in between, the record does not fit the old directory and the stage is finished again.
        record = Record(self.path, files)
        manifests.dump(self.manifest, self.model["name"], record, {"recorded_at": _now(), "source": self.model.get("copy_from") or "controller"})
        self._switch(stage)
        self._readable(listing(self.path)[0])
        lines = [f"copied {path}" for path in sorted(values)]
        sent = sum(file.size for file in source if file.path in values)
        return {**self._facts(verdict, "copied"), "changed": True, "bytes": sent, **_diff(self.path, lines)}

    def refresh(self, source: Sequence[Source]) -> None:
        """Record the source's modification times where its content was found to be the same after all."""
        with self._alone():
            self._refresh(source)

    @contextlib.contextmanager
    def _alone(self) -> Iterator[None]:
        """Hold this snapshot against other runs on the host: the finish of a controller that was killed goes on by itself.

        The hold ends with the process, however it ends.

        :raises Problem: another run holds it.
        """
        os.makedirs(os.path.dirname(self.manifest), mode=0o755, exist_ok=True)
        held = os.open(self.manifest + ".lock", os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
        try:
            try:
                fcntl.flock(held, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                raise Problem(
                    self._what,
                    f"another run is verifying this snapshot (it holds {self.manifest}.lock)",
                    "one run at a time for a model of a host",
                    f"wait until it has ended, then run again; which process it is: fuser -v {self.manifest}.lock",
                ) from None
            yield
        finally:
            os.close(held)

    def _refresh(self, source: Sequence[Source]) -> None:
        record = self._record()
        if record is None:
            return
        times = {file.path: file.mtime_ns for file in source}
        files = {path: file._replace(source_mtime_ns=times.get(path, file.source_mtime_ns)) for path, file in record.files.items()}
        if files != record.files:
            manifests.dump(self.manifest, self.model["name"], Record(record.path, files), {"recorded_at": _now(), "source": self.model.get("copy_from") or ""})

    def _own(self) -> tuple[Record | None, list[File]]:
        """The record and the files of an earlier copy. What others put there is never replaced.

        :raises Problem: something is there that was not copied by this collection.
        """
        record = self._record()
        if not os.path.lexists(self.path):
            return record, []
        if os.path.islink(self.path) or not os.path.isdir(self.path):
            raise Problem(self._what, "a link or a file is in its place", "a directory, or nothing", "move it away, or give the model another path")
        if record is None and os.listdir(self.path):
            raise Problem(
                self._what,
                f"a directory is there of which {self.manifest} says nothing: it was not copied by this collection",
                "nothing there, or an earlier copy",
                "to use it as it is leave out model.copy_from; to have it replaced move it away",
            )
        return record, listing(self.path)[0]

    def stage(self, source: Iterable[Source]) -> str:
        """Directory beside the final one, named after what is to be in it: another source never takes up this one's stage."""
        rows = "\n".join(f"{file.path} {file.size} {file.mtime_ns}" for file in source)
        return f"{self.path}.partial-{text_digest(rows)[:12]}"

    def _hash_stage(self, stage: str, files: Sequence[Source]) -> dict[str, str]:
        total, done, values = sum(file.size for file in files), 0, {}
        self.progress.line(f"verifying {len(files)} files, {human_bytes(total)}")
        for file in files:
            path = os.path.join(stage, file.path)
            values[file.path] = digest_of(path, functools.partial(self._tell_verified, done, total))
            _sync(path)
            done += file.size
        return values

    def _tell_verified(self, before: int, total: int, size: int) -> None:
        self.progress.beat(lambda: f"verified {human_bytes(before + size)} of {human_bytes(total)}")

    def _switch(self, stage: str) -> None:
        old = f"{self.path}.replaced-{os.getpid()}"
        if os.path.lexists(self.path):
            os.rename(self.path, old)
        os.rename(stage, self.path)
        _sync(os.path.dirname(self.path))
        shutil.rmtree(old, ignore_errors=True)

    def _clear_others(self, stage: str) -> None:
        parent, name = os.path.split(self.path)
        # Exactly the names that this class makes: a copy that somebody keeps as NAME.old-2025 is theirs.
        ours = re.compile(re.escape(name) + r"\.(?:partial-[0-9a-f]{12}|replaced-[0-9]+)\Z")
        for entry in sorted(os.listdir(parent)) if os.path.isdir(parent) else ():
            other = os.path.join(parent, entry)
            if ours.match(entry) and other != stage:
                self.progress.line(f"removing {other}, left by an interrupted copy")
                shutil.rmtree(other, ignore_errors=True)

    # Common to both.

    def _record(self) -> Record | None:
        record = manifests.load(self.manifest)
        return record if record and record.path == self.path else None

    def _complete(self, verdict: Verdict, advice: str) -> None:
        if verdict.problems:
            shown = verdict.problems[:20] + ([f"and {len(verdict.problems) - 20} more"] if len(verdict.problems) > 20 else [])
            raise Problem(f"{self._what} is not complete", "\n".join(shown), "every file whole, and every file that an index names", advice)

    def _readable(self, files: Sequence[File]) -> None:
        paths = {self.path}
        for file in files:
            paths.add(os.path.join(self.path, file.path))
            paths.add(os.path.dirname(os.path.join(self.path, file.path)))
        closed = unreadable(sorted(paths), self.user)
        if not closed:
            return
        above = [path for path in _above(self.path) if not os.stat(path).st_mode & 0o001]
        advice = f"let it pass (chmod o+x {' '.join(above)})" if above else f"let it read them (chmod -R o+rX {self.path}), or give them to its group"
        raise Problem(
            self._what,
            f"{self.user.shown} cannot read {listed(closed, 5)}",
            "everything readable by the service user: the engine reports an unreadable shard as 'No such file or directory'",
            advice,
        )

    def _facts(self, verdict: Verdict, state: str) -> dict[str, Any]:
        return {
            "name": self.model["name"],
            "directory": self.path,
            "state": state,
            "files": len(verdict.files),
            "size": verdict.size,
            "notes": verdict.notes,
            "manifest": self.manifest,
        }


def _above(path: str) -> list[str]:
    found = []
    while os.path.dirname(path) != path:
        path = os.path.dirname(path)
        found.append(path)
    return found


def _not_sealed(root: str) -> list[str]:
    """What of a copy is not root's alone to write, and everybody's to read."""
    found = []
    for directory, _names, files in os.walk(root):
        for path in [directory, *(os.path.join(directory, name) for name in files)]:
            status = os.lstat(path)
            if stat.S_ISLNK(status.st_mode) or (status.st_uid in (0, os.geteuid()) and stat.S_IMODE(status.st_mode) == sealed_mode(status.st_mode)):
                continue
            found.append(os.path.relpath(path, root))
    return sorted(found)


def _link(source: str, target: str) -> None:
    if os.path.lexists(target):
        os.unlink(target)
    os.link(source, target)


def _own_file(path: str, keep: bool) -> None:
    """An empty file that only root reads, or what is there with one name of its own."""
    if not keep and os.path.lexists(path):
        os.unlink(path)
    os.close(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600))


def _sync(path: str) -> None:
    handle = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def _is_directory(path: str) -> bool:
    """Whether a directory is there. Not being allowed to look is an error, and not the same as nothing there."""
    try:
        os.listdir(path)
    except (FileNotFoundError, NotADirectoryError):
        return False
    return True


def _changes(before: Record | None, now: Record) -> list[str]:
    old = before.files if before else {}
    rows = [f"+ {path}" if path not in old else f"~ {path}" for path in sorted(now.files) if old.get(path) != now.files[path]]
    return rows + [f"- {path}" for path in sorted(old) if path not in now.files]


def _diff(header: str, lines: Sequence[str]) -> dict[str, Any]:
    if not lines:
        return {}
    return {"diff": {"before": "", "after": "".join(line + "\n" for line in lines), "before_header": header, "after_header": header}}


def _now() -> str:
    return time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
