"""The bar shows what training does, and nothing when not wanted."""

import pytest

from deepbf.training.console import ProgressBar


@pytest.mark.parametrize("wanted", [True, False])
def test_the_bar_is_there_when_wanted(wanted: bool, capsys: pytest.CaptureFixture[str]) -> None:
    with ProgressBar(wanted) as bar:
        bar.show(0.5, loss=0.25, held_out=None, num_simulations=2000, seconds_left=30.0)
        bar.show(1.5, loss=0.125, held_out=0.31, num_simulations=123_000, seconds_left=-1.0)
    shown = capsys.readouterr().out
    if wanted:
        for words in ("training", "100%", "0.1250", "0.31", "123k", "0 s left"):
            assert words in shown
    else:
        assert shown.strip() == ""
