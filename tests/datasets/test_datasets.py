import gzip
import hashlib
import threading
from dataclasses import replace
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import numpy as np
import pytest

from spngp import datasets
from spngp.datasets.originals import ORIGINALS
from spngp.datasets.registry import Entry, File

ROWS = "a,b,y\n" + "".join(f"{i},{i * i},{i / 2}\n" for i in range(2000))
CONTENT = gzip.compress(ROWS.encode(), mtime=0)
SHA = hashlib.sha256(CONTENT).hexdigest()
ENTRY = Entry("squares", "Squares", 2000, 2, 1, "nowhere", (File("squares.csv.gz", 2000, SHA),))


@pytest.fixture
def squares(monkeypatch):
    """A small data set in the registry, as a file that is nowhere yet."""
    monkeypatch.setitem(datasets.REGISTRY, "squares", ENTRY)
    return ENTRY


@pytest.fixture(autouse=True)
def folders(tmp_path, monkeypatch, request):
    """A data folder and a cache of the test's own; those of the machine for tests marked by their name."""
    if "installed" in request.node.name:
        return None
    monkeypatch.setenv("SPNGP_DATA", str(tmp_path / "data"))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.delenv("SPNGP_DATA_URL", raising=False)
    (tmp_path / "data").mkdir()
    return tmp_path / "data", tmp_path / "cache" / "spngp"


@pytest.fixture
def server():
    """A web server on this machine: whole files, one with another content, one that breaks off half-way."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self):
            if "missing" in self.path:
                self.send_error(404)
                return
            body = CONTENT[::-1] if "other" in self.path else CONTENT
            self.send_response(200)
            if "unannounced" not in self.path:
                self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body[: len(body) // 2] if "cut" in self.path else body)

        def log_message(self, *arguments):
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as running:
        threading.Thread(target=running.serve_forever, args=(0.01,), daemon=True).start()
        yield f"http://127.0.0.1:{running.server_port}"
        running.shutdown()


def test_motorcycle_is_silvermans_data():
    data = datasets.load("motorcycle")
    assert data.X.shape == data.Y.shape == (133, 1)
    assert data.X[[0, -1], 0].tolist() == [2.4, 57.6]
    assert data.Y.min() == -134.0
    assert data.Y.max() == 75.0


@pytest.mark.parametrize("name", ["iris", "", None, 3])
def test_an_unknown_data_set_names_the_known_ones(name):
    with pytest.raises(ValueError, match=r"unknown data set .*; known are motorcycle, nonstationary, energy, .*kegg"):
        datasets.load(name)


def test_nonstationary_is_the_published_recipe():
    data = datasets.nonstationary(501, random_state=3)
    x = np.linspace(-100, 200, 501)
    assert np.corrcoef(x, data.X[:, 0])[0, 1] == pytest.approx(1)
    for column in (data.X, data.function):
        assert column.mean() == pytest.approx(0, abs=1e-12)
        assert column.std() == pytest.approx(1)
    shape = data.function[:, 0] * 2.0 - 2.0 * data.function[200, 0]  # proportional to f1, which is 0 in the middle
    assert np.ptp(shape[116:426]) == 0
    assert np.corrcoef(shape[:116], np.sin(-3 + 0.2 * x[:116]))[0, 1] == pytest.approx(1)
    assert np.corrcoef(shape[426:], np.sin(2.8 + 0.2 * x[426:]))[0, 1] == pytest.approx(1)
    peak = np.exp(100 / (20 * np.sqrt(2 * np.pi)))
    assert data.noise_std.max() == pytest.approx(np.sqrt(0.5 * peak), rel=1e-3)
    assert abs(x[data.noise_std[:300, 0].argmax()] + 10) < 1
    residuals = (data.Y - data.function) / data.noise_std
    assert residuals.std() == pytest.approx(1, abs=0.1)
    np.testing.assert_array_equal(data.Y, datasets.nonstationary(501, random_state=3).Y)
    assert (data.Y != datasets.load("nonstationary").Y).any()
    with pytest.raises(ValueError, match="n must be an integer >= 10, got 3"):
        datasets.nonstationary(3)


def test_a_random_split_divides_the_rows_and_keeps_the_truth_beside_them():
    data = datasets.load("nonstationary")
    train, test = data.random_split(0.2, random_state=1)
    assert (len(train), len(test)) == (401, 100)
    np.testing.assert_array_equal(np.sort(np.concatenate([train.X, test.X]), axis=0), data.X)
    row = int(np.flatnonzero(test.X[0] == data.X)[0])
    assert (test.Y[0], test.function[0], test.noise_std[0]) == (data.Y[row], data.function[row], data.noise_std[row])
    assert (data.random_split(0.2, random_state=2)[1].X != test.X).any()
    with pytest.raises(ValueError, match=r"test_share must leave rows on both sides of 501, got 1\.0"):
        data.random_split(1.0)
    with pytest.raises(ValueError, match="'nonstationary' has no split of its own"):
        data.classic_split()


@pytest.mark.parametrize("item", datasets.statuses(), ids=lambda item: item.entry.name)
def test_installed_sets_have_the_sizes_of_the_registry(item):
    if not item.available:
        pytest.skip(f"{item.entry.name} is not on this machine")
    entry, data = item.entry, datasets.load(item.entry.name)
    assert data.X.shape == (entry.rows, entry.inputs)
    assert data.Y.shape == (entry.rows, entry.outputs)
    assert (len(data.inputs), len(data.outputs)) == (entry.inputs, entry.outputs)
    if entry.n_train is not None:
        train, test = data.classic_split()
        assert (len(train), len(test)) == (entry.files[0].rows, entry.files[1].rows)
        np.testing.assert_array_equal(test.X[0], data.X[len(train)])


def test_a_missing_set_says_what_to_put_where(folders, monkeypatch):
    monkeypatch.delitem(ORIGINALS, "airfoil")
    with pytest.raises(FileNotFoundError) as caught:
        datasets.load("airfoil")
    said = str(caught.value)
    for part in (
        *map(str, folders),
        "airfoil.csv.gz",
        "1503 rows of 5 inputs",
        "1 output",
        "archive.ics",
        "SHA-256 0c26",
    ):
        assert part in said
    assert "\n" not in said
    monkeypatch.delenv("SPNGP_DATA")
    with pytest.raises(FileNotFoundError, match=r"or into a folder named by \$SPNGP_DATA"):
        datasets.fetch("airfoil")


def test_the_data_folder_comes_before_the_cache(folders, squares):
    for folder in reversed(folders):
        assert datasets.status(squares).where in ("missing", "cache")
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "squares.csv.gz").write_bytes(CONTENT)
        np.testing.assert_array_equal(datasets.load("squares").X[:, 1], np.arange(2000.0) ** 2)
    assert datasets.status(squares) == datasets.Status(squares, "$SPNGP_DATA", (folders[0] / "squares.csv.gz",))


@pytest.mark.parametrize("damage", [CONTENT[:-7], CONTENT[:500], b"", CONTENT + b"x", ROWS.encode()])
def test_a_damaged_file_is_named_with_both_checksums_and_left_alone(folders, squares, server, damage):
    path = folders[0] / "squares.csv.gz"
    path.write_bytes(damage)
    found = hashlib.sha256(damage).hexdigest()
    for read in (lambda: datasets.load("squares"), lambda: datasets.fetch("squares", mirror=server)):
        with pytest.raises(ValueError, match=f"squares.csv.gz is damaged .* should be {SHA} but is {found}"):
            read()
    assert path.read_bytes() == damage
    assert not datasets.status(squares).available


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (ROWS + "1,2,3\n", r"must have 2000 rows of 3 columns with names, got 2001 rows of 3 columns and 3 names"),
        (ROWS.replace("a,b,y\n", "a,b,c,y\n"), "3 columns and 4 names"),
        ("a,b,y\n", "got 0 rows"),
        ("", "got 0 rows"),
        (ROWS.replace("\n7,49,", "\n7,,"), "must hold numbers"),
        (ROWS.replace("\n7,49,", "\n7,nan,"), "must hold finite numbers, got nan in row 7, column 1"),
        (ROWS.replace("\n7,49,", "\n7,"), "must hold numbers"),
    ],
)
def test_a_conversion_of_ones_own_is_checked_by_its_shape(folders, squares, text, message):
    path = folders[0] / "squares.csv.gz"
    path.write_bytes(gzip.compress(ROWS.encode(), mtime=1))  # the same rows, packed at another time
    np.testing.assert_array_equal(datasets.load("squares", verify=False).Y[:, 0], np.arange(2000) / 2)
    path.write_bytes(gzip.compress(text.encode()))
    with pytest.raises(ValueError, match=message) as caught:
        datasets.load("squares", verify=False)
    assert "squares.csv.gz" in str(caught.value)
    path.write_bytes(CONTENT[:300])
    with pytest.raises(ValueError, match=r"squares\.csv\.gz cannot be read"):
        datasets.load("squares", verify=False)


def test_a_download_goes_to_the_cache_once(folders, squares, server, monkeypatch):
    assert datasets.fetch("squares", mirror=server + "/") == [folders[1] / "squares.csv.gz"]
    monkeypatch.setenv("SPNGP_DATA_URL", f"{server}/missing")  # would fail, but nothing is asked of it
    assert len(datasets.load("squares")) == 2000
    assert datasets.status(squares).where == "cache"
    assert [path.name for path in folders[1].iterdir()] == ["squares.csv.gz"]


def test_a_file_with_an_address_of_its_own_needs_no_mirror(folders, squares, server, monkeypatch):
    with_url = replace(squares, files=(replace(squares.files[0], url=f"{server}/squares.csv.gz"),))
    monkeypatch.setitem(datasets.REGISTRY, "squares", with_url)
    assert len(datasets.load("squares")) == 2000


HALF = hashlib.sha256(CONTENT[: len(CONTENT) // 2]).hexdigest()


@pytest.mark.parametrize(
    ("where", "found"),
    [
        ("other", hashlib.sha256(CONTENT[::-1]).hexdigest()),
        ("cut", "the SHA-256 of what came is"),
        ("cut/unannounced", HALF),
        ("missing", "404 .* nothing came"),
    ],
)
def test_a_failed_download_leaves_nothing_behind(folders, squares, server, monkeypatch, where, found):
    monkeypatch.setenv("SPNGP_DATA_URL", f"{server}/{where}")
    with pytest.raises(ConnectionError, match=rf"could not download squares\.csv\.gz from .*{SHA}.*") as caught:
        datasets.load("squares")
    caught.match(found)
    assert "\n" not in str(caught.value)
    assert not folders[1].exists() or not list(folders[1].iterdir())


def test_kin40k_can_be_read_as_its_home_has_it(folders, monkeypatch):
    """The .asc files of its home, written from our tables: the same bytes by checksum, the same rows when read."""
    monkeypatch.undo()
    if not datasets.status(datasets.find("kin40k")).available:
        pytest.skip("kin40k is not on this machine")
    data = datasets.load("kin40k")
    files = {}
    for part, rows in zip(("train", "test"), data.classic_split(), strict=True):
        for kind, columns in (("data", rows.X), ("labels", rows.Y)):
            lines = ("".join(f"{value:16.7e}" for value in row) for row in columns.tolist())
            files[f"kin40k_{part}_{kind}.asc"] = "".join(f"{line}\n" for line in lines)
    monkeypatch.setenv("SPNGP_DATA", str(folders[0]))
    monkeypatch.setenv("XDG_CACHE_HOME", str(folders[1].parent))
    for name, text in files.items():
        assert datasets.status(datasets.find("kin40k")).where == "missing"
        (folders[0] / name).write_text(text)
    again = datasets.load("kin40k")
    np.testing.assert_array_equal(again.X, data.X)
    np.testing.assert_array_equal(again.Y, data.Y)
    assert (again.inputs, again.outputs, again.n_train) == (data.inputs, data.outputs, data.n_train)
    labels = folders[0] / "kin40k_test_labels.asc"
    labels.write_text(labels.read_text()[:-17])
    with pytest.raises(ValueError, match=r"kin40k_test_labels\.asc is damaged"):
        datasets.load("kin40k")
    with pytest.raises(ValueError, match=r"kin40k_test_labels\.asc must have 30000 rows, got 29999"):
        datasets.load("kin40k", verify=False)
    labels.write_text("one\n")
    with pytest.raises(ValueError, match=r"kin40k_test_labels\.asc must hold numbers separated by blanks"):
        datasets.load("kin40k", verify=False)


def test_sources_are_downloaded_one_by_one(folders, server, monkeypatch):
    """A table whose columns are two files at its home; the server sends the same file twice."""
    source = File("squares.csv.gz", 2000, SHA, f"{server}/squares.csv.gz")
    broken = replace(source, name="other.csv.gz", url=f"{server}/cut/other.csv.gz")
    table = File("table.csv", 2000, "0" * 64, sources=(source, broken))
    monkeypatch.setitem(datasets.REGISTRY, "squares", replace(ENTRY, files=(table,)))
    with pytest.raises(ConnectionError, match=r"could not download other\.csv\.gz"):
        datasets.fetch("squares")
    assert [path.name for path in folders[1].iterdir()] == ["squares.csv.gz"]  # whole, so the next try goes on
    assert datasets.status(datasets.find("squares")).where == "missing"
    mended = replace(table, sources=(source, replace(broken, url=f"{server}/other-name")))
    monkeypatch.setitem(datasets.REGISTRY, "squares", replace(ENTRY, files=(mended,)))
    with pytest.raises(ConnectionError, match="another version"):
        datasets.fetch("squares")
    whole = replace(table, sources=(source, replace(broken, url=f"{server}/again.csv.gz")))
    monkeypatch.setitem(datasets.REGISTRY, "squares", replace(ENTRY, files=(whole,)))
    assert datasets.fetch("squares") == [folders[1] / "squares.csv.gz", folders[1] / "other.csv.gz"]
    assert datasets.status(datasets.find("squares")).available


def test_a_server_that_is_not_there(squares, folders):
    with pytest.raises(ConnectionError, match="nothing came; nothing was written"):
        datasets.fetch("squares", mirror="http://127.0.0.1:9")
    with pytest.raises(ConnectionError, match="could not download"):
        datasets.fetch("squares", mirror="not-an-address")


def test_a_download_never_replaces_a_file(folders, squares, server):
    folders[1].mkdir(parents=True)
    path = folders[1] / "squares.csv.gz"
    path.write_bytes(b"something else")
    with pytest.raises(ValueError, match="it was left as it is"):
        datasets.fetch("squares", mirror=server)
    assert path.read_bytes() == b"something else"
