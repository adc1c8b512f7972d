"""Any scikit-learn classifier, trained to tell the observed data from predictions."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone

Floats = NDArray[np.float64]
LARGEST_SEED = 2**31


def check_classifier(classifier: Any) -> None:
    """Raise unless the classifier can be copied, trained, and asked for probabilities."""
    for method in ("get_params", "fit", "predict_proba"):
        if isinstance(classifier, type) or not callable(getattr(classifier, method, None)):
            received = f"the class {classifier.__name__}" if isinstance(classifier, type) else repr(classifier)
            raise TypeError(
                f"classifier must be a scikit-learn classifier with {method}; received {received}. Pass, for example, "
                "sklearn.ensemble.RandomForestClassifier()."
            )


class ClassifierFit:
    """Trains a copy of a classifier on each problem, and returns its probabilities at fresh data."""

    def __init__(self, classifier: Any, rng: np.random.Generator) -> None:
        self._classifier = classifier
        self._rng = rng
        # Without a state of its own, a classifier would draw from NumPy's global one, and no seed would repeat it.
        self._open_seeds = [
            name
            for name, value in classifier.get_params(deep=True).items()
            if name.split("__")[-1] == "random_state" and value is None
        ]

    def __call__(self, observed: Floats, training: Floats, fresh: Floats) -> tuple[Floats, int]:
        """Return probabilities of being observed, shape (problems, draws), and that no fit failed to converge."""
        labels = np.repeat([1, 0], [len(observed), training.shape[1]])
        probs = np.empty(fresh.shape[:2])
        for k, (rows, at) in enumerate(zip(training, fresh, strict=True)):
            trained = self._copy().fit(np.concatenate([observed, rows]), labels)
            predicted = np.asarray(trained.predict_proba(at), dtype=np.float64)
            probs[k] = predicted[:, list(trained.classes_).index(1)]
            if not np.isfinite(probs[k]).all():
                raise ValueError(
                    f"classifier {type(trained).__name__} gave probabilities that are not finite in replication {k}; "
                    "scale the data, or pass another classifier."
                )
        return probs, 0

    def _copy(self) -> Any:
        copied: Any = clone(self._classifier)
        return copied.set_params(**{name: int(self._rng.integers(LARGEST_SEED)) for name in self._open_seeds})
