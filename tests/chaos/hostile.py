"""Hostile input to commands and readers: a sentence and an exit code, nothing run, nothing touched that is not ours.

    uv run python tests/chaos/hostile.py FOLDER --inputs 1000 --seed 1

FOLDER holds a table and the store of its maintenance (`scene.py` makes them). Every input is drawn from a seed and its
number, so that `--only NUMBER` plays one again. This process has no Spark, and Python tells it (`sys.addaudithook`) of
every file that is opened, every process and connection that is started, and every name that is unpickled.
"""

from __future__ import annotations

import argparse
import io
import json
import logging
import os
import random
import shutil
import signal
import sys
import time
import traceback
import warnings
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

os.environ["JAVA_HOME"] = "/nowhere"  # what only Spark can answer ends here with a sentence

from poison import SECRET, damaged, forged, texts, values
from readers import READERS, import_log
from typer.testing import CliRunner

from oreo_lakehouse.cli.main import app
from oreo_lakehouse.cli.maintain import app as maintain_app
from oreo_lakehouse.config import load_config
from oreo_lakehouse.errors import OreoError
from oreo_lakehouse.store import LocalStore

PATIENCE = 60
"""Seconds for one input."""
FORBIDDEN = ("os.system", "os.exec", "os.posix_spawn", "os.spawn", "os.fork", "subprocess.Popen", "pickle.find_class")
FORBIDDEN += ("socket.connect", "socket.getaddrinfo", "ctypes.dlopen", "shutil.rmtree")
CHANGES = ("os.remove", "os.rename", "os.link", "os.symlink", "os.mkdir", "os.rmdir", "os.truncate", "os.chmod")
LOOKING = (("status",), ("ledger",), ("explain",), ("report",))


@dataclass
class Inputs:
    """What was tried, and what failed."""

    inputs: int = 0
    kinds: Counter[str] = field(default_factory=Counter[str])
    exits: Counter[str] = field(default_factory=Counter[str])
    failures: list[str] = field(default_factory=list[str])
    seconds: float = 0.0
    peak_mb: int = 0


class Watch:
    """Hears what this process does, and remembers what it should not have done."""

    def __init__(self, inside: Path, outside: Path) -> None:
        self._inside, self._outside, self.on, self.seen = str(inside), str(outside), False, list[str]()
        sys.addaudithook(self._hear)

    def _hear(self, event: str, given: tuple[Any, ...]) -> None:
        if not self.on:
            return
        if event.startswith(FORBIDDEN) and "/nowhere" not in str(given[0]):
            self.seen.append(f"{event} {given!r:.80}")
        elif event in CHANGES and not self._ours(given[0]):
            self.seen.append(f"{event} {given[0]!r:.80}")
        elif event == "open" and isinstance(given[0], (str, bytes, os.PathLike)):
            path = os.path.abspath(os.fsdecode(given[0]))
            writes = isinstance(given[2], int) and given[2] & (os.O_WRONLY | os.O_RDWR | os.O_CREAT)
            if path.startswith((self._outside, "/etc/passwd")) or (writes and not self._ours(path)):
                self.seen.append(f"open {path:.80}")

    def _ours(self, path: Any) -> bool:
        where = os.path.abspath(os.fsdecode(path)) if not isinstance(path, int) else self._inside
        return where.startswith((self._inside, "/dev/null")) or "__pycache__" in where


class Hostility:
    """One scene, and what is done to it."""

    def __init__(self, scene: Path) -> None:
        self._scene = scene
        self._place = scene.parent / "play"
        self._outside = scene.parent / "outside"
        self._outside.mkdir(exist_ok=True)
        (self._outside / "secret.txt").write_text("nobody's business")
        self._fresh()
        self._table = str(self._place / "table")
        self._config = str(self._place / "oreo.toml")
        self.uuid = next(path.name for path in (scene / "store").iterdir() if (path / "state").is_dir())
        self._watch = Watch(self._place, self._outside)
        self._heard = io.StringIO()
        logging.basicConfig(stream=self._heard, level=logging.DEBUG, force=True)
        self._files = sorted(p.relative_to(scene) for p in (scene / "store").rglob("*") if p.is_file())

    def _fresh(self) -> None:
        shutil.rmtree(self._place, ignore_errors=True)
        shutil.copytree(self._scene, self._place)
        (self._place / "oreo.toml").write_text(f'store = "{self._place}/store"\n')

    def play(self, seed: int, number: int, done: Inputs) -> None:
        """One input; what it should not have done is among the failures."""
        draw = random.Random(f"{seed}-{number}")
        kind = draw.choices(list(KINDS), [weight for weight, _ in KINDS.values()])[0]
        self._heard.seek(0)
        self._heard.truncate()
        self._watch.seen.clear()
        signal.alarm(PATIENCE)
        try:
            self._watch.on = True
            said = KINDS[kind][1](self, draw)
        except OreoError as error:
            said = f"{type(error).__name__}: {error}"
            done.exits[str(int(error.exit_code))] += 1
        except BaseException as error:
            where = " < ".join(
                f"{Path(at.filename).name}:{at.lineno}" for at in traceback.extract_tb(error.__traceback__)[:-4:-1]
            )
            said = f"raised {type(error).__name__}: {error!s:.200} at {where}"
            done.failures.append(f"input {number} of seed {seed} ({kind}) {said}")
        else:
            done.exits[said.partition(" ")[0]] += 1
        finally:
            self._watch.on = False
            signal.alarm(0)
        said += self._heard.getvalue()
        wrong = [f"did {what}" for what in self._watch.seen]
        wrong += [
            f"said {word!r}: {_around(said, word)}" for word in (SECRET, "Traceback", "unexpected") if word in said
        ]
        if (self._outside / "executed").exists() or len(list(self._outside.iterdir())) != 1:
            wrong.append("wrote outside")
        done.failures += [f"input {number} of seed {seed} ({kind}) {what}" for what in wrong]
        done.inputs += 1
        done.kinds[kind] += 1

    # The kinds of input; each answers the exit code and what was said.

    def stored_file(self, draw: random.Random) -> str:
        """A file of the store, damaged or forged, met by a command or a reader."""
        file = draw.choice(self._files)
        target, content = self._place / file, (self._scene / file).read_bytes()
        made = (damaged if draw.random() < 0.5 else forged)(content, draw, str(self._outside))
        return self._met(target, made, draw)

    def stored_name(self, draw: random.Random) -> str:
        """A file in the store under a name that is not one of ours."""
        file = draw.choice(self._files)
        name = draw.choice(
            ["-begun.json", ".json", ".parquet", "-", "0" * 40, "9" * 40 + ".json", "é.jsonl", "a\nb.json"]
        )
        made = forged((self._scene / file).read_bytes(), draw, "x")
        return self._met((self._place / file).with_name(name), made, draw)

    def _met(self, target: Path, content: bytes, draw: random.Random) -> str:
        """A file of the store as somebody left it; afterwards the store is as it was."""
        self._watch.on = False
        target.write_bytes(content)
        self._watch.on = True
        try:
            return self._looked(draw)
        finally:
            self._watch.on = False
            self._restore()

    def _looked(self, draw: random.Random) -> str:
        if draw.random() < 0.6:
            reader = draw.choice(READERS)
            reader(LocalStore(str(self._place / "store")), self.uuid)
            return "0 read"
        return self._ran([*draw.choice(LOOKING), self._table], draw)

    def _restore(self) -> None:
        shutil.rmtree(self._place / "store")
        shutil.copytree(self._scene / "store", self._place / "store")

    def name(self, draw: random.Random) -> str:
        """A hostile text as a table, shard, decision, layout or file."""
        text = draw.choice(texts(str(self._outside)))
        table = draw.choice([text, self._table, f"{self._table}/{text}"])
        commands = [
            ["status", text],
            ["ledger", table, "--shard", text],
            ["explain", table, "--decision", text],
            ["report", text],
            ["rollback", table, "--to", text],
            ["layouts", table],
            ["calibrate", text],
            ["history", "show", text],
            ["history", "import", table, text],
            ["history", "compact", text, "--bytes", text],
            ["backtest", "--rows", text, "--queries", text],
            [draw.choice(texts(str(self._outside))), text],
        ]
        if draw.random() < 0.3:
            return self._ran([text, "--budget", text] if draw.random() < 0.5 else [text], draw, maintain_app)
        return self._ran(draw.choice(commands), draw)

    def settings(self, draw: random.Random) -> str:
        """A configuration file that is damaged, of wrong types, or of wild values."""
        whole = (Path(__file__).parents[2] / "conf" / "oreo.toml").read_text()
        keys = [line.split(" = ")[0] for line in whole.splitlines() if " = " in line and not line.startswith("#")]
        value = values("x", draw)
        lines = [
            f"{draw.choice(keys)} = {json.dumps(value) if value is not None else 'x'}" if draw.random() < 0.1 else line
            for line in whole.splitlines()
        ]
        text = "\n".join(lines).encode("utf-8", "surrogatepass")
        if draw.random() < 0.4:
            text = damaged(text, draw, "x")
        file = self._place / "hostile.toml"
        self._watch.on = False
        file.write_bytes(text)
        self._watch.on = True
        if draw.random() < 0.8:
            load_config(str(file), environ={})
            return "0 loaded"
        return self._ran(["ledger", self._table, "--config", str(file)], draw, config=False)

    def log(self, draw: random.Random) -> str:
        """A query log with hostile statements, or hostile itself."""
        return import_log(self._place, draw, str(self._outside), self._watch)

    def _ran(self, words: list[str], draw: random.Random, command: Any = app, config: bool = True) -> str:
        words += ["--json"] if draw.random() < 0.4 else []
        words += ["--config", self._config] if config and words[0] != "backtest" else []
        words += ["-o", str(self._place / "report.html")] if words[0] == "report" else []
        done = CliRunner().invoke(command, words)
        if done.exception is not None and not isinstance(done.exception, SystemExit):
            raise done.exception
        if done.exit_code not in (0, 1, 2, 3):
            raise AssertionError(f"exit code {done.exit_code}")
        said = f"{done.exit_code} {done.stderr}"
        if "unexpected" in said and done.exception is not None:
            cause = done.exception.__context__ or done.exception
            while cause.__cause__ or cause.__context__:
                cause = cause.__cause__ or cause.__context__ or cause
            frames = traceback.extract_tb(cause.__traceback__)[:-7:-1]
            said += " at " + " < ".join(f"{Path(at.filename).name}:{at.lineno}" for at in frames)
        return said


def _around(said: str, word: str) -> str:
    at = said.index(word)
    return repr(said[max(0, at - 120) : at + 250])


KINDS: dict[str, tuple[int, Callable[[Hostility, random.Random], str]]] = {
    "stored files": (50, Hostility.stored_file),
    "names of stored files": (5, Hostility.stored_name),
    "names": (15, Hostility.name),
    "configurations": (10, Hostility.settings),
    "query logs": (20, Hostility.log),
}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--inputs", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--only", type=int, nargs="*")
    given = parser.parse_args()
    os.chdir(given.folder.parent)
    warnings.simplefilter("ignore")
    started, done, scene = time.monotonic(), Inputs(), Hostility(given.folder.absolute())
    for number in given.only if given.only is not None else range(given.inputs):
        scene.play(given.seed, number, done)
    done.seconds = time.monotonic() - started
    status = Path("/proc/self/status")
    if status.exists():
        (peak,) = [line.split()[1] for line in status.read_text().splitlines() if line.startswith("VmHWM")]
        done.peak_mb = int(peak) // 1024
    print(json.dumps(vars(done)))
    return 1 if done.failures else 0


if __name__ == "__main__":
    raise SystemExit(main())
