import GPy
import numpy as np
from emukit.model_wrappers import gpy_quadrature_wrappers
from emukit.quadrature.loop import WSABILLoop
from emukit.quadrature.measures import GaussianMeasure
from emukit.quadrature.methods import WSABIL
from model import log_likelihood, mean, sd


def likelihood(points):
    logs = [[log_likelihood(point)] for point in points]
    return np.exp(logs)


random = np.random.default_rng(1)
x = random.normal(mean, sd, (10, 2))
kernel = GPy.kern.RBF(2)
gp = GPy.models.GPRegression(x, likelihood(x), kernel)
measure = GaussianMeasure(mean, sd**2)
wrap = gpy_quadrature_wrappers.create_emukit_model_from_gpy_model
base = wrap(gp, measure=measure)
loop = WSABILLoop(WSABIL(base, x, likelihood(x)))
loop.run_loop(likelihood, 40)

integral, _ = loop.model.integrate()
print(np.log(integral))
