"""Committees by their textbook formulas, in plain loops. Only tests import this module.

Everything is in one set of units: zero-mean GPs with explicit inverses, one test point and one expert at a time.
"""

import math

import numpy as np

from reference import kernel_value


def expert(kernel, noise_variance, X, y, x):
    """Latent posterior mean and variance of one GP at one point."""
    n = len(X)
    C = np.array(
        [[kernel_value(kernel, X[i], X[j]) + (noise_variance if i == j else 0) for j in range(n)] for i in range(n)]
    )
    k = np.array([kernel_value(kernel, X[i], x) for i in range(n)])
    inverse = np.linalg.inv(C)
    return float(k @ inverse @ y), kernel_value(kernel, x, x) - float(k @ inverse @ k)


def poe(predictions, prior_variance):
    precision, weighted = 0.0, 0.0
    for mean, variance in predictions:
        precision += 1 / variance
        weighted += mean / variance
    return weighted / precision, 1 / precision


def gpoe(predictions, prior_variance):
    beta = 1 / len(predictions)
    precision, weighted = 0.0, 0.0
    for mean, variance in predictions:
        precision += beta / variance
        weighted += beta * mean / variance
    return weighted / precision, 1 / precision


def bcm(predictions, prior_variance):
    precision, weighted = (1 - len(predictions)) / prior_variance, 0.0
    for mean, variance in predictions:
        precision += 1 / variance
        weighted += mean / variance
    return weighted / precision, 1 / precision


def rbcm(predictions, prior_variance):
    precision, weighted, betas = 0.0, 0.0, 0.0
    for mean, variance in predictions:
        beta = 0.5 * (math.log(prior_variance) - math.log(variance))
        precision += beta / variance
        weighted += beta * mean / variance
        betas += beta
    precision += (1 - betas) / prior_variance
    return weighted / precision, 1 / precision


RULES = {"PoE": poe, "gPoE": gpoe, "BCM": bcm, "rBCM": rbcm}


def predict(rule, kernel, noise_variance, groups, x, latent):
    """Mean and variance at one point from groups of rows (X, y)."""
    predictions = [expert(kernel, noise_variance, X, y, x) for X, y in groups]
    mean, variance = RULES[rule](predictions, kernel_value(kernel, x, x))
    return mean, variance if latent else variance + noise_variance
