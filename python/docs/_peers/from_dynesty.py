import dynesty
from model import log_likelihood, mean, sd
from scipy.special import ndtri


def prior_transform(cube):
    return mean + sd * ndtri(cube)


sampler = dynesty.NestedSampler(
    log_likelihood, prior_transform, ndim=2
)
sampler.run_nested(print_progress=False)
found = sampler.results

print(found.logz[-1], found.logzerr[-1])
print(found.samples_equal().mean(axis=0))
