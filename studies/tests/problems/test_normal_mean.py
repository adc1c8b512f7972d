"""Three means of normal values: closed forms against dense normal densities."""

from typing import Any

import numpy as np
from numpy.testing import assert_allclose
from scipy import stats

from deepbf_studies import problems
from deepbf_studies.problems.normal_mean import normal_mean_log_evidence


def test_evidences_agree_with_dense_normal_densities() -> None:
    study = problems.load("normal-mean", num_obs=6)
    covariance: Any = np.eye(6) + 1.0
    for model in study.models:
        data = model.simulate(5, seed=1).data
        expected = [
            stats.multivariate_normal.logpdf(data, np.zeros(6), covariance),
            stats.norm.logpdf(data).sum(axis=1),
            stats.norm.logpdf(data, 0.5).sum(axis=1),
        ]
        evidences = normal_mean_log_evidence(data)
        assert_allclose(evidences, np.stack(expected, axis=1), rtol=0, atol=1e-10)
        assert_allclose(study.exact_log_bf(data), evidences[:, 0] - evidences[:, 1], rtol=0, atol=1e-10)
