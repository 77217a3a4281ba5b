"""Databases that run the scripts of `RepairLookup.to_sql`: two in this process, two as servers from Debian packages."""

import os
import shutil
import sqlite3
import subprocess
import tempfile
import time
from pathlib import Path

import duckdb
import pytest


class Database:
    """What creates tables, and runs a script there."""

    mark, dialect = '"', None

    def quoted(self, name):
        return self.mark + name.replace(self.mark, 2 * self.mark) + self.mark

    def definition(self, table, columns):
        """Return the command that creates a table with an id and columns of given types."""
        defined = ", ".join(f"{self.quoted(name)} {kind}" for name, kind in columns.items())
        return f"CREATE TABLE {self.quoted(table)} (id INTEGER, {defined});\n"


class Embedded(Database):
    """SQLite and DuckDB; values are passed as parameters, not as literals."""

    def __init__(self, connection):
        self.connection = connection

    def create(self, table, columns, rows):
        self.connection.execute(self.definition(table, columns))
        marks = ", ".join("?" * (1 + len(columns)))
        self.connection.executemany(f"INSERT INTO {self.quoted(table)} VALUES ({marks})", rows)  # noqa: S608

    def run(self, script, output):
        """Run a script and return the column ``output`` of its last query by id."""
        made, query = script.rsplit("\nSELECT s.*", 1)
        if isinstance(self.connection, sqlite3.Connection):
            self.connection.executescript(made)
        else:
            self.connection.execute(made)
        result = self.connection.execute("SELECT s.*" + query)
        place = [column[0] for column in result.description].index(output)
        return {row[0]: row[place] for row in result.fetchall()}

    def close(self):
        self.connection.close()


class Server(Database):
    """A server of its own, in a temporary folder, reached by a socket in it; not as root, which the servers refuse."""

    def __init__(self):
        self.found = {name: _find(name) for name in self.binaries}
        missing = [name for name, path in self.found.items() if path is None]
        if missing:
            pytest.skip(f"{missing[0]} is not installed; it is in the Debian package {self.package}")
        self.folder = Path(tempfile.mkdtemp(prefix="ft-", dir="/tmp"))
        self.user = {}
        if os.geteuid() == 0:
            self.user = {"user": "nobody", "group": "nogroup", "extra_groups": []}
            shutil.chown(self.folder, "nobody", "nogroup")
        self.process = None
        self.start()

    def call(self, *command, text=None, env=None):
        result = subprocess.run(
            [str(word) for word in command], input=None if text is None else text.encode(), capture_output=True,
            cwd=self.folder, check=False, env={**os.environ, "HOME": str(self.folder), **(env or {})}, **self.user,
        )  # fmt: skip
        if result.returncode:
            raise RuntimeError(f"{Path(command[0]).name}: {result.stderr.decode(errors='replace')[-2000:]}")
        return result.stdout.decode()

    def serve(self, *command, ready):
        with (self.folder / "log").open("wb") as log:
            self.process = subprocess.Popen(
                [str(word) for word in command], cwd=self.folder, stdout=log, stderr=log, **self.user
            )
        for _ in range(600):
            try:
                return ready()
            except RuntimeError:
                time.sleep(0.1)
        raise RuntimeError((self.folder / "log").read_text(errors="replace")[-2000:])

    def create(self, table, columns, rows):
        values = ",\n".join(f"({', '.join(map(self.literal, row))})" for row in rows)
        self.send(self.definition(table, columns))
        self.send(f"INSERT INTO {self.quoted(table)} VALUES {values};\n")  # noqa: S608

    def literal(self, value):
        """Return text by its bytes, independently of the dialect that is tested."""
        if isinstance(value, str):
            return self.hexed(value.encode().hex())
        return "NULL" if value is None else repr(value)

    def run(self, script, output, *, before=""):
        made, query = script.rsplit("\nSELECT s.*", 1)
        made += f"\nDROP TABLE IF EXISTS made_here;\nCREATE TABLE made_here AS SELECT s.*{query}"
        told = self.send(f"{before}{made}\nSELECT id, {self.quoted(output)} FROM made_here;\n")
        pairs = (line.split("|") for line in told.splitlines())
        return {int(one): None if other in {"", "NULL"} else float(other) for one, other in pairs}

    def close(self):
        if self.process is not None:
            self.process.terminate()
            self.process.wait(60)
        shutil.rmtree(self.folder, ignore_errors=True)


def _find(name):
    beside = sorted(Path("/usr/lib/postgresql").glob(f"*/bin/{name}"))
    found = shutil.which(name, path=f"{os.environ.get('PATH', '')}:/usr/sbin")
    return beside[-1] if beside else found


class PostgreSql(Server):
    package, binaries = "postgresql", ("initdb", "postgres", "psql")

    def start(self):
        data = self.folder / "data"
        self.call(self.found["initdb"], "-D", data, "-U", "tester", "-A", "trust", "-E", "UTF8", "--locale=C", "-N")
        options = ("-k", self.folder, "-c", "listen_addresses=", "-c", "fsync=off")
        self.serve(self.found["postgres"], "-D", data, *options, ready=lambda: self.send("SELECT 1;"))

    def send(self, text):
        command = ("-X", "-q", "-A", "-t", "-F", "|", "-v", "ON_ERROR_STOP=1", "-h", self.folder, "-U", "tester")
        return self.call(self.found["psql"], *command, "-d", "postgres", text=text)

    @staticmethod
    def hexed(digits):
        return f"convert_from(decode('{digits}', 'hex'), 'UTF8')"


class MariaDb(Server):
    package, binaries = "mariadb-server", ("mariadb-install-db", "mariadbd", "mariadb")
    mark = "`"

    def start(self):
        data, self.socket = self.folder / "data", self.folder / "socket"
        self.call(self.found["mariadb-install-db"], "--no-defaults", f"--datadir={data}", "--skip-test-db")
        options = ("--skip-networking", "--skip-grant-tables", f"--socket={self.socket}", f"--datadir={data}")
        own = (*options, f"--pid-file={self.folder}/pid", "--character-set-server=utf8mb4")
        self.serve(self.found["mariadbd"], "--no-defaults", *own, ready=lambda: self.send("CREATE DATABASE d;", ""))

    def send(self, text, database="d"):
        command = ("--no-defaults", f"--socket={self.socket}", "-N", "-B", "--default-character-set=utf8mb4")
        told = self.call(self.found["mariadb"], *command, *([database] if database else []), text=text)
        return told.replace("\t", "|")

    @staticmethod
    def hexed(digits):
        return f"CONVERT(X'{digits}' USING utf8mb4)"


DATABASES = {
    "sqlite": lambda: Embedded(sqlite3.connect(":memory:")),
    "duckdb": lambda: Embedded(duckdb.connect()),
    "postgresql": PostgreSql,
    "mysql": MariaDb,
}


def start_database(name):
    """Return a database, or skip the test where its server is not installed."""
    database = DATABASES[name]()
    database.dialect = name
    return database
