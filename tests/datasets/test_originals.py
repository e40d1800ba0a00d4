"""Original files, shaped as home pages publish them: read from a server of our own, checked by what they hold."""

import gzip
import io
import threading
import zipfile
from dataclasses import replace
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import numpy as np
import pytest

from spngp import datasets
from spngp.datasets.formats import read_original
from spngp.datasets.originals import ORIGINALS, Original, values_checksum
from spngp.datasets.registry import Entry, File

RNG = np.random.default_rng(0)
TABLE = np.round(np.column_stack([RNG.normal(size=(40, 2)), RNG.integers(0, 9, 40)]), 4)
ENTRY = Entry("waves", "Waves", 40, 2, 1, "nowhere", (File("waves.csv.gz", 40, "0" * 64),))


def text(separator, header="", end="\n", form="{:g}"):
    lines = [separator.join(form.format(value) for value in row) for row in TABLE]
    return (header + end.join(lines) + end).encode()


def zipped(**files):
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in files.items():
            archive.writestr(name, content)
    return packed.getvalue()


def workbook(rows):
    """A spreadsheet as Excel writes them: shared strings in the header, empty rows at the end, more than one sheet."""
    cells = ['<row r="1">' + "".join(f'<c r="{c}1" t="s"><v>{i}</v></c>' for i, c in enumerate("ABC")) + "</row>"]
    for i, row in enumerate(rows, 2):
        inner = "".join(f'<c r="{c}{i}"><v>{value!r}</v></c>' for c, value in zip("ABC", row, strict=True))
        cells.append(f'<row r="{i}">{inner}</row>')
    cells += [f'<row r="{i}"><c r="A{i}" s="1"/><c r="B{i}" s="1"/></row>' for i in range(100, 110)]
    space = 'xmlns="http://schemas.openxmlformats.org/spreadsheetml/2006/main"'
    sheet = f'<?xml version="1.0"?><worksheet {space}><sheetData>{"".join(cells)}</sheetData></worksheet>'
    other = f'<?xml version="1.0"?><worksheet {space}><sheetData/></worksheet>'
    return zipped(
        **{
            "[Content_Types].xml": "<Types/>",
            "xl/workbook.xml": "<workbook/>",
            "xl/worksheets/sheet10.xml": other,
            "xl/worksheets/sheet1.xml": sheet,
            "xl/sharedStrings.xml": "<sst/>",
        }
    )


FORMS = {
    "blanks.data": (text(" ") + b"\n  \n", ""),
    "exponents.txt": (text("   ", form="{:.7e}"), ""),
    "tabs.dat": (text(" \t"), ""),
    "header.csv": (text(";", header='"fixed acidity";"pH";"quality"\n'), ""),
    "windows.csv": (b"\xef\xbb\xbf" + text(",", header="a,b,y\r\n", end="\r\n"), ""),
    "data.csv.gz": (gzip.compress(text(",")), ""),
    "table.xlsx": (workbook(TABLE.tolist()), ""),
    "text.zip": (zipped(**{"readme.txt": "words", "waves/data.txt": text(" ")}), "data.txt"),
    "book.zip": (zipped(**{"waves.xlsx": workbook(TABLE.tolist()), "a.ods": b"x"}), "waves.xlsx"),
}


@pytest.fixture
def server(tmp_path, monkeypatch):
    """A web server with the forms, and some that are none of them; a data folder and a cache of the test's own."""
    monkeypatch.setenv("SPNGP_DATA", str(tmp_path / "data"))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.delenv("SPNGP_DATA_URL", raising=False)
    monkeypatch.setitem(datasets.REGISTRY, "waves", ENTRY)
    bodies = {name: body for name, (body, _) in FORMS.items()}
    bodies["page.html"] = b"<html>moved</html>"
    bodies["other.data"] = text(" ").replace(b"0", b"1", 1)

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self):
            name = self.path.rpartition("/")[2]
            if name not in bodies:
                self.send_error(404)
                return
            body = bodies[name]
            self.send_response(200)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body[: len(body) // 2] if "cut" in self.path else body)

        def log_message(self, *arguments):
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as running:
        threading.Thread(target=running.serve_forever, args=(0.01,), daemon=True).start()
        yield f"http://127.0.0.1:{running.server_port}"
        running.shutdown()


def original(*addresses, **more):
    return Original(values_checksum(TABLE), ("a", "b", "y"), tuple(addresses), **more)


@pytest.mark.parametrize("name", FORMS)
def test_every_form_is_read_and_kept_as_csv(server, tmp_path, monkeypatch, name):
    monkeypatch.setitem(ORIGINALS, "waves", original((f"{server}/{name}", FORMS[name][1])))
    path = tmp_path / "cache" / "spngp" / "waves.converted.csv"
    assert datasets.status(ENTRY).where == "missing"
    assert datasets.fetch("waves") == [path]
    assert datasets.status(ENTRY) == datasets.Status(ENTRY, "cache", (path,))
    monkeypatch.setitem(ORIGINALS, "waves", original())  # no address any more: nothing is asked
    data = datasets.load("waves")
    np.testing.assert_array_equal(np.hstack([data.X, data.Y]), TABLE)
    assert (data.inputs, data.outputs) == (("a", "b"), ("y",))


def test_addresses_are_tried_in_turn_and_rounding_is_ours(server, monkeypatch):
    rough = replace(original(), values_sha256=values_checksum(np.round(TABLE, 2)), decimals=2)
    tried = ((f"{server}/page.html", ""), (f"{server}/gone.zip", "a"), (f"{server}/text.zip", "data.txt"))
    monkeypatch.setitem(ORIGINALS, "waves", replace(rough, addresses=tried))
    np.testing.assert_array_equal(datasets.load("waves").X, np.round(TABLE[:, :2], 2))


@pytest.mark.parametrize(
    ("name", "member", "problem"),
    [
        ("page.html", "", "it holds no numbers"),
        ("other.data", "", "its 40 rows of 3 numbers are not those expected"),
        ("gone.data", "", "HTTP 404 Not Found"),
        ("text.zip", "moved.txt", r"must have one file 'moved\.txt', it has readme\.txt, waves/data\.txt"),
        ("cut/blanks.data", "", r"only \d+ of \d+ bytes came"),
        ("cut/book.zip", "waves.xlsx", r"only [\d,]+ of [\d,]+ bytes came"),
    ],
)
def test_what_is_not_the_table_is_told_and_leaves_nothing_behind(server, tmp_path, monkeypatch, name, member, problem):
    monkeypatch.setitem(ORIGINALS, "waves", original((f"{server}/{name}", member)))
    with pytest.raises(ConnectionError, match=rf"could not get waves\.csv\.gz in its original form \(.*{problem}"):
        datasets.load("waves")
    assert not (tmp_path / "cache").exists()


def test_a_converted_file_that_was_changed_is_reported(server, tmp_path, monkeypatch):
    monkeypatch.setitem(ORIGINALS, "waves", original((f"{server}/blanks.data", "")))
    (path,) = datasets.fetch("waves")
    path.write_text(path.read_text().replace("1", "2", 1))
    assert not datasets.status(ENTRY).intact
    with pytest.raises(ValueError, match=r"waves\.converted\.csv does not hold the numbers of waves\.csv\.gz"):
        datasets.load("waves")


@pytest.mark.parametrize(
    ("content", "problem"),
    [
        (b"1 2\n3\n", "its rows have between 1 and 2 numbers"),
        (b"1 2\n3 four\n", "line 2 must hold numbers, got '3 four'"),
        (b"", "it holds no numbers"),
        (b"\xff\xfe\x00", "it cannot be unpacked"),
        (gzip.compress(b"1 2\n")[:-6], "it cannot be unpacked"),
        (zipped(**{"xl/workbook.xml": "<workbook/>"}), "the workbook has no sheet"),
        (zipped(**{"xl/workbook.xml": "", "xl/worksheets/sheet1.xml": "<a"}), "the spreadsheet cannot be read"),
    ],
    ids=["ragged", "words", "empty", "bytes", "cut", "no sheet", "broken sheet"],  # packed files hold the time of day
)
def test_what_cannot_be_read_is_told(content, problem):
    with pytest.raises(ValueError, match=problem):
        read_original(content)


def test_an_archive_that_unpacks_without_end_is_refused(monkeypatch):
    monkeypatch.setattr("spngp.datasets.formats._LARGEST", 1000)
    with pytest.raises(ValueError, match="it unpacks to more than 1,000 bytes"):
        read_original(gzip.compress(b"1 2\n" * 1000))


def test_every_set_that_is_no_file_of_ours_has_a_public_address():
    for entry in datasets.REGISTRY.values():
        for file in entry.files:
            assert entry.name in ORIGINALS or all(source.url for source in file.sources or (file,))
    for name, found in ORIGINALS.items():
        entry = datasets.find(name)
        assert len(found.columns) == entry.inputs + entry.outputs
        assert found.addresses
        assert all(url.startswith("https://") for url, _ in found.addresses)


@pytest.mark.parametrize("name", ORIGINALS)
def test_installed_tables_hold_what_their_originals_must_hold(name):
    if not datasets.status(datasets.find(name)).available:
        pytest.skip(f"{name} is not on this machine")
    data = datasets.load(name)
    assert values_checksum(np.hstack([data.X, data.Y])) == ORIGINALS[name].values_sha256
    assert (*data.inputs, *data.outputs) == ORIGINALS[name].columns
