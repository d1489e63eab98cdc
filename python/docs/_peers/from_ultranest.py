import ultranest
from model import log_likelihood, mean, sd
from scipy.special import ndtri


def prior_transform(cube):
    return mean + sd * ndtri(cube)


names = ["height", "log_rate"]
sampler = ultranest.ReactiveNestedSampler(
    names, log_likelihood, prior_transform
)
found = sampler.run(
    show_status=False, viz_callback=False
)

print(found["logz"], found["logzerr"])
print(found["samples"].mean(axis=0))
