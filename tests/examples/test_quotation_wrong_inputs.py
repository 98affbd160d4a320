"""Wrong inputs end in a clear open item, never in a number."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from dataclasses import replace
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st
from quotation_runs import EXAMPLE, call, case

from quotation.data.make_supplier_files import good
from quotation.price_lists import read_price_list
from quotation.request import UnreadableRequest
from quotation.tools import QuotationTools

ALBA = (EXAMPLE / "data" / "prices" / "alba.csv").read_text(encoding="utf-8")
CORVO = (EXAMPLE / "data" / "prices" / "corvo.csv").read_text(encoding="utf-8")


def with_files(out: Path, **texts: str) -> QuotationTools:
    """The first task with other price lists."""
    tools = case("1", out)
    files = dict(tools.desk.inputs.prices)
    for supplier, text in texts.items():
        files[supplier] = out / f"{supplier}.csv"
        files[supplier].write_text(text, encoding="utf-8")
    tools.desk.inputs = replace(tools.desk.inputs, prices=files)
    return tools


def changed(text: str, part: str, old: str, new: str) -> str:
    lines = [
        line.replace(old, new) if line.startswith(part) else line for line in text.splitlines()
    ]
    assert lines != text.splitlines()
    return "\n".join(lines) + "\n"


def open_items(tools: QuotationTools) -> list[dict[str, Any]]:
    listed = call(tools, "list_open_items").value
    return [*listed["unresolved_items"], *listed["notes"]]


def test_nothing_is_open_with_the_files_as_they_are(tmp_path: Path) -> None:
    assert open_items(with_files(tmp_path)) == []


WRONG: list[tuple[str, str, dict[str, str]]] = [
    ("a decimal point", "unreadable_number", {"alba": changed(ALBA, "HX-1001", "84,15", "84.15")}),
    ("a decimal comma", "unreadable_number",
     {"corvo": changed(CORVO, "HS-4019", "6.80", '"6,80"')}),
    ("an unknown unit", "unknown_unit", {"corvo": changed(CORVO, "HS-4019", ",m,", ",bdl,")}),
    ("another measure", "conflicting_units", {"corvo": changed(CORVO, "HS-4019", ",m,", ",kg,")}),
    ("a negative price", "negative_number", {"alba": changed(ALBA, "HX-1001", "92,40", "-92,40")}),
    ("no price", "unreadable_number", {"alba": changed(ALBA, "HX-1001", "92,40", "")}),
    ("a price of zero", "bad_price", {"alba": changed(ALBA, "HX-1001", "76,90", "0,00")}),
    ("a word", "unreadable_number", {"alba": changed(ALBA, "HX-1001", "84,15", "on request")}),
    ("expired yesterday", "expired_price",
     {"alba": changed(ALBA, "HX-1001", "31.12.2026", "15.11.2026")}),
    ("not valid yet", "future_price",
     {"alba": changed(ALBA, "HX-1001", "01.10.2026", "17.11.2026")}),
    ("no such day", "unreadable_date",
     {"alba": changed(ALBA, "HX-1001", "31.12.2026", "31.02.2027")}),
    ("an unknown currency", "unknown_currency", {"alba": changed(ALBA, "HX-1001", "EUR", "ZZZ")}),
    ("more costs more each", "rising_price",
     {"alba": changed(ALBA, "HX-1001", "76,90", "99,90")}),
    ("listed twice", "listed_twice", {"alba": ALBA + ALBA.splitlines()[3] + "\n"}),
    ("a row cut short", "short_row", {"alba": changed(ALBA, "HX-1001", ";8;50", "")}),
]  # fmt: skip


@pytest.mark.parametrize(("code", "files"), [w[1:] for w in WRONG], ids=[w[0] for w in WRONG])
def test_a_wrong_row_leaves_its_line_open(code: str, files: dict[str, str], tmp_path: Path) -> None:
    tools = with_files(tmp_path, **files)
    [item] = open_items(tools)
    assert (item["code"], item["blocking"]) == (code, True)
    assert item["line"] in (10, 50)
    assert item["remedy"]
    assert item["source"]["place"].startswith(tuple(files))
    call(tools, "choose_freight", service="recommended")
    refused = call(tools, "write_workbook")
    assert (refused.ok, refused.value) == (
        False,
        {"error": "the case has open items or no freight yet"},
    )
    assert not list(tmp_path.glob("*.xlsx"))


def test_the_day_before_the_price_expires_it_still_holds(tmp_path: Path) -> None:
    text = changed(ALBA, "HX-1001", "31.12.2026", "16.11.2026")
    assert open_items(with_files(tmp_path, alba=text)) == []


def test_a_list_without_its_header_serves_nobody(tmp_path: Path) -> None:
    text = "\n".join(ALBA.splitlines()[3:])
    codes = {item["code"] for item in open_items(with_files(tmp_path, alba=text))}
    assert codes == {"no_header"}


def test_another_supplier_serves_the_line_and_the_problem_stays_on_record(tmp_path: Path) -> None:
    text = changed(CORVO, "GK-2040", "5.60", '"5,60"')
    [item] = open_items(with_files(tmp_path, corvo=text))
    assert (item["code"], item["blocking"], item["line"]) == ("unreadable_number", False, 30)


def test_task_five_names_each_of_five_problems(tmp_path: Path) -> None:
    tools = case("5", tmp_path)
    items = open_items(tools)
    found = {item["line"]: item["code"] for item in items if item["blocking"]}
    assert found == {
        10: "merged_cells",
        20: "unreadable_number",
        30: "unknown_unit",
        40: "negative_number",
        50: "expired_price",
    }


# --- Excel ----------------------------------------------------------------------------


def excel(change: Callable[[Any], None], path: Path) -> list[str]:
    """The codes that a changed price list gives."""
    book = good()
    change(book["Prices"])
    book.save(path)
    agreed = yaml.safe_load((EXAMPLE / "data" / "suppliers.yaml").read_text(encoding="utf-8"))
    _, problems = read_price_list("bering", agreed["bering"], path)
    return [problem.code for problem in problems]


def put(ref: str, value: object) -> Callable[[Any], None]:
    def change(sheet: Any) -> None:
        sheet[ref] = value

    return change


@pytest.mark.parametrize(
    ("change", "codes"),
    [
        (lambda sheet: None, []),
        (lambda sheet: sheet.merge_cells("G5:G6"), ["merged_cells", "merged_cells"]),
        (lambda sheet: sheet.merge_cells("B5:C5"), ["merged_cells"]),
        (lambda sheet: sheet.merge_cells("A1:D1"), []),
        (put("G5", "118,50"), ["unreadable_number"]),
        (put("G5", "118.50"), []),
        (put("G5", -118.5), ["negative_number"]),
        (put("G5", "=H5*1.1"), ["formula"]),
        (put("G5", None), ["unreadable_number"]),
        (put("G5", True), ["unreadable_number"]),
        (put("K5", "soon"), ["unreadable_date"]),
        (put("F5", None), ["no_currency"]),
        (put("B4", "Part"), ["no_header"]),
    ],
)
def test_excel_lists(change: Callable[[Any], None], codes: list[str], tmp_path: Path) -> None:
    assert excel(change, tmp_path / "bering.xlsx") == codes


# --- whatever stands in a price cell ---------------------------------------------------


@given(text=st.text(alphabet="0123456789.,-€ eE+'", max_size=9))
@settings(deadline=None, max_examples=150)
def test_a_price_is_what_the_agreed_format_says_or_a_problem(
    text: str, tmp_path_factory: pytest.TempPathFactory
) -> None:
    path = tmp_path_factory.getbasetemp() / "fuzzed.csv"
    row = ALBA.splitlines()
    row[3] = f"HX-1001;pcs;100;EUR;{text};0,01;0,01;01.10.2026;31.12.2026;8;50"
    path.write_text("\n".join(row), encoding="utf-8")
    agreed = yaml.safe_load((EXAMPLE / "data" / "suppliers.yaml").read_text(encoding="utf-8"))
    prices, problems = read_price_list("alba", agreed["alba"], path)
    mine = [price for price in prices if price.part == "HX-1001"]
    if not mine:
        assert [problem.part for problem in problems] == ["HX-1001"]
        return
    assert mine[0].breaks[0].price == Decimal(text.strip().replace(".", "").replace(",", "."))
    assert "." not in text or "," in text, "thousands only where decimals follow"


def test_a_request_that_cannot_be_read_says_where(tmp_path: Path) -> None:
    tools = case("1", tmp_path)
    path = tmp_path / "request.csv"
    shutil.copyfile(tools.desk.inputs.request, path)
    tools.desk.inputs = replace(tools.desk.inputs, request=path)
    path.write_text(path.read_text().replace("10,HX-1001,12,box", "10,HX-1001,1.200,box"))
    with pytest.raises(UnreadableRequest, match=r"row 7: the quantity `1.200` could be thousands"):
        tools.desk.request()
