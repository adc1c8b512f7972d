"""Rows of heat maps share their colours: those of the first panel, with one colour bar a row."""

import numpy as np
import pytest
from matplotlib.collections import PathCollection, QuadMesh

from deepbf import plots

NAMES = ("dependent", "independent")
X = np.linspace(-3, 3, 13)
SADDLE = 2 * np.multiply.outer(X, X)
ROW = plots.HeatMapRow(X, X, {"exact": SADDLE, "estimated": 3 * SADDLE}, NAMES)


def test_a_row_shares_its_colours_and_one_bar() -> None:
    figure = plots.heat_map_grid(
        {"one": ROW, "other": plots.HeatMapRow(X, X, {"exact": X + X[:, None], "estimated": SADDLE}, NAMES)}
    )
    panels, bars = figure.axes[:4], figure.axes[4:]
    assert len(bars) == 2
    meshes = [next(artist for artist in axes.collections if isinstance(artist, QuadMesh)) for axes in panels]
    assert [(mesh.norm.vmin, mesh.norm.vmax) for mesh in meshes] == [(-18, 18), (-18, 18), (-6, 6), (-6, 6)]
    # Beyond the colours of the exact map there is the colour at their end, and no hole.
    estimated = np.asarray(meshes[1].get_array())
    np.testing.assert_array_equal(estimated, np.clip(3 * SADDLE, -18, 18))
    assert [axes.get_title() for axes in panels] == ["exact", "estimated", "", ""]
    assert panels[2].get_ylabel().startswith("other")


def test_marks_outside_the_plane_are_left_out() -> None:
    row = plots.HeatMapRow(X, X, {"exact": SADDLE}, NAMES, points=[[0, 0], [9, 0]], stars={"red": [[1, 2], [2, -7]]})
    figure = plots.heat_map_grid({"one": row}, star_words={"red": "outlier"}, title="Data 1")
    marks = [artist for artist in figure.axes[0].collections if isinstance(artist, PathCollection)]
    assert [np.asarray(artist.get_offsets()).tolist() for artist in marks] == [[[0, 0]], [[1, 2]]]
    [legend] = figure.legends
    assert legend.get_title().get_text() == "Data 1"
    assert [text.get_text() for text in legend.get_texts()][1:] == ["a simulated data set", "outlier"]


def test_bad_rows() -> None:
    with pytest.raises(TypeError, match="rows must map titles to HeatMapRow"):
        plots.heat_map_grid({})
    with pytest.raises(ValueError, match="same panels, at least one; one has exact, estimated, two has exact"):
        plots.heat_map_grid({"one": ROW, "two": plots.HeatMapRow(X, X, {"exact": SADDLE}, NAMES)})
    with pytest.raises(ValueError, match="log_bf must have shape"):
        plots.heat_map_grid({"one": plots.HeatMapRow(X, X, {"exact": SADDLE[1:]}, NAMES)})
