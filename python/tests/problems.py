"""Likelihoods with known answers, at the top of a module so that they can travel to other processes."""

import os
import signal
import time

import numpy as np

import batchquad as bq

#: ∫ exp(−2((x−1)² + y²)) N(x; 0, 1) N(y; 0, 1): the Gaussian has variance ¼, so log(¼/1¼) − ½/1¼.
TRUTH = float(np.log(0.2) - 0.4)

#: 48 evaluations of this Gaussian err by 5e-5, with log_z_sd = 3.5e-4; ten times that is a fault.
TOLERANCE = 3e-3

SETTINGS = {"batch": 8, "max_evaluations": 48}


def prior():
    return {"x": bq.Normal(0, 1), "y": bq.Normal(0, 1)}


def gaussian(theta):
    return -2.0 * ((theta[0] - 1.0) ** 2 + theta[1] ** 2)


def slow_gaussian(theta):
    time.sleep(0.02)
    return gaussian(theta)


def raises(theta):
    if theta[0] > 1.0:
        raise ValueError("x is too large")
    return gaussian(theta)


def exits(theta):
    if theta[0] > 1.0:
        raise SystemExit(3)
    return gaussian(theta)


def kills_itself(theta):
    """Dies at one place of the initial design and nowhere else, however often it is tried."""
    if abs(theta[0] - POISON) < 1e-9:
        os.kill(os.getpid(), signal.SIGKILL)
    time.sleep(0.005)
    return gaussian(theta)


def hangs(theta):
    """Hangs at one place of the initial design."""
    if abs(theta[0] - POISON) < 1e-9:
        time.sleep(3600)
    return gaussian(theta)


def _initial_point():
    return bq.Study(prior(), **SETTINGS).ask(4)[3].theta[0]


#: The fourth point of the initial design.
POISON = float(_initial_point())


def reference(**settings):
    """The same run in this thread: what every executor has to reproduce to the bit."""
    return bq.integrate(gaussian, prior(), **{**SETTINGS, **settings})
