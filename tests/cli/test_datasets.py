from __future__ import annotations

import json
from dataclasses import asdict

from fairtransport.datasets import list_datasets


def test_table_fits_80_columns_and_cites(run):
    result = run("datasets")
    assert result.exit_code == 0
    table, _, citations = result.stdout.partition("\n\n")
    assert max(len(line.rstrip()) for line in table.splitlines()) <= 80
    for entry in list_datasets():
        assert entry.name in table
        assert f"{entry.rows:,}" in table
        assert entry.citation in citations


def test_json_is_the_catalogue(run):
    result = run("datasets", "--json")
    assert result.exit_code == 0
    expected = [asdict(entry) for entry in list_datasets()]
    assert json.loads(result.stdout) == json.loads(json.dumps(expected))
