"""Files written before the library was laid out as it is now still load, and answer as they did.

They were saved by the version before `deepbf.layout`, one for each way that data are described: a range of sample
sizes, a series, and data packed beside the values of a hyperparameter.
"""

import json
from pathlib import Path

import numpy as np
import pytest

import deepbf

FILES = Path(__file__).parents[1] / "files"


@pytest.mark.parametrize("name", ["sets-of-any-size", "series", "hyperparameters"])
def test_an_old_file_answers_as_it_did(name: str) -> None:
    kept = json.loads((FILES / f"{name}.json").read_text())
    bf = deepbf.load(FILES / f"{name}.deepbf")
    # Other processors round otherwise.
    np.testing.assert_allclose(bf.log_bf(kept["data"]), kept["log_bf"], rtol=1e-4, atol=1e-4)
    answer = bf.compare(kept["data"][0])
    assert answer.favours == kept["favours"]
    assert answer.error == pytest.approx(kept["error"], rel=1e-2)


def test_an_old_file_knows_its_range_and_its_hyperparameters() -> None:
    sets = deepbf.load(FILES / "sets-of-any-size.deepbf")
    assert sets.num_obs == (2, 12)
    assert sets.path(np.arange(12)).num_obs.tolist() == list(range(2, 13))
    with pytest.raises(ValueError, match="outside the trained range, 2 to 12"):
        sets.log_bf(np.zeros(13))
    hyper = deepbf.load(FILES / "hyperparameters.deepbf")
    assert hyper.values == {"scale": 1.0}
    assert hyper.sensitivity(np.zeros(20)).range[1] < 1.0
