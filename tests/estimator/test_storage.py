"""A saved estimator answers bit for bit the same; anything else is refused with the reason."""

import json
import os
import pickle
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from safetensors import safe_open
from safetensors.numpy import load_file, save_file

import deepbf
from deepbf import BayesFactor
from deepbf.estimator.storage import FORMAT, FORMAT_VERSION
from tests.simulators import NORMAL_MEAN, simulate_truth
from tests.untrained import EVERY_INPUT, pilot_data, untrained


@pytest.fixture
def saved(tmp_path: Path) -> Path:
    """An estimator with weights of every kind: batch statistics as well."""
    path = tmp_path / "saved.deepbf"
    untrained("vector", "bnn").save(path)
    return path


@pytest.fixture
def saved_set(tmp_path: Path) -> Path:
    """An estimator with a preparation of several parts."""
    path = tmp_path / "set.deepbf"
    untrained("exchangeable", "deepset").save(path)
    return path


def rewrite(path: Path, change: Callable[[dict[str, str], dict[str, Any], dict[str, Any]], None]) -> None:
    """Change a saved file's metadata, header and arrays in place."""
    with safe_open(path, framework="np") as file:
        metadata = dict(file.metadata())
    arrays = load_file(path)
    header = json.loads(metadata["header"])
    change(metadata, header, arrays)
    if "header" in metadata and metadata["header"][:1] == "{":
        metadata["header"] = json.dumps(header)
    save_file(arrays, path, metadata)


# These take seconds to compile, and are parts of the committees of the same structure.
PARTS = [
    (structure, network)
    for structure in ("series", "image", "nested", "responses")
    for network in ("summary", "deepset", "free")
]
FAST = [one if one[:2] not in PARTS else pytest.param(*one, marks=pytest.mark.slow) for one in EVERY_INPUT]


@pytest.mark.parametrize(("structure", "network", "data_shape"), FAST)
def test_every_network_answers_bit_for_bit_the_same_after_loading(
    structure: str, network: str, data_shape: tuple[int, ...], tmp_path: Path
) -> None:
    estimator = untrained(structure, network, data_shape)
    path = tmp_path / "estimator.deepbf"
    estimator.save(path)
    loaded = deepbf.load(path)
    data = np.concatenate([pilot[:5] for pilot in pilot_data(data_shape)] + [np.full((1, *data_shape), 1e30)])
    assert_array_equal(loaded.log_bf_members(data), estimator.log_bf_members(data))
    assert (loaded.structure, loaded.network) == (structure, network)
    assert loaded.data_shape == data_shape


@pytest.mark.parametrize("estimator", ["normal_mean", "three_means"])
def test_a_trained_estimator_is_saved_with_all_it_knows(
    estimator: str, request: pytest.FixtureRequest, tmp_path: Path
) -> None:
    original: BayesFactor = request.getfixturevalue(estimator)
    path = tmp_path / "estimator.deepbf"
    original.save(str(path))
    loaded = deepbf.load(str(path))
    assert loaded.names == original.names
    assert_array_equal(loaded.prior_probs, original.prior_probs)
    assert repr(loaded) == repr(original)
    data, _ = simulate_truth(NORMAL_MEAN, 100, seed=51)
    assert_array_equal(loaded.log_bf_members(data), original.log_bf_members(data))
    assert loaded.compare(data[0]) == original.compare(data[0])
    assert loaded.compare(data[0]).surprise is not None
    assert len(loaded.record.history) == len(original.record.history)
    for before, after in zip(original.record.history, loaded.record.history, strict=True):
        assert_array_equal(list(after.values()), list(before.values()))
    # A copy of a copy holds the same.
    again = tmp_path / "again.deepbf"
    loaded.save(again)
    first, second = load_file(path), load_file(again)
    assert first.keys() == second.keys()
    for name, array in first.items():
        assert_array_equal(second[name], array)


def test_a_link_is_there_after_loading_too(tmp_path: Path) -> None:
    # The same weights, with and without the link; batch statistics are settled behind it.
    plain, linked = (untrained("vector", "bnn", loss=loss) for loss in ("exponential", "leaky_pop"))
    data = np.concatenate([pilot[:5] for pilot in pilot_data((13,))] + [np.full((1, 13), 1e30)])
    output = plain.log_bf_members(data)
    for estimator, expected in ((plain, output), (linked, output * (1 + np.abs(output)))):
        path = tmp_path / f"{estimator.loss}.deepbf"
        estimator.save(path)
        loaded = deepbf.load(path)
        assert_array_equal(loaded.log_bf_members(data), estimator.log_bf_members(data))
        assert_allclose(loaded.log_bf_members(data), expected, rtol=1e-5)
        assert loaded.loss == estimator.loss
        assert repr(loaded) == repr(estimator)
        assert f"trained by {estimator.loss}" in repr(loaded)


def test_a_file_that_names_no_loss_is_from_before_there_were_others(saved: Path) -> None:
    data = pilot_data((13,))[0][:3]
    before = deepbf.load(saved).log_bf_members(data)
    rewrite(saved, lambda metadata, header, arrays: header.pop("loss"))
    loaded = deepbf.load(saved)
    assert loaded.loss == "cross_entropy"
    assert "trained by cross_entropy" in repr(loaded)
    assert_array_equal(loaded.log_bf_members(data), before)


def test_saving_twice_replaces_the_file(saved: Path) -> None:
    untrained("exchangeable", "fnn").save(saved)
    assert deepbf.load(saved).network == "fnn"
    assert [path.name for path in saved.parent.iterdir()] == ["saved.deepbf"]


def test_the_file_holds_no_code(saved: Path) -> None:
    content = saved.read_bytes()
    with pytest.raises(pickle.UnpicklingError):
        pickle.loads(content)
    length = int.from_bytes(content[:8], "little")
    assert json.loads(content[8 : 8 + length])["__metadata__"]["format"] == FORMAT


@pytest.mark.parametrize("moment", ["writing", "renaming"])
def test_a_crash_while_saving_leaves_the_old_file_whole(
    moment: str, saved: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = saved.read_bytes()

    def write_half(path: Path, content: bytes) -> int:
        with path.open("wb") as file:
            file.write(content[: len(content) // 2])
        raise OSError("no space left on device")

    def fail(*_: Any) -> None:
        raise OSError("no space left on device")

    if moment == "writing":
        monkeypatch.setattr(Path, "write_bytes", write_half)
    else:
        monkeypatch.setattr(os, "replace", fail)
    with pytest.raises(OSError, match="no space left"):
        untrained("exchangeable", "fnn").save(saved)
    monkeypatch.undo()
    assert saved.read_bytes() == before
    assert deepbf.load(saved).network == "bnn"


def test_a_missing_file(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError, match=r"no file .*nowhere\.deepbf"):
        deepbf.load(tmp_path / "nowhere.deepbf")


def test_a_folder(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="is a folder"):
        deepbf.load(tmp_path)


@pytest.mark.parametrize("content", [b"", b"\x00", b"{}", b"y,x\n1,2\n" * 50, bytes(range(256)) * 40, b"\xff" * 64])
def test_a_file_of_something_else(content: bytes, tmp_path: Path) -> None:
    path = tmp_path / "other.bin"
    path.write_bytes(content)
    with pytest.raises(ValueError, match=r"other\.bin is not a saved estimator"):
        deepbf.load(path)


def test_random_bytes(tmp_path: Path) -> None:
    rng = np.random.default_rng(1)
    path = tmp_path / "random.bin"
    for length in (7, 8, 9, 1000):
        path.write_bytes(rng.bytes(length))
        with pytest.raises(ValueError, match=r"random\.bin is not a saved estimator"):
            deepbf.load(path)


@pytest.mark.parametrize("share", [0.001, 0.01, 0.1, 0.5, 0.9, 0.999, 1.0])
def test_a_truncated_file(share: float, saved: Path) -> None:
    content = saved.read_bytes()
    saved.write_bytes(content[: int(share * len(content)) - (share == 1.0)])
    with pytest.raises(ValueError, match=r"saved\.deepbf is not a saved estimator, or is cut short"):
        deepbf.load(saved)


def test_a_file_with_more_at_its_end(saved: Path) -> None:
    saved.write_bytes(saved.read_bytes() + b"more")
    with pytest.raises(ValueError, match=r"saved\.deepbf"):
        deepbf.load(saved)


@pytest.mark.parametrize("metadata", [None, {"format": "pt"}])
def test_tensors_of_something_else(metadata: dict[str, str] | None, tmp_path: Path) -> None:
    path = tmp_path / "model.safetensors"
    save_file({"weight": np.zeros(3)}, path, metadata)
    with pytest.raises(ValueError, match="holds tensors, but not a saved estimator"):
        deepbf.load(path)


def test_a_file_of_a_newer_version(saved: Path) -> None:
    newer = str(FORMAT_VERSION + 1)
    rewrite(saved, lambda metadata, header, arrays: metadata.update(format_version=newer, deepbf_version="9.9"))
    with pytest.raises(ValueError, match=r"written by a newer deepbf \(9\.9.*Upgrade deepbf"):
        deepbf.load(saved)


DAMAGED_METADATA: dict[str, Callable[[dict[str, str]], Any]] = {
    "no header": lambda metadata: metadata.pop("header"),
    "header cut short": lambda metadata: metadata.update(header="not" + metadata["header"][:100]),
    "header a list": lambda metadata: metadata.update(header="[1, 2]"),
    "version in words": lambda metadata: metadata.update(format_version="two"),
}


@pytest.mark.parametrize("case", DAMAGED_METADATA)
def test_damaged_metadata(case: str, saved: Path) -> None:
    rewrite(saved, lambda metadata, header, arrays: DAMAGED_METADATA[case](metadata))
    with pytest.raises(ValueError, match=r"saved\.deepbf.*damaged"):
        deepbf.load(saved)


DAMAGED_HEADERS: dict[str, Callable[[dict[str, Any]], Any]] = {
    "unknown structure": lambda header: header.update(structure="spiral"),
    "unknown network": lambda header: header.update(network="transformer"),
    "unknown loss": lambda header: header.update(loss="hinge"),
    "loss with a link that the weights do not have": lambda header: header.update(loss="leaky_pop"),
    "one name too many": lambda header: header["names"].append("third"),
    "one member too many": lambda header: header.update(num_members=3),
    "members in words": lambda header: header.update(num_members="two"),
    "prior of the wrong length": lambda header: header.update(prior_probs=[1.0]),
    "prior that is none": lambda header: header.update(prior_probs=[2.0, -1.0]),
    "other data shape": lambda header: header.update(data_shape=[14]),
    "layout that does not exist": lambda header: header["layout"].update(width=3),
    "preparation that runs code": lambda header: header["preparation"].update(kind="os.system"),
    "preparation missing": lambda header: header.update(preparation=None),
    "preparation a list": lambda header: header.update(preparation=["SquashedVector"]),
    "record of something else": lambda header: header.update(record={"winner": "me"}),
    "record missing": lambda header: header.update(record=None),
}


@pytest.mark.parametrize("case", DAMAGED_HEADERS)
def test_a_damaged_header(case: str, saved: Path) -> None:
    rewrite(saved, lambda metadata, header, arrays: DAMAGED_HEADERS[case](header))
    with pytest.raises(ValueError, match=r"saved\.deepbf.*damaged"):
        deepbf.load(saved)


def test_a_header_without_one_of_its_entries(saved: Path) -> None:
    content = saved.read_bytes()
    with safe_open(saved, framework="np") as file:
        # Files from before these were written can still be read.
        later = ("has_reference", "num_obs", "loss", "has_typicality", "any_order", "spread")
        entries = [name for name in json.loads(file.metadata()["header"]) if name not in later]
    assert len(entries) > 5
    for entry in entries:
        saved.write_bytes(content)
        rewrite(saved, lambda metadata, header, arrays, entry=entry: header.pop(entry))
        with pytest.raises(ValueError, match=r"saved\.deepbf.*damaged"):
            deepbf.load(saved)


def not_refused(path: Path, damage: Callable[[dict[str, Any], str], Any]) -> list[str]:
    """Return the arrays whose damage goes unnoticed."""
    content = path.read_bytes()
    unnoticed = []
    for name in load_file(path):
        path.write_bytes(content)
        rewrite(path, lambda metadata, header, arrays, name=name: damage(arrays, name))
        try:
            deepbf.load(path)
            unnoticed.append(name)
        except ValueError as error:
            if "damaged" not in str(error) or path.name not in str(error):
                unnoticed.append(f"{name}: {error}")
    return unnoticed


@pytest.mark.parametrize("which", ["saved", "saved_set"])
def test_no_array_may_be_missing(which: str, request: pytest.FixtureRequest) -> None:
    assert not_refused(request.getfixturevalue(which), lambda arrays, name: arrays.pop(name)) == []


def lengthen(arrays: dict[str, Any], name: str) -> None:
    array = np.atleast_1d(arrays[name])
    arrays[name] = np.concatenate([array, array[:1] if len(array) else np.zeros(1, array.dtype)])


@pytest.mark.parametrize("which", ["saved", "saved_set"])
def test_no_array_may_have_the_wrong_shape(which: str, request: pytest.FixtureRequest) -> None:
    assert not_refused(request.getfixturevalue(which), lengthen) == []


def test_saving_into_a_folder_that_is_not_there_says_which(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError, match="nowhere"):
        untrained("vector", "fnn").save(tmp_path / "nowhere" / "estimator.deepbf")
