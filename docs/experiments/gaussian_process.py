#!/usr/bin/env python3
"""What another kind of regression makes of a model's errors: a Gaussian process over sets.

Usage: gaussian_process.py KNOWN.jsonl [TEST.jsonl] [--samples COUNT] [--draws COUNT]

The files are what `neuroshard model test MODEL COSTS ... --samples FILE` writes. COUNT samples of
the first file are drawn at random, or all are taken; the process learns by how much they cost more
or less than the model says, and the model times what it expects is tested on the second file, or on
the rest of the first. Errors are printed as `model test` has them, and without the median of
predicted over measured, which is a state of the machine.
"""

import argparse
import gzip
import json
import sys
from pathlib import Path

import numpy as np

FEWEST_FOR_TEST = 30
MOST_FOR_LIKELIHOOD = 400
# Standard deviations beyond which a feature counts no further.
CLIP = 4.0
# Log-scales of the kernel's parts and its length; each is searched from coarse to fine.
STEPS = (1.0, 0.5, 0.25)
ROUNDS = 3
# Two measurements of a set differ by more than this on each machine.
LEAST_NOISE = 0.03
FIRST_NOISE = (0.06, 0.18)


def features_of(header: dict, sample: dict, predicted_ms: float) -> list[float]:
    """Of one set: sizes, shapes and reuse, those of pieces weighted by the bytes that they move."""
    batch = header["batch_size"]
    rows = []
    for number, columns, *share in sample["shards"]:
        table = header["tables"][number]
        part = share[0] if share else 1.0
        lookups = batch * table["pooling_factor"] * part * table.get("num_features", 1)
        num_rows = max(1.0, table["num_embeddings"] * part)
        known = table.get("distinct_rows", 0.0) * part
        distinct = min(num_rows, known if known > 0.0 else lookups, max(lookups, 1e-3))
        element = 2.0 if table.get("data_type") == "fp16" else 4.0
        rows.append(
            [
                lookups * columns * element,
                distinct * columns * element,
                batch * columns * 4.0,
                lookups,
                num_rows,
                columns,
                table.get("hottest_row_share", 0.0),
                element == 2.0,
                num_rows * columns * element,
            ]
        )
    pieces = np.array(rows)
    weights = pieces[:, 0] + 2.0 * pieces[:, 1] + pieces[:, 2]
    weights = weights / weights.sum()
    read, updated, outputs, lookups, num_rows, columns, hottest, is_fp16, table_bytes = pieces.T
    log_columns = np.log(columns)
    mean_columns = weights @ log_columns
    return [
        np.log(predicted_ms),
        np.log(len(pieces)),
        np.log(batch),
        float(header["optimizer"] == "rowwise_adagrad"),
        weights @ is_fp16,
        np.log(read.sum() + 1.0),
        np.log(updated.sum() + 1.0),
        np.log(outputs.sum()),
        np.log(lookups.sum() + 1.0),
        np.log(table_bytes.sum()),
        weights @ np.log((updated + 1e-3) / (read + 1e-3)),
        weights @ np.log((lookups + 1e-3) / batch),
        weights @ np.log(num_rows),
        mean_columns,
        np.sqrt(max(0.0, weights @ log_columns**2 - mean_columns**2)),
        np.log(columns.max()),
        np.log(columns.min()),
        weights @ np.sqrt(hottest),
        weights @ np.log(table_bytes),
    ]


def load(path: Path) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Features, predicted and measured costs [ms] of the samples that `model test` wrote."""
    wanted: dict[str, dict[int, tuple[float, float]]] = {}
    for line in path.read_text().splitlines():
        sample = json.loads(line)
        costs = (sample["predicted_ms"], sample["measured_ms"])
        wanted.setdefault(sample["file"], {})[sample["index"]] = costs
    features, predicted, measured = [], [], []
    for file, samples in wanted.items():
        opened = gzip.open(file, "rt") if file.endswith(".gz") else open(file)
        with opened as lines:
            header = json.loads(next(lines))
            for line in lines:
                sample = json.loads(line)
                if sample["index"] not in samples:
                    continue
                predicted_ms, measured_ms = samples[sample["index"]]
                features.append(features_of(header, sample, predicted_ms))
                predicted.append(predicted_ms)
                measured.append(measured_ms)
    return np.array(features), np.array(predicted), np.array(measured)


class Process:
    """A constant, a linear part, and Matern's kernel of 5/2 with one length for all features."""

    def __init__(self, features: np.ndarray, errors: np.ndarray) -> None:
        self.features = features
        self.errors = errors
        count = features.shape[1]
        few = slice(0, MOST_FOR_LIKELIHOOD)
        fits = [
            self._fitted(
                # Length, deviation of the kernel, of each linear weight, of the noise; that of the
                # constant is 1.
                np.log([np.sqrt(count), 0.2, 0.1 / np.sqrt(count), noise]),
                features[few],
                errors[few],
            )
            for noise in FIRST_NOISE
        ]
        self.scales = min(fits, key=lambda fit: fit[0])[1]
        covariance = self._kernel(self.scales, features, features)
        covariance[np.diag_indices_from(covariance)] += np.exp(2.0 * self.scales[3])
        self.weights = np.linalg.solve(covariance, errors)

    @classmethod
    def _fitted(
        cls, scales: np.ndarray, features: np.ndarray, errors: np.ndarray
    ) -> tuple[float, np.ndarray]:
        """The misfit and scales that a search by coordinates from these ones ends with."""
        misfit = cls._misfit(scales, features, errors)
        for step in STEPS:
            for _ in range(ROUNDS):
                for number in range(len(scales)):
                    for change in (-step, step):
                        changed = scales.copy()
                        changed[number] += change
                        changed[3] = max(changed[3], np.log(LEAST_NOISE))
                        found = cls._misfit(changed, features, errors)
                        if found < misfit:
                            misfit, scales = found, changed
        return misfit, scales

    @property
    def noise(self) -> float:
        """Standard deviation of the logarithm of a cost that no feature tells, by likelihood."""
        return float(np.exp(self.scales[3]))

    def expected(self, features: np.ndarray) -> np.ndarray:
        return self._kernel(self.scales, features, self.features) @ self.weights

    @staticmethod
    def _kernel(scales: np.ndarray, left: np.ndarray, right: np.ndarray) -> np.ndarray:
        product = left @ right.T
        squares = (left**2).sum(1)[:, None] + (right**2).sum(1)[None, :] - 2.0 * product
        r = np.sqrt(5.0 * np.maximum(squares, 0.0)) / np.exp(scales[0])
        matern = np.exp(2.0 * scales[1]) * (1.0 + r + r * r / 3.0) * np.exp(-r)
        return matern + np.exp(2.0 * scales[2]) * product + 1.0

    @classmethod
    def _misfit(cls, scales: np.ndarray, features: np.ndarray, errors: np.ndarray) -> float:
        """The negative logarithm of the likelihood, but for a constant."""
        covariance = cls._kernel(scales, features, features)
        covariance[np.diag_indices_from(covariance)] += np.exp(2.0 * scales[3])
        try:
            root = np.linalg.cholesky(covariance)
        except np.linalg.LinAlgError:
            return np.inf
        whitened = np.linalg.solve(root, errors)
        return float(0.5 * whitened @ whitened + np.log(np.diag(root)).sum())


def line_of(name: str, predicted: np.ndarray, measured: np.ndarray) -> str:
    ratio = predicted / measured
    error = np.abs(ratio - 1.0)
    unbiased = np.abs(ratio / np.median(ratio) - 1.0)
    worst = max(ratio.max(), 1.0 / ratio.min())
    return (
        f"{name:<22}{len(ratio):>6}{error.mean():>8.1%}{np.median(error):>8.1%}"
        f"{np.quantile(error, 0.95):>8.1%}{worst:>7.2f}x"
        f"{np.median(unbiased):>12.1%}{np.quantile(unbiased, 0.95):>8.1%}"
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("known", type=Path)
    parser.add_argument("test", type=Path, nargs="?")
    parser.add_argument("--samples", type=int, help="default: all, and one draw")
    parser.add_argument("--draws", type=int, default=4)
    options = parser.parse_args()
    features, predicted, measured = load(options.known)
    tested = load(options.test) if options.test else None
    if options.samples is None:
        options.samples, options.draws = len(features), 1
    most = len(features) - (0 if tested else FEWEST_FOR_TEST)
    if not 2 <= options.samples <= most:
        sys.exit(f"--samples: expected 2 to {most}, got {options.samples}")
    print(f"{'':<22}{'tested':>6}{'MAPE':>8}{'median':>8}{'95%':>8}{'worst':>8}", end="")
    print(f"{'no bias':>12}{'95%':>8}   noise")
    for draw in range(options.draws):
        order = np.random.default_rng(draw).permutation(len(features))
        known, rest = order[: options.samples], order[options.samples :]
        on, says, costs = tested or (features[rest], predicted[rest], measured[rest])
        mean, scale = features[known].mean(0), features[known].std(0) + 1e-3
        scaled = np.clip((features[known] - mean) / scale, -CLIP, CLIP)
        process = Process(scaled, np.log(measured[known] / predicted[known]))
        expected = process.expected(np.clip((on - mean) / scale, -CLIP, CLIP))
        print(line_of(f"the model ({draw})", says, costs))
        line = line_of("with the process", says * np.exp(expected), costs)
        print(f"{line}   {process.noise:.1%}")


if __name__ == "__main__":
    main()
