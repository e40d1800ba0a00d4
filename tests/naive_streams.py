"""The posterior of a living model by textbook formulas, from its structure and the rows it remembers."""

from __future__ import annotations

import numpy as np
from scipy.special import logsumexp

from spngp.network import Box, Leaf, Split, Sum
from spngp.streaming.freezing import bare_network


class Naive:
    """Evidence, weights, and mean and variance at rows, nothing shared and nothing kept."""

    def __init__(self, living):
        self.living, self.prior = living, bare_network(living)
        log = living.log
        self.W, self.Z, self.numbers = log.W.values, log.Z.values, log.numbers.values
        self.regions = {region.box: region for region in living.regions}

    def noise(self, leaf, rows, own):
        usual = leaf.gp.noise_variance * self.factors(leaf, self.W[rows])
        tied = (leaf.output, leaf.gp.noise_variance) in self.living.tied_noise and leaf.gp.noise_profile is None
        kinds = self.living.noise_kinds
        kind = next(kind for kind in kinds if kind in ((leaf.output, leaf.label), (leaf.output, "")))
        stamped = self.living.log.noise.values[rows, kinds.index(kind)]
        noise = np.where(own | tied | (leaf.gp.noise_variance == 0.0), usual, stamped)
        doubts = [self.living.doubts.get((int(self.numbers[i]), leaf.output), 0.0) for i in rows]
        known = self.living.log.known
        return np.maximum(noise, doubts) + (0.0 if known is None else known.values[rows, leaf.output])

    def factors(self, leaf, W):
        """How the noise of a leaf changes with the inputs, bump by bump."""
        profile = leaf.gp.noise_profile
        if profile is None:
            return np.ones(len(W))
        found = []
        for w in W:
            g = profile.constant
            for axis, centre, length, height in zip(
                profile.axes, profile.centres, profile.length_scales, profile.coefficients, strict=True
            ):
                g += height * np.exp(-((w[axis] - centre) ** 2) / (2 * length**2))
            found.append(min(max(np.exp(g), profile.least), profile.most))
        return np.array(found)

    def observed(self, leaf, inside):
        return np.flatnonzero(inside & ~np.isnan(self.Z[:, leaf.output]))

    def log_evidence(self, node, box=Box.EVERYWHERE):
        if isinstance(node, Leaf):
            rows = self.observed(node, box.contains(self.W))
            if not rows.size:
                return 0.0
            C = node.gp.kernel.gram(self.W[rows]) + np.diag(self.noise(node, rows, np.ones(rows.size, dtype=bool)))
            y = self.Z[rows, node.output]
            return float(-0.5 * y @ np.linalg.solve(C, y) - 0.5 * np.linalg.slogdet(2 * np.pi * C)[1])
        parts = [self.log_evidence(c, b) for c, b in zip(node.children, node.child_boxes(box), strict=True)]
        return float(logsumexp(node.log_weights + np.array(parts))) if isinstance(node, Sum) else sum(parts)

    def components(self, x):
        """(output, weight, mean, latent variance) of every leaf that x reaches, in the units of learning."""
        weights = {}
        self.walk(x, self.prior, Box.EVERYWHERE, 1.0, weights)
        return [self.predicted(x, leaf, box, weight) for (leaf, box), weight in weights.items()]

    def walk(self, x, node, box, weight, weights):
        """Add up the weights of all ways to each leaf."""
        if isinstance(node, Leaf):
            weights[node, box] = weights.get((node, box), 0.0) + weight
            return
        children = list(zip(node.children, node.child_boxes(box), strict=True))
        if isinstance(node, Split):
            children = [(c, b) for c, b in children if b.contains(x[np.newaxis])[0]]
        shares = np.ones(len(children))
        if isinstance(node, Sum):
            joint = node.log_weights + np.array([self.log_evidence(c, b) for c, b in children])
            shares = np.exp(joint - logsumexp(joint))
        for (child, inside), share in zip(children, shares, strict=True):
            self.walk(x, child, inside, weight * share, weights)

    def predicted(self, x, leaf, box, weight):
        own = box.contains(self.W)
        region = self.regions[box]
        seen = own.copy()
        if weight >= 0.01:
            seen[region.reach.sees(box, self.W, self.living.base.scales)] = True
        rows = self.observed(leaf, seen)
        kernel = leaf.gp.kernel
        mean, variance = 0.0, float(kernel.gram(x[np.newaxis])[0, 0])
        if rows.size:
            C = kernel.gram(self.W[rows]) + np.diag(self.noise(leaf, rows, own[rows]))
            k = kernel.covariances(self.W[rows], x[np.newaxis])[:, 0]
            mean, variance = k @ np.linalg.solve(C, self.Z[rows, leaf.output]), variance - k @ np.linalg.solve(C, k)
        noise = leaf.gp.noise_variance * self.factors(leaf, x[np.newaxis])[0]
        return leaf.output, weight, mean, variance + noise

    def moments(self, X):
        """Mean and variance of a new observation with Gaussian noise, (n, p), in the units of the user."""
        inputs, outputs = self.living.base.units.inputs, self.living.base.units.outputs
        mean, variance = np.zeros((len(X), len(outputs.scale))), np.zeros((len(X), len(outputs.scale)))
        for i, x in enumerate(inputs.apply(X)):
            parts = self.components(x)
            for k in range(len(outputs.scale)):
                w, m, v = np.array([part[1:] for part in parts if part[0] == k]).T
                mean[i, k] = w @ m
                variance[i, k] = w @ (v + (m - mean[i, k]) ** 2)
        return outputs.invert(mean), variance * outputs.scale**2

    def total(self):
        """Log evidence in the units of the user."""
        observed = (~np.isnan(self.Z)).sum(axis=0)
        return (
            self.living.log_prior
            + self.log_evidence(self.prior)
            - float(observed @ np.log(self.living.base.units.outputs.scale))
        )
