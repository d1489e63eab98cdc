import numpy as np
import scipy.stats
from model import log_likelihood, mean, sd
from pyvbmc import VBMC


def log_joint(theta):
    theta = np.ravel(theta)
    prior = scipy.stats.norm(mean, sd)
    return log_likelihood(theta) + prior.logpdf(theta).sum()


start = mean[None, :]
anywhere = np.full((1, 2), np.inf)
vbmc = VBMC(
    log_joint,
    start,
    -anywhere,
    anywhere,
    start - sd,
    start + sd,
)
posterior, found = vbmc.optimize()

print(found["elbo"], found["elbo_sd"])
draws, _ = posterior.sample(1000)
print(draws.mean(axis=0))
