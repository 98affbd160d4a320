"""The workbook: formulas, checks, and every number followed back to its source."""

from __future__ import annotations

import csv
import datetime
import json
import shutil
import sqlite3
import subprocess
from collections.abc import Mapping
from dataclasses import replace
from decimal import Decimal
from pathlib import Path
from typing import Any

import openpyxl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from quotation_runs import EXAMPLE, case, written

from quotation.amounts import read_amount
from quotation.checking import check_cells, check_workbook, read_cells, same
from quotation.draft import Entry
from quotation.layout import lay_out
from quotation.recalculation import serial

Trace = list[dict[str, Any]]
SOFFICE = shutil.which("soffice")


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Trace]:
    out = tmp_path_factory.mktemp("quoted")
    written(case("1", out))
    trace = json.loads((out / "calculation-trace.json").read_text(encoding="utf-8"))
    return out, trace


@pytest.fixture(scope="module")
def made_cells(made: tuple[Path, Trace]) -> dict[str, object]:
    return read_cells(made[0] / "Q-2041.xlsx")


def test_formulas_and_checks(made: tuple[Path, Trace]) -> None:
    out, trace = made
    found = check_workbook(out / "Q-2041.xlsx", trace)
    assert found["problems"] == []
    assert found["consistent"] is True
    assert found["formulas"] >= 91
    assert len(found["checks"]) >= 7
    assert {check["result"] for check in found["checks"]} == {"OK"}


def test_no_amount_is_a_pasted_value(made: tuple[Path, Trace]) -> None:
    cells = read_cells(made[0] / "Q-2041.xlsx")
    page = {name: value for name, value in cells.items() if name.startswith("Quotation!")}
    numbers = [name for name, value in page.items() if isinstance(value, int | float)]
    assert numbers == []


def test_every_number_of_the_workbook_is_in_the_trace(made: tuple[Path, Trace]) -> None:
    out, trace = made
    traced = {entry["cell"] for entry in trace}
    cells = read_cells(out / "Q-2041.xlsx")
    for name, value in cells.items():
        if not isinstance(value, str) or value.startswith("="):
            assert name in traced
    for entry in trace:
        assert ("formula" in entry) != ("source" in entry)


def test_every_formula_leads_back_to_sources(made: tuple[Path, Trace]) -> None:
    trace = {entry["cell"]: entry for entry in made[1]}
    texts = {n for n, v in read_cells(made[0] / "Q-2041.xlsx").items() if n not in trace}
    for name in trace:
        waiting, seen, sources = [name], set(), 0
        while waiting:
            cell = waiting.pop()
            if cell in seen or cell in texts:
                continue
            seen.add(cell)
            entry = trace[cell]
            sources += "source" in entry
            waiting += entry.get("from", [])
        assert sources, f"{name} rests on nothing"


def raw_at(source: Mapping[str, str], out: Path) -> str:
    """What stands at the place a source names, read anew."""
    place = source["place"]
    if source["kind"] == "catalogue":
        table, *keys, column = place.split("/")
        database = sqlite3.connect(out / "catalogue.sqlite")
        names = [row[1] for row in database.execute(f"PRAGMA table_info({table})")]
        where = " AND ".join(f"{name} = ?" for name in names[: len(keys)])
        [row] = database.execute(f"SELECT {column} FROM {table} WHERE {where}", keys)
        database.close()
        return str(row[0])
    file, _, rest = place.partition(" ")
    folder = {"price_list": "data/prices", "tariff": "data", "request": "requests"}[source["kind"]]
    path = EXAMPLE / folder / file
    if path.suffix == ".xlsx":
        sheet, ref = rest.split("!")
        value = openpyxl.load_workbook(path)[sheet][ref].value
        return str(value)
    with path.open(encoding="utf-8", newline="") as opened:
        rows = list(csv.reader(opened, delimiter=";" if file == "alba.csv" else ","))
    _, number, *column_words = rest.split(" ")
    row = rows[int(number) - 1]
    if source["kind"] == "tariff":
        return row[rows[0].index(column_words[0])]
    return row[int(column_words[1]) - 1] if source["kind"] == "price_list" else row[2]


def test_sources_say_what_stands_there(made: tuple[Path, Trace]) -> None:
    out, trace = made
    checked = 0
    for entry in trace:
        source = entry.get("source")
        if not source or source["kind"] not in ("catalogue", "price_list", "tariff", "request"):
            continue
        if source["kind"] == "request" and not source["place"].endswith(" quantity"):
            continue  # a count or a day of the whole request
        found = raw_at(source, out)
        if entry["label"].endswith("position"):
            continue
        assert found == source["raw"], entry
        checked += 1
        if source["place"].endswith("/unit"):
            assert entry["value"] == "1"
        elif source["kind"] == "price_list" and "valid" in entry["label"]:
            day = datetime.date.fromisoformat(entry["value"])
            assert found in (day.strftime("%d.%m.%Y"), day.isoformat(), f"{day} 00:00:00")
        elif source["place"].endswith("as_of"):
            assert found == entry["value"]
        else:
            # Only the fasteners' list has a decimal comma.
            comma = source["place"].startswith("alba")
            assert Decimal(entry["value"]) == (read_amount(found, ",") if comma else Decimal(found))
    assert checked > 80


@given(data=st.data())
@settings(deadline=None, max_examples=40)
def test_a_changed_cell_is_noticed(
    made: tuple[Path, Trace], made_cells: dict[str, object], data: st.DataObject
) -> None:
    trace = made[1]
    entry = data.draw(st.sampled_from(trace))
    value = data.draw(st.sampled_from([0.0101, -7, "=1+1", None, "soon"]))
    cells = {**made_cells, entry["cell"]: value}
    found = check_cells(cells, trace)
    assert found["consistent"] is False
    assert any(entry["cell"] in problem for problem in found["problems"])


def test_a_number_typed_beside_the_table_is_noticed(made: tuple[Path, Trace]) -> None:
    out, trace = made
    book = openpyxl.load_workbook(out / "Q-2041.xlsx")
    book["Quotation"]["J3"] = 5
    book.save(out / "extra.xlsx")
    found = check_workbook(out / "extra.xlsx", trace)
    assert found["problems"] == ["Quotation!J3 holds a number that no trace explains"]


# --- any order ------------------------------------------------------------------------

PARTS = ("HX-1001", "HX-1002", "GK-2040", "VL-3080", "HS-4019", "FT-7025", "BR-8001")


@given(
    quantities=st.dictionaries(
        st.sampled_from(PARTS), st.integers(min_value=100, max_value=9_999), min_size=1
    ),
    customer=st.sampled_from(["C-102", "C-117", "C-141"]),
)
@settings(deadline=None, max_examples=20)
def test_formulas_come_to_what_decimal_arithmetic_comes_to(
    quantities: dict[str, int], customer: str, tmp_path_factory: pytest.TempPathFactory
) -> None:
    out = tmp_path_factory.getbasetemp() / "orders"
    tools = case("1", out)
    lines = [f"{10 * n},{part},{q},{'m' if part.startswith('HS') else 'pcs'}"
             for n, (part, q) in enumerate(quantities.items(), start=1)]  # fmt: skip
    head = ["request,RFQ-1", f"customer,{customer}", "destination,NL-1", "needed by,2027-03-01"]
    path = out / "request.csv"
    path.write_text("\n".join([*head, "line,part,quantity,unit", *lines]), encoding="utf-8")
    desk = tools.desk
    desk.inputs = replace(desk.inputs, request=path)
    for number in range(1, len(lines) + 1):
        desk.case.enter("settled", f"L{10 * number}-no_stock", "wait")
    desk.case.decide("service", "standard")
    assert desk.open_items() == []
    draft = lay_out(desk.quotation())
    found = check_cells({name: _content(entry) for name, entry in draft.entries.items()},
                        draft.trace())  # fmt: skip
    below_floor = customer == "C-141"
    failing = [check["check"] for check in found["checks"] if check["result"] != "OK"]
    assert failing == (["The margin is not below the floor"] if below_floor else [])
    assert len(found["problems"]) == (3 if below_floor else 0), found["problems"]


def _content(entry: Entry) -> object:
    if entry.formula is not None:
        return entry.formula
    return float(entry.value) if isinstance(entry.value, Decimal) else entry.value


# --- the office's own program ----------------------------------------------------------


@pytest.mark.skipif(SOFFICE is None, reason="LibreOffice (soffice) is not installed")
@pytest.mark.parametrize("task", ["1", pytest.param("2", marks=pytest.mark.slow)])
def test_libreoffice_comes_to_the_same_numbers(task: str, tmp_path: Path) -> None:
    tools = case(task, tmp_path)
    tools.desk.case.decide("agreed_date", "2027-01-15")
    written(tools)
    [book] = tmp_path.glob("Q-*.xlsx")
    assert SOFFICE is not None
    subprocess.run(
        [SOFFICE, f"-env:UserInstallation=file://{tmp_path}/profile", "--headless",
         "--convert-to", "xlsx", "--outdir", str(tmp_path / "recalculated"), str(book)],
        check=True, capture_output=True, timeout=180,
    )  # fmt: skip
    opened = openpyxl.load_workbook(tmp_path / "recalculated" / book.name, data_only=True)
    trace = json.loads((tmp_path / "calculation-trace.json").read_text(encoding="utf-8"))
    formulas = 0
    for entry in trace:
        sheet, ref = entry["cell"].split("!")
        value = opened[sheet][ref].value
        if isinstance(value, datetime.datetime):
            value = serial(value.date())
        assert same(value, entry["value"]), entry
        formulas += "formula" in entry
    assert formulas >= 91
    assert opened["Checks"]["E2"].value == "ALL CHECKS PASS"
