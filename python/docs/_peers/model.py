"""Readings of a decay: its height and the logarithm of its rate, each with a normal prior."""

import numpy as np

t = np.array([0.5, 1.0, 2.0, 3.0, 5.0, 8.0])
y = np.array([2.53, 2.11, 1.64, 1.30, 0.76, 0.38])
mean, sd = np.array([3.0, -1.0]), np.array([1.0, 1.0])


def log_likelihood(theta):
    height, log_rate = theta
    residual = (y - height * np.exp(-np.exp(log_rate) * t)) / 0.1
    return float(-0.5 * residual @ residual - len(y) * np.log(0.1 * np.sqrt(2 * np.pi)))
